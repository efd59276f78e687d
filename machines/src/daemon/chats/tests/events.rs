//! `conv` events and resuming them (`messaging/1 §8.2`, "`conv` events", "Resuming").

use super::{Chat, number_at};
use crate::daemon::io::IpcId;
use crate::daemon::testing::{at, key, text};
use messaging_proto::json::Value;

/// Subscribes on a new connection: `seq`, `gap`, and what was replayed, as `change seq id`.
fn resume(chat: &mut Chat, since: &str) -> (u64, bool, Vec<String>) {
    let conn = chat.world.connect(0);
    let params = if since.is_empty() { "{}".to_owned() } else { format!(r#"{{"since":{since}}}"#) };
    let result = chat.world.ok(0, conn, "conv.subscribe", &params);
    let replayed = on(chat, conn).iter().map(shown).collect();
    (number_at(&result, "seq"), at(&result, "gap") == &Value::Bool(true), replayed)
}

fn on(chat: &mut Chat, conn: IpcId) -> Vec<Value> {
    let lines = chat.world.nodes[0].lines.iter().filter(|(of, _)| *of == conn);
    let events = lines.filter_map(|(_, line)| line.get("params"));
    events.filter(|event| event.get("type").and_then(Value::as_str) == Some("conv")).cloned().collect()
}

fn shown(event: &Value) -> String {
    format!("{} {}", text(event, "change"), number_at(event, "seq"))
}

#[test]
fn an_event_names_a_line_and_never_its_text() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    let line = chat.say(1, "dm:alice", "hello", "");
    let events = chat.world.events(0, "conv");
    assert_eq!(events.len(), 1);
    let Value::Object(event) = &events[0] else { panic!() };
    let names: Vec<_> = event.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["change", "conversation", "id", "person", "seq", "type"]);
    assert_eq!((text(&events[0], "conversation"), text(&events[0], "person")), ("dm:bob", "bob"));
    assert_eq!((text(&events[0], "id"), text(&events[0], "change")), (text(&line, "id"), "line"));
    // The other end of a state is this machine's person.
    let events = chat.world.events(1, "conv");
    assert_eq!(events.iter().map(shown).collect::<Vec<_>>(), ["line 1", "state 2"]);
    assert_eq!(text(&events[1], "person"), "bob");
    // Never to a session's subscription.
    let conn = chat.world.session(0, 'a', "lead", "codex");
    chat.say(1, "dm:alice", "more", "");
    assert!(on(&mut chat, conn).is_empty());
    let subscribe = format!(r#"{{"key":"{}"}}"#, key('a'));
    chat.world.ok(0, conn, "events.subscribe", &subscribe);
}

#[test]
fn what_changed_since_is_replayed_once_with_its_latest_change() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.world.link(1, false);
    chat.say(0, "dm:bob", "one", "");
    chat.say(0, "dm:bob", "two", "");
    assert_eq!(resume(&mut chat, "0"), (2, false, vec!["line 1".to_owned(), "line 2".to_owned()]));
    chat.world.link(1, true);
    chat.say(1, "dm:alice", "three", "");
    // 3 and 4 are the states of the first two.
    let all = ["state 3", "state 4", "line 5"].map(str::to_owned);
    assert_eq!(resume(&mut chat, "0"), (5, false, all.to_vec()));
    assert_eq!(resume(&mut chat, "3"), (5, false, all[1..].to_vec()));
    assert_eq!(resume(&mut chat, "5"), (5, false, Vec::new()));
    assert_eq!(resume(&mut chat, ""), (5, false, Vec::new()), "without `since`, nothing is replayed");
    assert_eq!(resume(&mut chat, "6"), (5, true, Vec::new()), "a store set up again");
    // Live events follow on every subscription, with none between.
    let conn = chat.world.connect(0);
    chat.world.ok(0, conn, "conv.subscribe", r#"{"since":4}"#);
    chat.say(1, "dm:alice", "four", "");
    assert_eq!(on(&mut chat, conn).iter().map(shown).collect::<Vec<_>>(), ["line 5", "line 6"]);
}

#[test]
fn a_deleted_channel_and_too_many_changes_are_a_gap() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.say(0, "dm:bob", "one", "");
    chat.ok(0, "channel.create", r#"{"name":"eng","persons":["bob"]}"#);
    let (seq, gap, replayed) = resume(&mut chat, "0");
    assert_eq!((seq, gap, replayed), (3, false, vec!["state 2".to_owned(), "channel 3".to_owned()]));
    chat.ok(0, "channel.leave", r#"{"name":"eng"}"#);
    assert_eq!(resume(&mut chat, "3"), (4, true, Vec::new()));
    assert_eq!(resume(&mut chat, "4"), (4, false, Vec::new()));
    super::limits::fill(&mut chat.world, 0, "bob", 500, 4);
    let (seq, gap, replayed) = resume(&mut chat, "4");
    assert_eq!((seq, gap, replayed.len()), (504, false, 500));
    super::limits::fill(&mut chat.world, 0, "bob", 1, 4);
    assert_eq!(resume(&mut chat, "4"), (505, true, Vec::new()));
    assert_eq!(resume(&mut chat, "5").2.len(), 500);
    // A number is never given twice, whatever was deleted.
    assert_eq!(number_at(&chat.say(0, "dm:bob", "x", ""), "seq"), 506);
}
