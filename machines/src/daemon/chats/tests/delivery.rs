//! How far outgoing lines come (`messaging/1 §6.8`, "Delivery"; contract delegation-consent §3.4).

use super::{Chat, flag, message, number_at};
use crate::daemon::testing::{Forged, at, key, text};
use messaging_proto::Code;
use messaging_proto::envelope::Kind;
use messaging_proto::json::Value;
use messaging_proto::ulid::Ulid;

/// The envelopes a machine has records of.
fn sent(chat: &Chat) -> Vec<Ulid> {
    let rows = chat.world.nodes[0].base.iter().filter(|(table, ..)| table.0 == "sent");
    rows.filter_map(|(_, key, _)| Ulid::parse(std::str::from_utf8(&key[..26]).unwrap())).collect()
}

/// How many rows a machine's tables of copies hold.
fn copies(chat: &Chat) -> usize {
    let rows = chat.world.nodes[0].base.iter();
    rows.filter(|(table, ..)| ["chat_copy", "chat_open"].contains(&table.0)).count()
}

fn state(line: &Value) -> &str {
    text(line, "state")
}

/// Delivered once every other person has a copy, on whichever of their machines.
#[test]
fn one_machine_of_each_person_is_enough() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "bob/tower", "carol/box"]);
    chat.ok(0, "channel.create", r#"{"name":"eng","persons":["bob","carol"]}"#);
    for number in [2, 3] {
        chat.world.link(number, false);
    }
    chat.say(0, "channel:eng", "hello", "");
    assert_eq!(state(&chat.lines(0, "channel:eng")[1]), "sent", "carol has none");
    chat.world.link(3, true);
    assert_eq!(state(&chat.lines(0, "channel:eng")[1]), "delivered");
    let before = chat.world.events(0, "conv").len();
    chat.world.link(2, true);
    assert_eq!(state(&chat.lines(0, "channel:eng")[1]), "delivered");
    assert!(before > 0);
    assert!(chat.world.events(0, "conv").is_empty(), "the last copy is no news");
    // Nothing of a settled line is kept but the line.
    assert_eq!(copies(&chat), 0);
}

/// Refused once some person's every copy was, and for good.
#[test]
fn refused_by_a_person_names_the_person() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "carol/box", "carol/phone"]);
    chat.ok(0, "channel.create", r#"{"name":"eng","persons":["bob","carol"]}"#);
    chat.ok(2, "grant.set", r#"{"subject":{"person":"alice"},"chat":"blocked"}"#);
    chat.world.link(1, false);
    chat.say(0, "channel:eng", "hello", "");
    let line = chat.lines(0, "channel:eng").pop().unwrap();
    assert_eq!((state(&line), text(&line, "refused.0")), ("refused", "carol"));
    chat.world.link(1, true);
    let line = chat.lines(0, "channel:eng").pop().unwrap();
    assert_eq!(state(&line), "refused", "bob's copy changes nothing");
    assert_eq!(chat.texts(1, "channel:eng").last().unwrap(), "hello");
    let events = chat.world.events(0, "conv");
    let last = events.last().unwrap();
    assert_eq!((text(last, "change"), text(last, "person")), ("state", "alice"));
}

/// The relay's refusal settles a copy, and a receipt that comes all the same changes nothing.
#[test]
fn a_refusal_by_the_relay_ends_a_copy() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.world.nodes[0].refuse.push_back((Code::Forbidden, None));
    chat.say(0, "dm:bob", "hello", "");
    let line = chat.lines(0, "dm:bob").remove(0);
    assert_eq!((state(&line), text(&line, "refused.0")), ("refused", "bob"));
    // A refusal for now is no end.
    chat.world.nodes[0].refuse.push_back((Code::RateLimited, Some(1_000)));
    chat.say(0, "dm:bob", "again", "");
    assert_eq!(state(&chat.lines(0, "dm:bob")[1]), "sent");
    chat.world.pass(2_000);
    assert_eq!(state(&chat.lines(0, "dm:bob")[1]), "delivered");
    assert_eq!(chat.texts(1, "dm:alice"), ["again"]);
}

/// A line does not overtake the channel it is in, nor the line before it, when the relay puts one off.
#[test]
fn nothing_overtakes_what_was_said_before_it() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.world.nodes[0].refuse.push_back((Code::RateLimited, Some(1_000)));
    let conn = chat.admin[0];
    chat.world.ok(0, conn, "channel.create", r#"{"name":"eng","persons":["bob"]}"#);
    for words in ["one", "two"] {
        chat.world.nodes[0].refuse.push_back((Code::Internal, None));
        chat.say(0, "channel:eng", words, "");
    }
    chat.world.pass(20_000);
    assert_eq!(chat.texts(1, "channel:eng"), ["alice created #eng with bob", "one", "two"]);
    let states: Vec<_> =
        chat.lines(0, "channel:eng")[1..].iter().map(|line| state(line).to_owned()).collect();
    assert_eq!(states, ["delivered", "delivered"]);
}

/// A line that nobody takes in its lifetime.
#[test]
fn expiry_ends_a_copy() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.world.link(0, false);
    chat.say(0, "dm:bob", "hello", "");
    chat.world.wall += 604_800_000;
    chat.world.pass(60_000);
    let line = chat.lines(0, "dm:bob").remove(0);
    assert_eq!((state(&line), text(&line, "refused.0")), ("refused", "bob"));
    chat.world.link(0, true);
    assert!(chat.lines(1, "dm:alice").is_empty());
}

/// Settled once: what was delivered is not refused later, and twice the same receipt is once.
#[test]
fn a_copy_is_settled_once() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "carol/box"]);
    chat.ok(0, "channel.create", r#"{"name":"eng","persons":["bob","carol"]}"#);
    chat.world.link(2, false);
    chat.say(0, "channel:eng", "hello", "");
    // A late refusal of every envelope that bob has.
    for id in sent(&chat) {
        let receipt =
            format!(r#"{{"ref":"{id}","stage":"rejected","code":"forbidden","at":{}}}"#, chat.world.wall);
        let envelope = chat.world.forge(1, 0, &Forged::new(Kind::Receipt, &receipt));
        assert!(chat.world.deliver(0, envelope));
    }
    let line = chat.lines(0, "channel:eng").remove(1);
    assert_eq!(state(&line), "sent");
    chat.world.link(2, true);
    assert_eq!(state(&chat.lines(0, "channel:eng")[1]), "delivered");
}

/// A change that reaches none of a person's machines is told in the channel, once, by a notice that is never sent.
#[test]
fn a_refused_change_is_told() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "bob/tower", "carol/box"]);
    chat.ok(0, "channel.create", r#"{"name":"eng","persons":["carol"]}"#);
    chat.ok(1, "grant.set", r#"{"subject":{"person":"alice"},"chat":"blocked"}"#);
    chat.ok(0, "channel.invite", r#"{"name":"eng","persons":["bob"]}"#);
    let texts = chat.texts(0, "channel:eng");
    assert_eq!(texts.len(), 3);
    assert_eq!(texts[2], "bob did not get a change of #eng: refused");
    let notice = chat.lines(0, "channel:eng").remove(2);
    assert!(flag(&notice, "notice") && flag(&notice, "out") && notice.get("state").is_none());
    assert_eq!(number_at(&chat.conversations(0)[0], "unread"), 0);
    assert_eq!(chat.texts(3, "channel:eng").len(), 2, "carol hears nothing of it");
    let events = chat.events(0);
    assert_eq!(events.last().unwrap(), "channel 3");
    // After the channel ended here there is nowhere to tell it.
    chat.ok(0, "channel.leave", r#"{"name":"eng"}"#);
    assert!(chat.conversations(0).is_empty());
}

/// Report 11 and its like: what comes out of order and again, with crashes between, ends the same.
#[test]
fn a_crash_after_any_commit_changes_nothing() {
    let run = |crashing: bool| {
        let mut chat = Chat::new(&["alice/desk", "bob/laptop", "carol/box"]);
        chat.world.crashing = crashing;
        let conn = chat.world.connect(0);
        chat.world.ok(0, conn, "channel.create", r#"{"name":"eng","persons":["bob","carol"]}"#);
        chat.world.run();
        for words in ["one", "two"] {
            let conn = chat.world.connect(0);
            let params = format!(r#"{{"conversation":"channel:eng","text":"{words}"}}"#);
            chat.world.ok(0, conn, "person.send", &params);
            chat.world.run();
        }
        chat.world.crashing = false;
        for number in 0..3 {
            chat.admin[number] = chat.world.connect(number);
        }
        (0..3)
            .map(|number| {
                let lines = chat.lines(number, "channel:eng");
                let shown = |line: &Value| {
                    let state = line.get("state").and_then(Value::as_str).unwrap_or("-").to_owned();
                    format!("{} {} {state}", number_at(line, "seq"), text(line, "text"))
                };
                lines.iter().map(shown).collect::<Vec<_>>()
            })
            .collect::<Vec<_>>()
    };
    let undisturbed = run(false);
    assert_eq!(undisturbed[0][1..], ["2 one delivered", "4 two delivered"]);
    assert_eq!(run(true), undisturbed);
}

/// The persons who will not have a line, in the channel's order.
#[test]
fn who_refused_is_told_in_the_order_of_the_channel() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "carol/box", "dave/pc", "erin/mac"]);
    chat.ok(0, "channel.create", r#"{"name":"eng","persons":["erin","bob","dave","carol"]}"#);
    for number in [3, 4, 1, 2] {
        if number != 1 {
            chat.ok(number, "grant.set", r#"{"subject":{"person":"alice"},"chat":"blocked"}"#);
        }
    }
    chat.say(0, "channel:eng", "hello", "");
    let line = chat.lines(0, "channel:eng").remove(1);
    let refused: Vec<_> =
        at(&line, "refused").as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    assert_eq!(refused, ["erin", "dave", "carol"]);
}

/// A line may go before what became of its copies is known: its retention is a day, an envelope's lifetime a week.
#[test]
fn a_line_that_is_gone_takes_its_copies_with_it() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.world.configure(0, r#"{"retention":{"transcriptDays":1}}"#);
    chat.admin[0] = chat.world.connect(0);
    chat.world.link(1, false);
    chat.say(0, "dm:bob", "hello", "");
    assert_eq!(copies(&chat), 2);
    chat.world.wall += 86_400_000;
    chat.world.pass(60_000);
    assert!(chat.lines(0, "dm:bob").is_empty());
    assert_eq!(copies(&chat), 1, "the envelope is still on its way");
    chat.world.link(1, true);
    assert_eq!(chat.texts(1, "dm:alice"), ["hello"]);
    assert_eq!(copies(&chat), 0);
    assert!(chat.lines(0, "dm:bob").is_empty());
}

/// A machine that leaves settles all that is open to it, more than one step does.
#[test]
fn a_machine_that_leaves_settles_everything() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.world.link(1, false);
    for number in 0..150 {
        chat.say(0, "dm:bob", "x", "");
        chat.world.pass(if number % 50 == 49 { 60_000 } else { 0 });
    }
    let machine = chat.world.machine(1);
    chat.world.reroster(|author| author.member_remove(&machine).unwrap());
    chat.world.pass(10);
    assert_eq!(copies(&chat), 0);
    let read = chat.ok(0, "conv.read", r#"{"conversation":"dm:bob","after":0,"limit":100}"#);
    assert!(at(&read, "lines").as_array().unwrap().iter().all(|line| state(line) == "refused"));
    assert!(chat.lines(0, "dm:bob").iter().all(|line| state(line) == "refused"));
}

/// §8.4: a line may be the answer to mail.
#[test]
fn a_line_with_a_reply_to_answers_what_this_machine_sent() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    let conn = chat.world.session(0, 'a', "lead", "codex");
    chat.world.session(1, 'b', "agent", "codex");
    let params = format!(r#"{{"key":"{}","to":"bob/agent","parts":[{{"text":"x"}}]}}"#, key('a'));
    let mail = chat.world.ok(0, conn, "msg.send", &params);
    chat.world.run();
    let mail = text(&mail, "results.0.envelopeId").to_owned();
    let payload = format!(r#"{{"kind":"message","message":{}}}"#, message(1, "answer"));
    let mut line = Forged::new(Kind::Message, &payload);
    line.reply_to = Some(&mail);
    let envelope = chat.world.forge(1, 0, &line);
    assert!(chat.world.deliver(0, envelope));
    assert_eq!(chat.world.stages(0, conn, 'a', &mail).last().unwrap(), "replied");
    assert_eq!(chat.texts(0, "dm:bob"), ["answer"]);
}
