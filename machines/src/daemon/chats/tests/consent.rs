//! What a person's grants do to lines and changes (`messaging/1 §6.9`, "Evaluation", "Enforcement").

use super::{Chat, flag, number_at};
use crate::daemon::testing::{at, key, text};

#[test]
fn a_blocked_person_reaches_nobody_with_anything() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.ok(1, "channel.create", r#"{"name":"eng","persons":["alice"]}"#);
    chat.ok(0, "grant.set", r#"{"subject":{"person":"bob"},"chat":"blocked"}"#);
    let conn = chat.world.session(1, 'b', "agent", "codex");
    chat.say(1, "dm:alice", "hello", "");
    chat.say(1, "channel:eng", "hello", "");
    chat.agent_says(1, conn, 'b', "alice", "hello");
    for (room, place) in [("dm:alice", 0), ("channel:eng", 1), ("dm:alice", 1)] {
        let line = chat.lines(1, room).remove(place);
        assert_eq!((text(&line, "state"), text(&line, "refused.0")), ("refused", "alice"), "{room}");
    }
    assert!(chat.lines(0, "dm:bob").is_empty());
    assert_eq!(chat.lines(0, "channel:eng").len(), 1);
    chat.ok(1, "channel.create", r#"{"name":"ops","persons":["alice"]}"#);
    assert_eq!(chat.conversations(0).len(), 1);
    assert_eq!(chat.texts(1, "channel:ops").last().unwrap(), "alice did not get a change of #ops: refused");
}

/// An agent's lines have a level of their own, which a channel's grant may set for its members.
#[test]
fn agents_lines_follow_agent_mail() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.ok(1, "channel.create", r#"{"name":"eng","persons":["alice"]}"#);
    let conn = chat.world.session(1, 'b', "agent", "codex");
    chat.ok(0, "grant.set", r#"{"subject":{"channel":"eng"},"agentMail":"blocked"}"#);
    chat.agent_says(1, conn, 'b', "alice", "one");
    chat.agent_says(1, conn, 'b', "#eng", "one");
    chat.say(1, "dm:alice", "the person", "");
    assert_eq!(chat.texts(0, "dm:bob"), ["the person"]);
    assert_eq!(chat.lines(0, "channel:eng").len(), 1);
    let refused = chat.lines(1, "channel:eng").pop().unwrap();
    assert_eq!(text(&refused, "refused.0"), "alice");
    // The person's own grant goes before the channel's.
    chat.ok(0, "grant.set", r#"{"subject":{"person":"bob"},"agentMail":"open"}"#);
    chat.agent_says(1, conn, 'b', "alice", "two");
    assert_eq!(chat.texts(0, "dm:bob"), ["the person", "two"]);
    chat.ok(0, "grant.set", r#"{"subject":{"person":"bob"}}"#);
    chat.agent_says(1, conn, 'b', "alice", "three");
    assert_eq!(chat.texts(0, "dm:bob").len(), 2);
    // It applies only while bob is a member in alice's view.
    chat.ok(1, "channel.leave", r#"{"name":"eng"}"#);
    chat.agent_says(1, conn, 'b', "alice", "four");
    assert_eq!(chat.texts(0, "dm:bob"), ["the person", "two", "four"]);
}

/// §6.9: a channel's grant lets its members ask, and is named as this machine names the channel.
#[test]
fn a_channels_grant_lets_its_members_ask() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "carol/box"]);
    chat.ok(1, "channel.create", r#"{"name":"eng","persons":["alice"]}"#);
    let id = chat.channel_id(0, "channel:eng");
    let alice = chat.world.session(0, 'a', "lead", "codex");
    let bob = chat.world.session(1, 'b', "agent", "codex");
    let carol = chat.world.session(2, 'c', "worker", "codex");
    let set = r#"{"subject":{"channel":"eng"},"ask":"open"}"#;
    let preview = chat.ok(0, "grant.set.preview", set);
    assert_eq!(text(&preview, "sentence"), "Members of #eng may ask your agents.");
    let grant = chat.ok(0, "grant.set", set);
    assert_eq!(
        (text(&grant, "grant.subject.channel"), text(&grant, "grant.subject.local")),
        (id.as_str(), "eng")
    );
    let listed = chat.ok(0, "grant.list", r#"{"subject":{"channel":"eng"}}"#);
    assert_eq!(text(&listed, "grants.0.subject.local"), "eng");
    for (number, conn, letter) in [(1, bob, 'b'), (2, carol, 'c')] {
        let params = format!(r#"{{"key":"{}","to":"alice/lead","parts":[{{"text":"x"}}]}}"#, key(letter));
        chat.world.ok(number, conn, "msg.send", &params);
        chat.world.run();
    }
    let items = chat.world.unread(0, alice, 'a');
    assert_eq!(items.len(), 1);
    assert_eq!((text(&items[0], "from.person"), text(&items[0], "consent")), ("bob", "guarded"));
    assert_eq!(text(&chat.ok(0, "request.list", "{}"), "asks.0.person"), "carol");
    for params in [r#"{"subject":{"channel":"ops"},"ask":"open"}"#, r#"{"subject":{"channel":"ops"}}"#] {
        assert_eq!(chat.refused(0, "grant.set", params), "not_found");
        assert_eq!(chat.refused(0, "grant.set.preview", params), "not_found");
    }
    assert_eq!(chat.refused(0, "grant.list", r#"{"subject":{"channel":"ops"}}"#), "not_found");
    assert_eq!(
        chat.refused(0, "grant.set", r#"{"subject":{"channel":"eng"},"chat":"open"}"#),
        "invalid_request"
    );
    // Once the channel is gone here, its grant is listed by its id alone.
    chat.ok(0, "channel.leave", r#"{"name":"eng"}"#);
    let listed = chat.ok(0, "grant.list", "{}");
    assert!(at(&listed, "grants.0.subject").get("local").is_none());
    assert_eq!(chat.refused(0, "grant.list", r#"{"subject":{"channel":"eng"}}"#), "not_found");
}

/// A muted person's line is filed as any other; only whoever tells the person hears that it is silent.
#[test]
fn a_muted_line_is_filed_silently() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.ok(0, "grant.set", r#"{"subject":{"person":"bob"},"chat":"muted"}"#);
    chat.say(1, "dm:alice", "hello", "");
    assert_eq!(chat.texts(0, "dm:bob"), ["hello"]);
    assert_eq!(number_at(&chat.conversations(0)[0], "unread"), 1);
    assert_eq!(chat.events(0), ["line 1"]);
    assert_eq!(text(&chat.lines(1, "dm:alice")[0], "state"), "delivered");
    assert!(!flag(&chat.lines(0, "dm:bob")[0], "out"));
}
