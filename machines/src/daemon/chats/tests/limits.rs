//! Caps, retention and pacing (`messaging/1 §6.8`, "Transcript"; `§6.9`, "Pacing"; `§8.2`, "Pacing"; `§8.3`).

use super::{Chat, message, number_at, ulid};
use crate::daemon::chats::lines::{self, New};
use crate::daemon::chats::rooms::{self, With};
use crate::daemon::testing::{World, at, text};
use messaging_proto::address::RoomRef;
use messaging_proto::channel::Line;
use messaging_proto::json::{FromValue, Value};
use messaging_proto::name::PersonId;
use messaging_proto::ulid::Ulid;

/// Files lines of a person on a machine without the trip over the relay: texts of `bytes` bytes.
pub(super) fn fill(world: &mut World, number: usize, person: &str, count: usize, bytes: usize) {
    let person = PersonId::parse(person).unwrap();
    for batch in (0..count).collect::<Vec<_>>().chunks(500) {
        world.within(number, |cx| {
            for n in batch {
                let text = format!("{person}-{n}-{}", "x".repeat(bytes));
                crate::daemon::chats::fill(cx, person.clone(), text).unwrap();
            }
        });
    }
}

fn held(chat: &mut Chat, room: &str) -> (u64, u64) {
    let list = chat.conversations(0);
    let one = list.iter().find(|one| text(one, "conversation") == room).unwrap();
    (number_at(one, "unread"), number_at(one, "lastSeq"))
}

/// §6.8: a sender's oldest lines go first, in whichever chat they are; nobody else's do.
#[test]
fn a_sender_holds_ten_thousand_lines() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "carol/box"]);
    chat.say(2, "dm:alice", "carol's", "");
    chat.say(1, "dm:alice", "bob's first", "");
    fill(&mut chat.world, 0, "bob", 9_999, 4);
    assert_eq!(held(&mut chat, "dm:bob"), (10_000, 10_001));
    chat.say(1, "dm:alice", "one more", "");
    assert_eq!(held(&mut chat, "dm:bob"), (10_000, 10_002));
    let read = chat.ok(0, "conv.read", r#"{"conversation":"dm:bob","after":0,"limit":1}"#);
    assert_eq!(number_at(&read, "lines.0.seq"), 3, "his first line is gone");
    assert_eq!(held(&mut chat, "dm:carol"), (1, 1));
    // What is read does not count as unread when it goes.
    chat.ok(0, "conv.markRead", r#"{"conversation":"dm:bob","upTo":5000}"#);
    let (unread, _) = held(&mut chat, "dm:bob");
    chat.say(1, "dm:alice", "and another", "");
    assert_eq!(held(&mut chat, "dm:bob").0, unread + 1);
}

#[test]
fn a_sender_holds_sixteen_mebibytes() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    fill(&mut chat.world, 0, "bob", 2_100, 8_000);
    let (unread, last) = held(&mut chat, "dm:bob");
    assert_eq!(last, 2_100);
    let bytes: u64 = chat.world.nodes[0]
        .base
        .iter()
        .filter(|(table, ..)| table.0 == "chat_text")
        .flat_map(|(_, _, row)| crate::daemon::chats::texts::entries(row))
        .map(|entry| entry.text.len() as u64)
        .sum();
    assert!((16_760_000..=16_777_216).contains(&bytes), "{bytes}");
    assert!((2_050..2_100).contains(&unread), "{unread}");
}

/// §6.8: lines go after `retention.transcriptDays`, and everything about them.
#[test]
fn lines_go_after_their_days() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.world.configure(0, r#"{"retention":{"transcriptDays":2}}"#);
    chat.admin[0] = chat.world.connect(0);
    let first = chat.say(1, "dm:alice", "old", "");
    chat.say(0, "dm:bob", "reply", &format!(r#","thread":"{}""#, text(&first, "id")));
    chat.world.wall += 86_400_000;
    chat.say(1, "dm:alice", "new", "");
    chat.world.wall += 86_400_000 - 1_000;
    chat.world.pass(500);
    assert_eq!(chat.texts(0, "dm:bob").len(), 3);
    chat.world.pass(60_000);
    assert_eq!(chat.texts(0, "dm:bob"), ["new"]);
    assert_eq!(held(&mut chat, "dm:bob"), (1, 4));
    let gone = format!(r#"{{"conversation":"dm:bob","thread":"{}"}}"#, text(&first, "id"));
    assert_eq!(chat.refused(0, "conv.read", &gone), "not_found");
    chat.world.wall += 86_400_000;
    chat.world.pass(60_000);
    // The chat is not listed without a line, its cursor is kept, and no row of a line is left.
    assert!(chat.conversations(0).is_empty());
    let left: std::collections::BTreeSet<_> = chat.world.nodes[0]
        .base
        .iter()
        .map(|(table, ..)| table.0)
        .filter(|table| table.starts_with("chat_"))
        .collect();
    assert_eq!(left.into_iter().collect::<Vec<_>>(), ["chat_room", "chat_room_of"]);
    assert_eq!(chat.texts(1, "dm:alice").len(), 3, "each machine keeps its own");
    // Longer days count for what is here already.
    chat.say(1, "dm:alice", "kept", "");
    chat.world.configure(0, r#"{"retention":{"transcriptDays":4}}"#);
    chat.admin[0] = chat.world.connect(0);
    chat.world.wall += 3 * 86_400_000;
    chat.world.pass(60_000);
    assert_eq!(chat.texts(0, "dm:bob"), ["kept"]);
    chat.world.wall += 86_400_000;
    chat.world.pass(60_000);
    assert!(chat.lines(0, "dm:bob").is_empty());
}

/// A channel of many lines that ends is gone at once; its rows go in bounded steps, over restarts.
#[test]
fn a_large_channel_ends_in_bounded_steps() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.ok(0, "channel.create", r#"{"name":"eng","persons":["bob"]}"#);
    let id = Ulid::parse(&chat.channel_id(0, "channel:eng")).unwrap();
    chat.world.within(0, |cx| {
        let room = rooms::of(cx.txn, &With::Channel(id)).unwrap().unwrap();
        let device = cx.facts.me().unwrap().machine;
        for _ in 0..1_500 {
            let line = Line {
                id: Ulid::new(cx.now(), cx.step.draw(crate::machine::Label::MessageId)),
                room: RoomRef::parse("channel:eng").unwrap(),
                person: PersonId::parse("bob").unwrap(),
                device,
                agent: None,
                text: "x".to_owned(),
                thread: None,
                out: false,
                notice: false,
            };
            lines::file(cx, New { line, room, state: None, silent: false }).unwrap();
        }
    });
    let rows =
        |chat: &Chat| chat.world.nodes[0].base.iter().filter(|(table, ..)| table.0 == "chat_line").count();
    assert_eq!(rows(&chat), 1_501);
    let conn = chat.admin[0];
    chat.world.ok(0, conn, "channel.leave", r#"{"name":"eng"}"#);
    let left = rows(&chat);
    assert!((900..1_500).contains(&left), "{left}");
    assert!(chat.conversations(0).is_empty());
    let hits = chat.ok(0, "search", r#"{"query":"x"}"#);
    assert!(at(&hits, "hits").as_array().unwrap().is_empty());
    chat.world.pass(1);
    let fewer = rows(&chat);
    assert!((1..left).contains(&fewer), "{fewer}: it goes on by itself");
    chat.world.start(0);
    chat.world.pass(20);
    assert_eq!(rows(&chat), 0);
    // A new one of the name is another chat.
    chat.admin[0] = chat.world.connect(0);
    chat.ok(0, "channel.create", r#"{"name":"eng","persons":["bob"]}"#);
    assert_eq!(chat.lines(0, "channel:eng").len(), 1);
}

/// §8.2 "Pacing": fifty chat envelopes a minute to a machine; nothing of a refused line is stored or sent.
#[test]
fn the_fifty_first_line_of_a_minute_waits() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "carol/box"]);
    chat.ok(0, "channel.create", r#"{"name":"eng","persons":["bob","carol"]}"#);
    for _ in 0..49 {
        chat.say(0, "dm:bob", "x", "");
    }
    let before = chat.world.nodes[0].base.clone();
    let conn = chat.admin[0];
    for room in ["dm:bob", "channel:eng"] {
        let params = format!(r#"{{"conversation":"{room}","text":"x"}}"#);
        let error = chat.world.call(0, conn, "person.send", &params).unwrap_err();
        assert_eq!(text(&error, "data.code"), "rate_limited");
        let wait = u64::from_value(at(&error, "data.retryAfterMs")).unwrap();
        assert!((1..=60_000).contains(&wait));
        assert!(text(&error, "message").contains("try again in"), "{error:?}");
    }
    assert!(chat.world.nodes[0].base == before, "nothing was stored");
    chat.say(0, "dm:carol", "x", "");
    // A change goes through, and counts.
    chat.ok(0, "channel.leave", r#"{"name":"eng"}"#);
    chat.world.pass(60_000);
    chat.say(0, "dm:bob", "x", "");
    assert_eq!(chat.texts(1, "dm:alice").len(), 50);
}

/// §6.9 "Pacing": thirty lines an hour by all agents of a person to one other; the person is not paced.
#[test]
fn agents_write_thirty_lines_an_hour_to_a_person() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "carol/box"]);
    chat.ok(0, "channel.create", r#"{"name":"eng","persons":["bob","carol"]}"#);
    let one = chat.world.session(0, 'a', "lead", "codex");
    let two = chat.world.session(0, 'b', "second", "codex");
    for number in 0..30 {
        let (conn, letter) = if number % 2 == 0 { (one, 'a') } else { (two, 'b') };
        chat.agent_says(0, conn, letter, if number % 3 == 0 { "#eng" } else { "bob" }, "x");
    }
    let key = crate::daemon::testing::key('a');
    let params = |to: &str| format!(r#"{{"key":"{key}","to":"{to}","parts":[{{"text":"x"}}]}}"#);
    let before = chat.world.nodes[0].base.clone();
    for to in ["bob", "#eng"] {
        let error = chat.world.call(0, one, "msg.send", &params(to)).unwrap_err();
        assert_eq!(text(&error, "data.code"), "rate_limited");
        let wait = u64::from_value(at(&error, "data.retryAfterMs")).unwrap();
        assert!((3_000_000..=3_600_000).contains(&wait), "{wait}");
    }
    assert!(chat.world.nodes[0].base == before, "nothing was stored");
    // Others have room, and the person is not counted. Its own conversation is not either.
    chat.world.ok(0, one, "msg.send", &params("carol"));
    chat.say(0, "dm:bob", "mine", "");
    for _ in 0..40 {
        chat.world.ok(0, one, "msg.send", &params("alice"));
    }
    // In memory: a restart starts the window again.
    chat.world.start(0);
    let one = chat.world.session(0, 'a', "lead", "codex");
    chat.world.ok(0, one, "msg.send", &params("bob"));
}

/// §6.9 "Pacing": the receiver holds a sender to it that does not pace itself.
#[test]
fn a_receiver_refuses_the_thirty_first() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "bob/tower"]);
    for n in 0..30 {
        assert_eq!(chat.forged(1 + n % 2, 0, Some("agent"), &message(n, "x"), ""), "delivered");
    }
    assert_eq!(chat.forged(1, 0, Some("other"), &message(30, "x"), ""), "rate_limited");
    assert_eq!(chat.forged(1, 0, None, &message(31, "x"), ""), "delivered", "the person is not paced");
    assert_eq!(chat.lines(0, "dm:bob").len(), 31);
    // An own machine's agents are nobody else's.
    let mut chat = Chat::new(&["alice/desk", "alice/phone"]);
    for n in 0..40 {
        assert_eq!(chat.forged(1, 0, Some("lead"), &message(n, "x"), ""), "delivered");
    }
    assert_eq!(chat.lines(0, "dm:alice").len(), 40);
    // What is refused for another reason, or held already, counts for nothing.
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    let post = super::op("post", &ulid(1), "eng", "");
    for n in 0..40 {
        assert_eq!(chat.forged(1, 0, Some("agent"), &message(n, "x"), &post), "not_found");
    }
    chat.world.pass(60_000);
    for _ in 0..40 {
        assert_eq!(chat.forged(1, 0, Some("agent"), &message(50, "x"), ""), "delivered");
    }
    assert_eq!(chat.forged(1, 0, Some("agent"), &message(51, "x"), ""), "delivered");
}

/// §8.3: chat has a budget of its own. Over it the ack is withheld, and a line that would end first is refused.
#[test]
fn chats_do_not_use_up_the_budget_of_mail() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.world.session(0, 'a', "lead", "codex");
    for n in 0..60 {
        assert_eq!(chat.forged(1, 0, None, &message(n, "x"), ""), "delivered");
    }
    let payload = format!(r#"{{"kind":"message","message":{}}}"#, message(60, "late"));
    let forged = crate::daemon::testing::Forged::new(messaging_proto::envelope::Kind::Message, &payload);
    let envelope = chat.world.forge(1, 0, &forged);
    assert!(!chat.world.deliver(0, envelope), "it comes again");
    assert_eq!(chat.texts(0, "dm:bob").len(), 60);
    let mut short = crate::daemon::testing::Forged::new(messaging_proto::envelope::Kind::Message, &payload);
    short.header.push(("exp", Value::int(chat.world.wall + 30_000)));
    let envelope = chat.world.forge(1, 0, &short);
    chat.world.link(1, false);
    chat.world.nodes[1].clear_queue();
    assert!(chat.world.deliver(0, envelope), "it could never be taken");
    let receipt = chat.world.nodes[1].first_queued();
    let receipt = chat.world.open(1, &receipt);
    assert_eq!((text(&receipt, "stage"), text(&receipt, "code")), ("rejected", "rate_limited"));
    chat.world.nodes[1].clear_queue();
    chat.world.link(1, true);
    chat.world.pass(1_000);
    assert_eq!(chat.texts(0, "dm:bob").len(), 61, "the first came again in time");
}
