//! What a receiver refuses, each rule with its code, from envelopes no daemon of ours would send
//! (`messaging/1 §6.8`, "Receiver rules"; contract delegation-consent §3.2).

use super::{Chat, message, op, ulid};
use crate::daemon::testing::text;

const CREATOR: &str = r#","creator":"alice""#;

fn persons(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!(r#""{name}""#)).collect();
    format!(r#","persons":[{}]"#, names.join(","))
}

fn create(id: &str, name: &str, names: &[&str]) -> String {
    op("create", id, name, &format!("{}{CREATOR}", persons(names)))
}

#[test]
fn every_rule_of_a_create() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "carol/tower"]);
    let id = ulid(1);
    let mut n = 100;
    let mut send = |chat: &mut Chat, conv: &str| {
        n += 1;
        chat.forged(0, 1, None, &message(n, "x"), conv)
    };
    // Neither without the sender nor without the receiver.
    assert_eq!(send(&mut chat, &create(&id, "eng", &["bob", "carol"])), "forbidden");
    assert_eq!(send(&mut chat, &create(&id, "eng", &["alice", "carol"])), "forbidden");
    assert_eq!(send(&mut chat, &create(&id, "eng", &["alice", "bob", "nobody"])), "not_found");
    assert!(chat.conversations(1).is_empty(), "nothing was stored");
    assert_eq!(send(&mut chat, &create(&id, "eng", &["alice", "bob"])), "delivered");
    assert_eq!(send(&mut chat, &create(&id, "eng", &["alice", "bob"])), "forbidden", "a known id");
    // An id that ended here not long ago, and one that ended long ago.
    chat.ok(1, "channel.leave", r#"{"name":"eng"}"#);
    assert_eq!(send(&mut chat, &create(&id, "eng", &["alice", "bob"])), "forbidden");
    chat.world.wall += 604_800_000 + 300_000;
    assert_eq!(send(&mut chat, &create(&id, "eng", &["alice", "bob"])), "forbidden");
    chat.world.wall += 1;
    chat.world.pass(60_000);
    assert_eq!(send(&mut chat, &create(&id, "eng", &["alice", "bob"])), "delivered");
    assert!(!chat.world.nodes[1].base.iter().any(|(table, ..)| table.0 == "channel_ended"));
    // Ended, created as soon as that may be, and ended again: what the first end planned does not undo the second.
    chat.ok(1, "channel.leave", r#"{"name":"eng"}"#);
    chat.world.wall += 604_800_000 + 300_000 + 1;
    assert_eq!(send(&mut chat, &create(&id, "eng", &["alice", "bob"])), "delivered");
    chat.ok(1, "channel.leave", r#"{"name":"eng"}"#);
    chat.world.pass(60_000);
    assert_eq!(send(&mut chat, &create(&id, "eng", &["alice", "bob"])), "forbidden");
}

#[test]
fn a_local_name_is_cut_and_numbered_until_all_are_taken() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    let name = "a".repeat(32);
    for n in 1..=99 {
        let told =
            chat.forged(0, 1, None, &message(n, "x"), &create(&ulid(1_000 + n), &name, &["alice", "bob"]));
        assert_eq!(told, "delivered", "{n}");
        chat.world.pass(if n % 50 == 0 { 60_000 } else { 0 });
    }
    let cut = "a".repeat(28);
    let list = chat.conversations(1);
    assert_eq!(text(&list[0], "conversation"), format!("channel:{cut}-99"));
    assert_eq!(text(&list[97], "conversation"), format!("channel:{cut}-2"));
    assert_eq!(text(&list[98], "conversation"), format!("channel:{name}"));
    let told = chat.forged(0, 1, None, &message(100, "x"), &create(&ulid(1_100), &name, &["alice", "bob"]));
    assert_eq!(told, "rate_limited");
}

#[test]
fn every_rule_of_the_other_operations() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "carol/tower", "dave/box"]);
    let id = ulid(1);
    let mut n = 100;
    let mut send = |chat: &mut Chat, from: usize, conv: &str| {
        n += 1;
        chat.forged(from, 1, None, &message(n, "x"), conv)
    };
    for what in ["invite", "leave", "remove", "post"] {
        let more = if what == "leave" || what == "post" { String::new() } else { persons(&["carol"]) };
        assert_eq!(send(&mut chat, 0, &op(what, &id, "eng", &more)), "not_found", "{what} of an unknown id");
    }
    assert_eq!(send(&mut chat, 0, &create(&id, "eng", &["alice", "bob", "carol"])), "delivered");
    // Looked up by its id alone, and under its own name.
    assert_eq!(send(&mut chat, 0, &op("post", &id, "other", "")), "not_found");
    assert_eq!(send(&mut chat, 0, &op("post", &ulid(2), "eng", "")), "not_found");
    // From a member only.
    for what in ["invite", "leave", "remove", "post"] {
        let more = if what == "leave" || what == "post" { String::new() } else { persons(&["carol"]) };
        assert_eq!(
            send(&mut chat, 3, &op(what, &id, "eng", &more)),
            "forbidden",
            "{what} by a stranger to it"
        );
    }
    assert_eq!(send(&mut chat, 0, &op("invite", &id, "eng", &persons(&["nobody"]))), "not_found");
    assert_eq!(send(&mut chat, 2, &op("remove", &id, "eng", &persons(&["alice"]))), "forbidden");
    assert_eq!(send(&mut chat, 0, &op("remove", &id, "eng", &persons(&["alice"]))), "invalid_request");
    assert_eq!(send(&mut chat, 0, &op("remove", &id, "eng", &persons(&["dave"]))), "not_found");
    let before = chat.texts(1, "channel:eng");
    assert_eq!(before, ["alice created #eng with bob, carol"], "nothing of a refused change is stored");
    // An invite of those who are members changes nothing and is well received.
    assert_eq!(send(&mut chat, 0, &op("invite", &id, "eng", &persons(&["carol"]))), "delivered");
    assert_eq!(chat.texts(1, "channel:eng"), before);
    assert_eq!(send(&mut chat, 2, &op("invite", &id, "eng", &persons(&["dave"]))), "delivered");
    assert_eq!(send(&mut chat, 3, &op("post", &id, "eng", "")), "delivered");
    let told = chat.forged(3, 1, Some("worker"), &message(99, "x"), &op("post", &id, "eng", ""));
    assert_eq!(told, "delivered", "an agent may post");
    assert_eq!(send(&mut chat, 2, &op("leave", &id, "eng", "")), "delivered");
    assert_eq!(send(&mut chat, 2, &op("post", &id, "eng", "")), "forbidden");
    // §6.8: removed here, it is refused as after leaving.
    assert_eq!(send(&mut chat, 0, &op("remove", &id, "eng", &persons(&["bob"]))), "delivered");
    assert!(chat.conversations(1).is_empty());
    assert_eq!(send(&mut chat, 0, &op("post", &id, "eng", "")), "not_found");
    assert_eq!(send(&mut chat, 0, &create(&id, "eng", &["alice", "bob"])), "forbidden");
}

/// §6.8: at most `channelPersons` members.
#[test]
fn an_invite_past_the_limit_is_refused() {
    let mut machines = vec!["alice/desk".to_owned(), "bob/laptop".to_owned()];
    machines.extend((0..31).map(|n| format!("p{n}/box")));
    let machines: Vec<&str> = machines.iter().map(String::as_str).collect();
    let mut chat = Chat::new(&machines);
    let all: Vec<String> = (0..30).map(|n| format!("p{n}")).collect();
    let mut names: Vec<&str> = vec!["alice", "bob"];
    names.extend(all.iter().map(String::as_str));
    let told = chat.forged(0, 1, None, &message(1, "x"), &create(&ulid(1), "eng", &names));
    assert_eq!(told, "delivered");
    let invite = op("invite", &ulid(1), "eng", &persons(&["p30"]));
    assert_eq!(chat.forged(0, 1, None, &message(2, "x"), &invite), "invalid_request");
    assert_eq!(chat.refused(1, "channel.invite", r#"{"name":"eng","persons":["p30"]}"#), "invalid_request");
    assert_eq!(
        chat.refused(1, "channel.invite", r#"{"name":"eng","persons":["p30","nobody"]}"#),
        "not_found"
    );
}

/// §6.8 "Transcript": an envelope with a `messageId` that is held changes nothing.
#[test]
fn a_message_id_is_filed_once() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "carol/tower"]);
    assert_eq!(chat.forged(0, 1, None, &message(1, "first"), ""), "delivered");
    // Again, from another machine, and as something else: all of it is well received.
    assert_eq!(chat.forged(0, 1, None, &message(1, "second"), ""), "delivered");
    assert_eq!(chat.forged(2, 1, None, &message(1, "third"), ""), "delivered");
    let conv = create(&ulid(9), "eng", &["alice", "bob"]);
    assert_eq!(chat.forged(0, 1, None, &message(1, "x"), &conv), "delivered");
    assert_eq!(chat.texts(1, "dm:alice"), ["first"]);
    assert_eq!(chat.conversations(1).len(), 1);
    assert!(chat.lines(1, "dm:carol").is_empty());
}

/// §6.8 "Transcript": the text parts, joined and cut without splitting a pair; a thread is kept as it came.
#[test]
fn the_text_is_joined_and_cut() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    let long = format!("{}\u{1F600}b", "a".repeat(7_999));
    let thread = ulid(77);
    let parts = format!(
        r#"{{"messageId":"{}","contextId":"{thread}","role":"ROLE_USER","parts":[{{"text":"one"}},{{"data":1}},{{"text":"two"}}]}}"#,
        ulid(1)
    );
    assert_eq!(chat.forged(0, 1, None, &parts, ""), "delivered");
    assert_eq!(chat.forged(0, 1, None, &message(2, &long), ""), "delivered");
    let first = format!(
        r#"{{"messageId":"{0}","contextId":"{0}","role":"ROLE_USER","parts":[{{"text":"own thread"}}]}}"#,
        ulid(3)
    );
    assert_eq!(chat.forged(0, 1, None, &first, ""), "delivered");
    let lines = chat.lines(1, "dm:alice");
    assert_eq!((text(&lines[0], "text"), text(&lines[0], "thread")), ("one\ntwo", thread.as_str()));
    assert_eq!(text(&lines[1], "text"), "a".repeat(7_999));
    assert!(lines[2].get("thread").is_none());
    // A thread whose first line is not here can be read, and answered.
    let read = format!(r#"{{"conversation":"dm:alice","thread":"{thread}"}}"#);
    assert_eq!(text(&chat.ok(1, "conv.read", &read), "lines.0.text"), "one\ntwo");
    let reply = chat.say(1, "dm:alice", "yes", &format!(r#","thread":"{thread}""#));
    assert_eq!(text(&reply, "thread"), thread);
}
