//! Sessions, mail and the inbox.

use crate::probe::{AGENT, LEAD, Probe};
use serde_json::json;

const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
/// A credential by its form alone.
pub(crate) const SECRET: &str = "npm_abcDEF0123456789abcDEF0123456789abcd";

pub(crate) fn sessions(probe: &mut Probe) {
    let register = |key: &str, name: &str| json!({"key": key, "name": name, "agent": "test", "tier": "push"});
    let lead = probe.ok("alice", "session.register", register(LEAD, "lead"));
    assert_eq!((&lead["address"], &lead["resumed"]), (&json!("alice/lead@laptop"), &json!(false)));
    assert_eq!(probe.ok("alice", "session.register", register(LEAD, "lead"))["resumed"], true);
    let second = register("second-0123456789abcdefghijkl", "lead");
    assert_eq!(probe.ok("alice", "session.register", second)["name"], "lead-2");
    let mut host = register(LEAD, "lead");
    host["host"] = json!({"kind": "opencode", "location": "/x", "sessionID": "s", "pid": 1});
    probe.err("alice", "session.register", host, "invalid_request (host.kind is not the agent)");
    let mut ticket = register(LEAD, "lead");
    ticket["ticket"] = json!("t");
    probe.err("alice", "session.register", ticket, "invalid_request (ticket)");
    probe.ok("alice", "session.update", json!({"key": LEAD, "state": "busy", "doing": "testing"}));
    probe.ok("alice", "session.update", json!({"key": LEAD, "state": "idle", "doing": ""}));
    probe.ok("alice", "events.subscribe", json!({"key": LEAD}));
    probe.ok("alice", "session.unregister", json!({"key": "second-0123456789abcdefghijkl", "keep": false}));
    probe.ok("bob", "session.register", register(AGENT, "agent"));
    probe.ok("bob", "events.subscribe", json!({"key": AGENT}));
    let contacts = probe.until("alice", "contacts.list", &json!({}), |contacts| {
        contacts["entries"].as_array().unwrap().iter().any(|entry| entry["address"] == "bob/agent@desk")
    });
    assert_eq!(contacts["reach"][0]["person"], "bob");
}

pub(crate) fn messages(probe: &mut Probe) {
    let send = |to: &str| json!({"key": LEAD, "to": to, "parts": [{"text": "x"}]});
    let id = probe.mail(&json!({}));
    assert_eq!(probe.arrived(&id)["consent"], "guarded");
    let got = probe.ok("bob", "inbox.get", json!({"key": AGENT, "id": id, "message": true}));
    assert_eq!(got["message"]["parts"][0]["text"], "hello");
    let listed = probe.ok("bob", "inbox.list", json!({"key": AGENT, "unreadOnly": true}));
    assert_eq!((listed["items"].as_array().unwrap().len(), &listed["unread"]), (1, &json!(1)));
    probe.err("bob", "inbox.list", json!({"key": AGENT, "cursor": "what"}), "invalid_request (cursor)");
    probe.err("bob", "inbox.get", json!({"key": AGENT, "id": ULID}), "not_found (id)");
    probe.err(
        "bob",
        "inbox.ack",
        json!({"key": AGENT, "ids": [id, ULID], "stage": "handed_to_agent"}),
        "not_found (id)",
    );
    let got = probe.ok("bob", "inbox.get", json!({"key": AGENT, "id": id}));
    assert_eq!((&got["item"]["stage"], got.get("message")), (&json!("delivered"), None), "nothing moved");
    let acked = probe.ok("bob", "inbox.ack", json!({"key": AGENT, "ids": [id], "stage": "handed_to_agent"}));
    assert_eq!(acked["acked"], json!([id]));
    assert_eq!(probe.ok("bob", "item.read", json!({"key": AGENT, "id": id}))["kind"], "received");
    let sent =
        probe.until("alice", "item.read", &json!({"key": LEAD, "id": id}), |sent| sent["stage"] == "read");
    assert_eq!(sent["kind"], "sent");
    probe.err("alice", "item.read", json!({"key": LEAD, "id": ULID}), "not_found (id)");

    for (to, code) in [
        ("bob/nobody", "unknown_session"),
        ("nobody/agent", "no_recipients (person)"),
        ("bob/agent@attic", "no_recipients (label)"),
        ("nobody", "not_found (line: person)"),
        ("#nowhere", "not_found (line: channel)"),
        ("bob/", "invalid_request (address)"),
        ("*", "invalid_request (address)"),
        ("bob/*", "invalid_request (address)"),
        ("repo:messaging", "invalid_request (address)"),
    ] {
        probe.err("alice", "msg.send", send(to), code);
    }
    let with = |name: &str, value| {
        let mut params = send("bob/agent@desk");
        params[name] = value;
        params
    };
    for (name, value, code) in [
        ("request", json!({"contact": "a@b.c"}), "invalid_request (mail: request)"),
        ("onBehalfOf", json!({"taskId": ULID}), "invalid_request (mail: onBehalfOf of a message)"),
        ("taskId", json!(ULID), "not_found (mail: taskId)"),
        ("parts", json!([{"text": SECRET}]), "secret_refused"),
        ("metadata", json!({"a": {"b": SECRET}}), "secret_refused"),
        ("parts", json!([{"text": "x".repeat(300_000)}]), "too_large (mail)"),
        ("metadata", json!({"a": "x".repeat(17_000)}), "invalid_request (params)"),
    ] {
        probe.err("alice", "msg.send", with(name, value), code);
    }
    let mut both = send("bob/agent@desk");
    both["kind"] = json!("task");
    both["taskId"] = json!(ULID);
    probe.err("alice", "msg.send", both, "invalid_request (mail: taskId of a task)");
    let mut delegated = send("bob/agent@desk");
    delegated["kind"] = json!("task");
    delegated["onBehalfOf"] = json!({"taskId": ULID});
    probe.err("alice", "msg.send", delegated, "not_found (mail: onBehalfOf.taskId)");

    let first = probe.ok("alice", "msg.send", with("idempotencyKey", json!("once")));
    assert_eq!(probe.ok("alice", "msg.send", with("idempotencyKey", json!("once"))), first);
    let mut other = with("idempotencyKey", json!("once"));
    other["parts"] = json!([{"text": "y"}]);
    probe.err("alice", "msg.send", other, "invalid_request (mail: idempotencyKey)");
    // On the same machine, through the same policy: a session's own person.
    let register =
        json!({"key": "term-0123456789abcdefghijklmn", "name": "term", "agent": "cli", "tier": "pull"});
    probe.ok("alice", "session.register", register);
    let mut task = send("alice/term");
    task["kind"] = json!("task");
    let refused = probe.ok("alice", "msg.send", task);
    assert_eq!(
        (&refused["results"][0]["stage"], &refused["results"][0]["code"]),
        (&json!("rejected"), &json!("refused"))
    );

    let with_agent = json!({"key": LEAD, "conversation": "agent:bob/agent"});
    assert!(!probe.ok("alice", "conv.read", with_agent)["entries"].as_array().unwrap().is_empty());
    for (params, code) in [
        (json!({"key": LEAD, "conversation": "agent:bob/nobody"}), "no_recipients"),
        (json!({"conversation": "agent:bob/agent"}), "invalid_request (agent: without key)"),
        (
            json!({"key": LEAD, "conversation": "agent:bob/agent", "thread": ULID}),
            "invalid_request (thread with agent:)",
        ),
        (json!({"key": LEAD, "conversation": "agent:bob/agent", "before": 3}), "invalid_request (cursor)"),
        (json!({"conversation": "dm:bob", "before": 3, "after": 1}), "invalid_request (before with after)"),
        (json!({"conversation": "dm:bob", "before": {"at": 1, "id": ULID}}), "invalid_request (cursor)"),
        (json!({"conversation": "dm:nobody"}), "not_found (person)"),
        (json!({"conversation": "channel:nowhere"}), "not_found (channel)"),
        (json!({"conversation": "dm:bob", "thread": ULID}), "not_found (thread)"),
    ] {
        probe.err("alice", "conv.read", params, code);
    }
    let agents = probe.ok("alice", "agents.list", json!({}));
    assert!(agents["agents"].as_array().unwrap().iter().any(|row| row["agent"] == "lead"));
    let with = probe.ok("alice", "agents.read", json!({"agent": "lead"}));
    let rows = with["conversations"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["conversation"] == "agent:bob/agent"), "{with}");
    probe.ok("alice", "agents.read", json!({"agent": "lead", "conversation": "agent:bob/agent"}));
    probe.err("alice", "agents.read", json!({"agent": "nobody"}), "not_found");
    let before = json!({"agent": "lead", "before": {"at": 1, "id": ULID}});
    probe.err("alice", "agents.read", before, "invalid_request (before without conversation)");
}
