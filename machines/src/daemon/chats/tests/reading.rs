//! Pages, cursors and what is unread (`messaging/1 §6.8`, "Order and read state"; `§8.2`, "Chats").

use super::{Chat, number_at};
use crate::daemon::testing::{at, key, text};
use messaging_proto::json::Value;

fn numbers(page: &Value) -> Vec<u64> {
    at(page, "lines").as_array().unwrap().iter().map(|line| number_at(line, "seq")).collect()
}

fn more(page: &Value) -> bool {
    at(page, "more") == &Value::Bool(true)
}

/// A chat in which bob said `count` lines to alice.
fn written(count: u64) -> Chat {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    for number in 1..=count {
        chat.say(1, "dm:alice", &number.to_string(), "");
        if number % 50 == 0 {
            chat.world.pass(60_000);
        }
    }
    chat
}

#[test]
fn pages_go_both_ways() {
    let mut chat = written(120);
    let read = |chat: &mut Chat, more: &str| {
        chat.ok(0, "conv.read", &format!(r#"{{"conversation":"dm:bob"{more}}}"#))
    };
    let latest = read(&mut chat, "");
    assert_eq!(numbers(&latest), (71..=120).collect::<Vec<_>>(), "fifty by default, oldest first");
    assert!(more(&latest));
    let back = read(&mut chat, r#","before":71,"limit":70"#);
    assert_eq!(numbers(&back), (1..=70).collect::<Vec<_>>());
    assert!(!more(&back));
    let on = read(&mut chat, r#","after":10,"limit":100"#);
    assert_eq!(numbers(&on), (11..=110).collect::<Vec<_>>());
    assert!(more(&on));
    let on = read(&mut chat, r#","after":110"#);
    assert_eq!(numbers(&on), (111..=120).collect::<Vec<_>>());
    assert!(!more(&on));
    assert!(numbers(&read(&mut chat, r#","after":120"#)).is_empty());
    assert!(numbers(&read(&mut chat, r#","before":1"#)).is_empty());
    assert!(numbers(&read(&mut chat, r#","before":0"#)).is_empty());
    assert_eq!(numbers(&read(&mut chat, r#","before":9007199254740991,"limit":1"#)), [120]);
}

#[test]
fn a_thread_is_paged_too() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    let first = chat.say(0, "dm:bob", "first", "");
    let first = text(&first, "id").to_owned();
    for number in 0..5 {
        chat.say(0, "dm:bob", "aside", "");
        chat.say(0, "dm:bob", &number.to_string(), &format!(r#","thread":"{first}""#));
    }
    let read = |chat: &mut Chat, more: &str| {
        chat.ok(1, "conv.read", &format!(r#"{{"conversation":"dm:alice","thread":"{first}"{more}}}"#))
    };
    let page = read(&mut chat, r#","limit":2"#);
    assert_eq!(numbers(&page), [9, 11]);
    assert!(more(&page));
    assert_eq!(numbers(&read(&mut chat, r#","before":9"#)), [1, 3, 5, 7]);
    assert_eq!(numbers(&read(&mut chat, r#","after":1,"limit":2"#)), [3, 5]);
}

/// The cursor only rises, not past the newest number, and what is under it is read.
#[test]
fn the_cursor_only_rises() {
    let mut chat = written(5);
    let list = chat.conversations(0);
    assert_eq!((number_at(&list[0], "unread"), number_at(&list[0], "readUpTo")), (5, 0));
    assert_eq!((number_at(&list[0], "lastSeq"), text(&list[0], "person")), (5, "bob"));
    let mark = |chat: &mut Chat, up_to: u64| {
        let params = format!(r#"{{"conversation":"dm:bob","upTo":{up_to}}}"#);
        let read = chat.ok(0, "conv.markRead", &params);
        (number_at(&read, "readUpTo"), number_at(&read, "unread"))
    };
    assert_eq!(mark(&mut chat, 0), (0, 5));
    assert_eq!(mark(&mut chat, 2), (2, 3));
    assert_eq!(mark(&mut chat, 1), (2, 3));
    assert_eq!(mark(&mut chat, 1_000), (5, 0));
    // Own lines are never unread; another's above the cursor is.
    chat.say(0, "dm:bob", "mine", "");
    assert_eq!(number_at(&chat.conversations(0)[0], "unread"), 0);
    chat.say(1, "dm:alice", "more", "");
    let list = chat.conversations(0);
    assert_eq!(number_at(&list[0], "unread"), 1);
    assert_eq!(number_at(&list[0], "lastSeq"), 8, "the mark took no number, the state of `mine` did");
    // Read state is of this machine, and of this chat.
    assert_eq!(number_at(&chat.conversations(1)[0], "readUpTo"), 0);
    assert_eq!(mark(&mut chat, 8), (8, 0));
    // A chat nothing was exchanged in has its cursor, and is not listed.
    let read = chat.ok(0, "conv.markRead", r#"{"conversation":"dm:alice","upTo":3}"#);
    assert_eq!((number_at(&read, "readUpTo"), number_at(&read, "unread")), (3, 0));
    assert_eq!(chat.conversations(0).len(), 1);
}

/// Counting what stays unread, from either end of a long chat.
#[test]
fn unread_is_counted_from_the_nearer_end() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.say(1, "dm:alice", "first", "");
    super::limits::fill(&mut chat.world, 0, "bob", 3_000, 4);
    for (up_to, unread) in [(1, 3_000), (2, 2_999), (701, 2_300), (2_301, 700), (2_990, 11), (3_001, 0)] {
        let params = format!(r#"{{"conversation":"dm:bob","upTo":{up_to}}}"#);
        let read = chat.ok(0, "conv.markRead", &params);
        assert_eq!((number_at(&read, "readUpTo"), number_at(&read, "unread")), (up_to, unread));
    }
}

/// An agent reads what its person reads, and marks nothing.
#[test]
fn an_agent_reads_without_marking() {
    let mut chat = written(2);
    let conn = chat.world.agent(0);
    for params in
        [r#"{"conversation":"dm:bob"}"#.to_owned(), r#"{"conversation":"dm:bob","after":1}"#.to_owned()]
    {
        let page = chat.world.ok(0, conn, "conv.read", &params);
        assert_eq!(text(&page, "kind"), "lines");
    }
    let key = key('a');
    let params = format!(r#"{{"key":"{key}","name":"lead","agent":"codex","tier":"push"}}"#);
    chat.world.ok(0, conn, "session.register", &params);
    chat.world.ok(0, conn, "conv.read", &format!(r#"{{"key":"{key}","conversation":"dm:bob"}}"#));
    assert_eq!(number_at(&chat.conversations(0)[0], "unread"), 2);
    let contacts = chat.world.ok(0, conn, "contacts.list", "{}");
    let listed = at(&contacts, "conversations").as_array().unwrap().to_vec();
    assert_eq!(listed, chat.conversations(0));
    // What is the person's is on the other socket.
    for method in [
        "conv.list",
        "conv.markRead",
        "conv.subscribe",
        "person.send",
        "channel.create",
        "channel.invite",
        "channel.leave",
        "channel.remove",
    ] {
        assert_eq!(chat.world.refused(0, conn, method, "{}"), "forbidden", "{method}");
    }
}
