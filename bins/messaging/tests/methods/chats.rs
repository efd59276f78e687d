//! Lines and channels.

use crate::mail::SECRET;
use crate::probe::{LEAD, Probe};
use serde_json::json;

const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

pub(crate) fn lines(probe: &mut Probe) {
    let line = |text: &str| json!({"conversation": "dm:bob", "text": text});
    let subscribed = probe.ok("bob", "conv.subscribe", json!({}));
    assert_eq!(subscribed["gap"], false);
    let sent = probe.ok("alice", "person.send", line("lunch at noon?"))["line"].clone();
    let dm = json!({"conversation": "dm:alice"});
    let read = probe.until("bob", "conv.read", &dm, |read| !read["lines"].as_array().unwrap().is_empty());
    assert_eq!(read["lines"][0]["text"], "lunch at noon?");
    assert_eq!(probe.ok("bob", "search", json!({"query": "NOON lunch"}))["hits"][0]["id"], sent["id"]);
    probe.err("bob", "search", json!({"query": "x", "conversation": "channel:nowhere"}), "not_found");
    assert_eq!(probe.ok("bob", "conv.list", json!({}))["conversations"][0]["unread"], 1);
    let marked = probe.ok("bob", "conv.markRead", json!({"conversation": "dm:alice", "upTo": 99}));
    assert_eq!(marked["unread"], 0);
    probe.err("bob", "conv.markRead", json!({"conversation": "channel:nowhere", "upTo": 1}), "not_found");
    let gap = probe.ok("bob", "conv.subscribe", json!({"since": 1_000_000}));
    assert_eq!(gap["gap"], true);
    for (params, code) in [
        (json!({"conversation": "dm:nobody", "text": "x"}), "not_found"),
        (json!({"conversation": "channel:nowhere", "text": "x"}), "not_found"),
        (json!({"conversation": "dm:bob", "text": "x", "thread": ULID}), "not_found"),
        (line(&"x".repeat(8_001)), "too_large"),
        (line(SECRET), "secret_refused"),
    ] {
        probe.err("alice", "person.send", params, code);
    }
    let once = |text: &str| json!({"conversation": "dm:bob", "text": text, "clientId": "c1"});
    let first = probe.ok("alice", "person.send", once("one"))["line"]["id"].clone();
    assert_eq!(probe.ok("alice", "person.send", once("one"))["line"]["id"], first);
    probe.err("alice", "person.send", once("two"), "invalid_request");
    // An agent's line.
    let say = |more: serde_json::Value| {
        let mut params = json!({"key": LEAD, "to": "bob", "parts": [{"text": "from the agent"}]});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        params
    };
    let agent = probe.ok("alice", "msg.send", say(json!({"replyTo": sent["id"]})));
    assert_eq!(agent["results"][0]["contextId"], sent["id"]);
    for more in [
        json!({"kind": "task"}),
        json!({"wake": true}),
        json!({"contextId": ULID}),
        json!({"metadata": {}}),
        json!({"parts": [{"text": "a"}, {"text": "b"}]}),
        json!({"request": {"contact": "a@b.c"}}),
    ] {
        probe.err("alice", "msg.send", say(more), "invalid_request");
    }
    probe.err("alice", "msg.send", say(json!({"replyTo": ULID})), "not_found");
    // Agents to one person: thirty lines an hour. Persons: fifty to one machine a minute.
    let mut refused = None;
    for _ in 0..31 {
        if let Err(error) = probe.raw("alice", "msg.send", say(json!({}))) {
            refused = Some(error);
            break;
        }
    }
    assert_eq!(refused.unwrap().code.as_str(), "rate_limited");
    let mut refused = None;
    for _ in 0..60 {
        if let Err(error) = probe.raw("alice", "person.send", line("again")) {
            refused = Some(error);
            break;
        }
    }
    assert_eq!(refused.unwrap().code.as_str(), "rate_limited");
}

pub(crate) fn channels(probe: &mut Probe) {
    // Bob's machine has its whole pace left.
    let create = |name: &str, persons: &[&str]| json!({"name": name, "persons": persons});
    let made = probe.ok("bob", "channel.create", create("eng", &["alice"]));
    assert_eq!(made["conversation"]["conversation"], "channel:eng");
    probe.err("bob", "channel.create", create("eng", &["alice"]), "invalid_request");
    probe.err("bob", "channel.create", create("own", &["bob"]), "invalid_request");
    probe.err("bob", "channel.create", create("twice", &["alice", "alice"]), "invalid_request");
    probe.err("bob", "channel.create", create("ghosts", &["nobody"]), "not_found");
    probe.err("bob", "channel.invite", create("nowhere", &["alice"]), "not_found");
    probe.err("bob", "channel.invite", create("eng", &["nobody"]), "not_found");
    probe.err("bob", "channel.invite", create("eng", &["alice"]), "invalid_request");
    let rooms = json!({});
    probe.until("alice", "conv.list", &rooms, |listed| {
        let rooms = listed["conversations"].as_array().unwrap();
        rooms.iter().any(|room| room["conversation"] == "channel:eng")
    });
    probe.err("bob", "channel.remove", create("nowhere", &["alice"]), "not_found");
    probe.err("bob", "channel.remove", create("eng", &["nobody"]), "not_found");
    probe.err("bob", "channel.remove", create("eng", &["bob"]), "invalid_request");
    probe.err("bob", "channel.leave", json!({"name": "nowhere"}), "not_found");
}
