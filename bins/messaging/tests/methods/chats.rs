//! Lines and channels.

use crate::mail::SECRET;
use crate::probe::{AGENT, LEAD, Probe};
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
        (json!({"conversation": "dm:nobody", "text": "x"}), "not_found (person)"),
        (json!({"conversation": "channel:nowhere", "text": "x"}), "not_found (channel)"),
        (json!({"conversation": "dm:bob", "text": "x", "thread": ULID}), "not_found (thread)"),
        (line(&"x".repeat(8_001)), "too_large"),
        (line(SECRET), "secret_refused"),
    ] {
        probe.err("alice", "person.send", params, code);
    }
    let once = |text: &str| json!({"conversation": "dm:bob", "text": text, "clientId": "c1"});
    let first = probe.ok("alice", "person.send", once("one"))["line"]["id"].clone();
    assert_eq!(probe.ok("alice", "person.send", once("one"))["line"]["id"], first);
    probe.err("alice", "person.send", once("two"), "invalid_request (clientId)");
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
    for (more, outcome) in [
        (json!({"kind": "task"}), "invalid_request (line: kind)"),
        (json!({"parts": [{"text": "a"}, {"text": "b"}]}), "invalid_request (line: more than one part)"),
        (json!({"parts": [{"data": {}}]}), "invalid_request (line: a part that is no text)"),
        (
            json!({"parts": [{"text": "a", "filename": "b"}]}),
            "invalid_request (line: a part that is no text)",
        ),
        (json!({"contextId": ULID}), "invalid_request (line: contextId)"),
        (json!({"taskId": ULID}), "invalid_request (line: taskId)"),
        (json!({"messageId": ULID}), "invalid_request (line: messageId)"),
        (json!({"metadata": {}}), "invalid_request (line: metadata)"),
        (json!({"extensions": ["e"]}), "invalid_request (line: extensions)"),
        (json!({"referenceTaskIds": [ULID]}), "invalid_request (line: referenceTaskIds)"),
        (json!({"onBehalfOf": {"taskId": ULID}}), "invalid_request (line: onBehalfOf)"),
        // Also when it is what an absent one means.
        (json!({"wake": true}), "invalid_request (line: wake)"),
        (json!({"request": {"contact": "a@b.c"}}), "invalid_request (line: request)"),
        (json!({"parts": [{"text": "x".repeat(8_001)}]}), "too_large (line)"),
        (json!({"replyTo": ULID}), "not_found (line: thread)"),
    ] {
        probe.err("alice", "msg.send", say(more), outcome);
    }
    let first = probe.ok("alice", "msg.send", say(json!({"idempotencyKey": "line"})));
    assert_eq!(probe.ok("alice", "msg.send", say(json!({"idempotencyKey": "line"}))), first);
    let other = say(json!({"idempotencyKey": "line", "parts": [{"text": "another"}]}));
    probe.err("alice", "msg.send", other, "invalid_request (line: idempotencyKey)");
    // Fifty lines a minute go to one machine, whoever writes them; thirty an hour from agents to one person.
    let refused = probe.refusal("alice", "person.send", &line("again"));
    assert!(refused.retry_after_ms.unwrap() <= 60_000);
    probe.err("alice", "msg.send", say(json!({})), "rate_limited (line: lines to a machine)");
    let to_alice = json!({"key": AGENT, "to": "alice", "parts": [{"text": "again"}]});
    let refused = probe.refusal("bob", "msg.send", &to_alice);
    assert!(refused.retry_after_ms.unwrap() > 60_000);
    probe.err("bob", "msg.send", to_alice, "rate_limited (line: agents to a person)");
}

pub(crate) fn channels(probe: &mut Probe) {
    // Bob's machine has its whole pace left.
    let create = |name: &str, persons: &[&str]| json!({"name": name, "persons": persons});
    let made = probe.ok("bob", "channel.create", create("eng", &["alice"]));
    assert_eq!(made["conversation"]["conversation"], "channel:eng");
    probe.err("bob", "channel.create", create("eng", &["alice"]), "invalid_request (held name)");
    probe.err("bob", "channel.create", create("own", &["bob"]), "invalid_request (own person)");
    probe.err(
        "bob",
        "channel.create",
        create("twice", &["alice", "alice"]),
        "invalid_request (repeated person)",
    );
    probe.err("bob", "channel.create", create("ghosts", &["nobody"]), "not_found");
    probe.err("bob", "channel.invite", create("nowhere", &["alice"]), "not_found (channel)");
    probe.err("bob", "channel.invite", create("eng", &["nobody"]), "not_found (person)");
    probe.err("bob", "channel.invite", create("eng", &["alice"]), "invalid_request (members already)");
    let rooms = json!({});
    probe.until("alice", "conv.list", &rooms, |listed| {
        let rooms = listed["conversations"].as_array().unwrap();
        rooms.iter().any(|room| room["conversation"] == "channel:eng")
    });
    probe.err("bob", "channel.remove", create("nowhere", &["alice"]), "not_found (channel)");
    probe.err("bob", "channel.remove", create("eng", &["nobody"]), "not_found (person)");
    probe.err("bob", "channel.remove", create("eng", &["bob"]), "invalid_request (own person)");
    probe.err("bob", "channel.leave", json!({"name": "nowhere"}), "not_found");
}
