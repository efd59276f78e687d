//! Direct lines.

use super::{Chat, flag, id, number_at};
use crate::daemon::testing::{at, key, text};

/// §6.8: a line is filed on both sides, the copy of its sender with how far it came.
#[test]
fn a_line_goes_to_every_machine_of_the_other_person() {
    let mut chat = Chat::new(&["alice/desk", "alice/phone", "bob/laptop", "bob/tower"]);
    let sent = chat.say(0, "dm:bob", "hello", "");
    assert_eq!((text(&sent, "text"), text(&sent, "state")), ("hello", "sent"));
    assert!(flag(&sent, "out") && sent.get("agent").is_none() && sent.get("thread").is_none());
    assert_eq!((text(&sent, "person"), text(&sent, "label")), ("alice", "desk"));
    let mine = chat.lines(0, "dm:bob");
    assert_eq!(text(&mine[0], "state"), "delivered");
    assert_eq!(id(&mine[0]), id(&sent));
    // None to the sender's own machines.
    assert!(chat.lines(1, "dm:bob").is_empty());
    for number in [2, 3] {
        let got = chat.lines(number, "dm:alice");
        assert_eq!((got.len(), id(&got[0])), (1, id(&sent)));
        assert!(!flag(&got[0], "out") && got[0].get("state").is_none());
        assert_eq!((text(&got[0], "person"), text(&got[0], "device")), ("alice", text(&sent, "device")));
    }
    let back = chat.say(2, "dm:alice", "hi", "");
    assert_eq!(chat.texts(0, "dm:bob"), ["hello", "hi"]);
    // Only bob's laptop holds what it said; alice's machines both got it.
    assert_eq!(chat.texts(1, "dm:bob"), ["hi"]);
    assert_eq!(chat.texts(3, "dm:alice"), ["hello"]);
    assert_eq!(text(&chat.lines(2, "dm:alice")[1], "id"), id(&back));
}

/// §6.8: the own conversation.
#[test]
fn a_line_to_oneself_is_for_the_other_machines_and_an_agents_is_to_be_read() {
    let mut chat = Chat::new(&["alice/desk", "alice/phone", "bob/laptop"]);
    let line = chat.say(0, "dm:alice", "note", "");
    assert!(flag(&line, "out") && line.get("state").is_none());
    let other = chat.lines(1, "dm:alice");
    assert!(flag(&other[0], "out"), "what the person wrote is the person's own everywhere");
    let conn = chat.world.session(0, 'a', "lead", "codex");
    let sent = chat.agent_says(0, conn, 'a', "alice", "done");
    assert_eq!((text(&sent, "to"), text(&sent, "stage")), ("alice", "accepted"));
    assert_eq!(text(&sent, "envelopeId"), text(&sent, "messageId"));
    for number in [0, 1] {
        let lines = chat.lines(number, "dm:alice");
        assert!(!flag(&lines[1], "out") && lines[1].get("state").is_none());
        assert_eq!((text(&lines[1], "agent"), text(&lines[1], "text")), ("lead", "done"));
        let list = chat.conversations(number);
        assert_eq!(number_at(&list[0], "unread"), 1);
    }
    assert!(chat.conversations(2).is_empty());
}

/// §6.8, §6.4: a person's line makes no item and wakes nobody; both ends know it by its `messageId`.
#[test]
fn a_line_of_an_agent_names_it_and_makes_no_item() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    let conn = chat.world.session(0, 'a', "lead", "codex");
    let bob = chat.world.session(1, 'b', "agent", "codex");
    let sent = chat.agent_says(0, conn, 'a', "bob", "hello");
    let got = chat.lines(1, "dm:alice");
    assert_eq!((text(&got[0], "agent"), id(&got[0])), ("lead", text(&sent, "messageId").to_owned()));
    assert!(chat.world.unread(1, bob, 'b').is_empty());
    let mine = chat.lines(0, "dm:bob");
    assert!(flag(&mine[0], "out"));
    assert_eq!((text(&mine[0], "agent"), text(&mine[0], "state")), ("lead", "delivered"));
    // A line is no envelope of the key's mail.
    let read = format!(r#"{{"key":"{}","id":"{}"}}"#, key('a'), text(&sent, "messageId"));
    assert_eq!(chat.world.refused(0, conn, "item.read", &read), "not_found");
}

/// §6.8: an offline recipient gets what waited.
#[test]
fn an_offline_machine_gets_the_line_later() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.world.link(1, false);
    chat.say(0, "dm:bob", "later", "");
    assert_eq!(text(&chat.lines(0, "dm:bob")[0], "state"), "sent");
    assert!(chat.lines(1, "dm:alice").is_empty());
    chat.world.start(0);
    chat.world.link(1, true);
    assert_eq!(chat.texts(1, "dm:alice"), ["later"]);
    chat.admin[0] = chat.world.connect(0);
    assert_eq!(text(&chat.lines(0, "dm:bob")[0], "state"), "delivered");
    // And a sender without a link keeps it in the outbox.
    chat.world.link(0, false);
    chat.say(0, "dm:bob", "from the outbox", "");
    assert_eq!(chat.texts(1, "dm:alice").len(), 1);
    chat.world.link(0, true);
    assert_eq!(chat.texts(1, "dm:alice"), ["later", "from the outbox"]);
}

/// §6.8: a thread is named by its first line, whichever line of it is answered.
#[test]
fn threads_are_named_by_their_first_line() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    let first = id(&chat.say(0, "dm:bob", "first", ""));
    chat.say(0, "dm:bob", "aside", "");
    let reply = chat.say(1, "dm:alice", "reply", &format!(r#","thread":"{first}""#));
    assert_eq!(text(&reply, "thread"), first);
    let again = chat.say(0, "dm:bob", "again", &format!(r#","thread":"{}""#, id(&reply)));
    assert_eq!(text(&again, "thread"), first);
    for (number, room) in [(0, "dm:bob"), (1, "dm:alice")] {
        for any in [&first, &id(&again)] {
            let read =
                chat.ok(number, "conv.read", &format!(r#"{{"conversation":"{room}","thread":"{any}"}}"#));
            let texts: Vec<_> =
                at(&read, "lines").as_array().unwrap().iter().map(|line| text(line, "text")).collect();
            assert_eq!(texts, ["first", "reply", "again"]);
        }
    }
    let unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let read = format!(r#"{{"conversation":"dm:bob","thread":"{unknown}"}}"#);
    assert_eq!(chat.refused(0, "conv.read", &read), "not_found");
    let send = format!(r#"{{"conversation":"dm:bob","text":"x","thread":"{unknown}"}}"#);
    assert_eq!(chat.refused(0, "person.send", &send), "not_found");
    // A thread of another chat is none of this one.
    chat.say(0, "dm:alice", "note", "");
    let own = format!(r#"{{"conversation":"dm:alice","text":"x","thread":"{first}"}}"#);
    assert_eq!(chat.refused(0, "person.send", &own), "not_found");
}

/// §6.8: every change takes the next number, and each machine numbers for itself.
#[test]
fn numbers_rise_and_events_follow_them() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    let one = chat.say(0, "dm:bob", "one", "");
    assert_eq!(number_at(&one, "seq"), 1);
    let two = chat.say(0, "dm:bob", "two", "");
    assert_eq!(number_at(&two, "seq"), 3, "the state of the first took a number");
    assert_eq!(chat.events(0), ["line 1", "state 2", "line 3", "state 4"]);
    assert_eq!(chat.events(1), ["line 1", "line 2"]);
    let seqs: Vec<_> = chat.lines(0, "dm:bob").iter().map(|line| number_at(line, "seq")).collect();
    assert_eq!(seqs, [1, 3], "a line keeps its place");
}

/// §6.4: one receipt for a line, and none for a receipt or a presence.
#[test]
fn a_receipt_and_a_presence_are_answered_with_nothing() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    let before = [chat.world.nodes[0].sends, chat.world.nodes[1].sends];
    chat.say(0, "dm:bob", "hello", "");
    let after = [chat.world.nodes[0].sends, chat.world.nodes[1].sends];
    assert_eq!([after[0] - before[0], after[1] - before[1]], [1, 1], "the line, and its receipt");
    let presence =
        chat.world.forge_presence(1, r#"{"seq":9000000000000,"label":"laptop","sessions":[],"features":[]}"#);
    chat.world.hear(0, presence);
    chat.world.run();
    assert_eq!([chat.world.nodes[0].sends, chat.world.nodes[1].sends], after);
}
