//! The table: every method with the outcomes that must have been seen, and a set of good params.

use crate::probe::{LEAD, Probe};
use messaging_machines::daemon::ipc::methods::{self, Needs, TABLE, Tier};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A method, and the codes of its row in the contract that a roster realm can give. Every one has `ok` besides, and
/// `invalid_request` for params it does not take.
const ROWS: &[(&str, &[&str])] = &[
    ("session.register", &["no_identity"]),
    ("session.update", &["not_found"]),
    ("session.unregister", &["not_found"]),
    ("device.status", &[]),
    ("contacts.list", &["no_identity"]),
    (
        "msg.send",
        &[
            "not_found",
            "secret_refused",
            "too_large",
            "rate_limited",
            "invalid_state",
            "ambiguous_address",
            "unknown_session",
            "no_recipients",
        ],
    ),
    ("inbox.list", &["not_found"]),
    ("inbox.get", &["not_found"]),
    ("inbox.ack", &["not_found"]),
    ("item.read", &["not_found"]),
    ("conv.read", &["not_found", "no_recipients"]),
    ("search", &["not_found"]),
    ("task.list", &["not_found"]),
    ("task.get", &["not_found"]),
    ("task.update", &["not_found", "invalid_state", "secret_refused", "too_large"]),
    ("task.cancel", &["not_found", "invalid_state", "secret_refused"]),
    ("events.subscribe", &["not_found"]),
    ("daemon.status", &[]),
    ("daemon.health", &[]),
    ("conv.list", &[]),
    ("conv.markRead", &["not_found"]),
    ("conv.subscribe", &[]),
    ("person.send", &["not_found", "too_large", "secret_refused", "rate_limited"]),
    ("people.search", &[]),
    ("people.get", &["not_found"]),
    ("grant.list", &["not_found"]),
    ("grant.set", &["not_found"]),
    ("grant.set.preview", &["not_found"]),
    ("request.list", &[]),
    ("request.answer", &["not_found"]),
    ("request.answer.preview", &["not_found"]),
    ("card.get", &["not_found"]),
    ("agents.list", &[]),
    ("agents.read", &["not_found"]),
    ("notice.subscribe", &["not_found"]),
    ("notice.list", &[]),
    ("notice.ack", &[]),
    ("channel.create", &["not_found"]),
    ("channel.invite", &["not_found"]),
    ("channel.leave", &["not_found"]),
    ("channel.remove", &["not_found", "forbidden"]),
    ("daemon.stop", &[]),
    ("daemon.woke", &[]),
    ("person.attached", &[]),
    ("daemon.snapshot", &["invalid_state"]),
    ("identity.rotateEnc", &["relay_unavailable", "no_identity"]),
    ("team.prepare", &["invalid_state"]),
    ("team.create", &["invalid_state", "relay_unavailable", "forbidden"]),
    ("team.invite", &["forbidden", "relay_unavailable", "no_identity"]),
    ("team.revoke", &["forbidden", "invite_invalid", "relay_unavailable"]),
    ("team.join", &["invite_invalid", "invalid_state", "relay_unavailable"]),
    ("team.pair", &["invalid_state"]),
    ("team.add", &["forbidden", "relay_unavailable"]),
    ("team.claim", &["invalid_state", "relay_unavailable"]),
    ("team.pairCancel", &[]),
    ("team.info", &["no_identity"]),
    ("team.remove", &["forbidden", "not_found", "relay_unavailable"]),
    ("team.role", &["forbidden", "not_found", "relay_unavailable"]),
    ("team.rekey", &["forbidden", "not_found", "relay_unavailable"]),
];

/// The methods of a directory realm, with params they take and what a roster realm says.
fn directory() -> Vec<(&'static str, Value, &'static str)> {
    let id = "A".repeat(43);
    let state = "invalid_state";
    vec![
        ("device.bind", json!({"token": "t"}), state),
        ("contact.request", json!({"email": "a@b.c", "text": "hello"}), "invalid_request"),
        ("contact.request.preview", json!({"email": "a@b.c"}), "invalid_request"),
        ("device.approve.preview", json!({"link": "l"}), state),
        ("device.remove.preview", json!({"device": id}), state),
        ("identity.replace.preview", json!({}), state),
        ("directory.erase.preview", json!({}), state),
        ("wake.arm", json!({"url": "u", "ticket": "t", "agents": []}), state),
        ("wake.disarm", json!({}), state),
        ("device.list", json!({}), state),
        ("device.remove", json!({"device": id}), state),
        ("device.link", json!({}), state),
        ("device.login", json!({}), state),
        ("device.login.status", json!({}), state),
        ("device.login.cancel", json!({}), state),
        ("device.approve", json!({"link": "l", "sas": "123456"}), state),
        ("identity.replace", json!({}), state),
        ("directory.erase", json!({}), state),
    ]
}

const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// Params a method takes, for the checks that come before the method's own.
fn good(method: &str) -> Value {
    let id = "A".repeat(43);
    match method {
        "session.register" => json!({"key": LEAD, "name": "x", "agent": "test", "tier": "push"}),
        "session.update" | "session.unregister" | "events.subscribe" | "inbox.list" | "task.list" => {
            json!({"key": LEAD})
        }
        "msg.send" => json!({"key": LEAD, "to": "bob/agent", "parts": [{"text": "x"}]}),
        "inbox.get" | "item.read" => json!({"key": LEAD, "id": ULID}),
        "inbox.ack" => json!({"key": LEAD, "ids": [ULID], "stage": "read"}),
        "conv.read" => json!({"key": LEAD, "conversation": "dm:bob"}),
        "task.get" | "task.cancel" => json!({"key": LEAD, "taskId": ULID}),
        "task.update" => json!({"key": LEAD, "taskId": ULID, "state": "TASK_STATE_WORKING"}),
        "search" | "people.search" => json!({"query": "x"}),
        "conv.markRead" => json!({"conversation": "dm:bob", "upTo": 0}),
        "person.send" => json!({"conversation": "dm:bob", "text": "x"}),
        "channel.create" | "channel.invite" | "channel.remove" => json!({"name": "x", "persons": ["bob"]}),
        "channel.leave" => json!({"name": "x"}),
        "agents.read" => json!({"agent": "x"}),
        "grant.set" | "grant.set.preview" => json!({"subject": {"person": "bob"}}),
        "request.answer" | "request.answer.preview" => json!({"id": ULID, "answer": "once"}),
        "card.get" | "people.get" => json!({"person": "bob"}),
        "team.invite" => json!({"person": "dora"}),
        "team.revoke" => json!({"inviteId": ULID}),
        "team.add" => json!({"machine": id, "enc": id, "person": "bob", "label": "x"}),
        "team.remove" => json!({"machine": id}),
        "team.role" => json!({"machine": id, "role": "admin"}),
        "team.rekey" => json!({"machine": id, "enc": id}),
        _ => json!({}),
    }
}

/// What every method does before its own work: the socket's tier, the params, the key, the identity.
pub(crate) fn tiers_params_and_identity(probe: &mut Probe) {
    let agent = probe.agent("alice");
    let names = TABLE.iter().map(|method| method.name);
    let all: BTreeSet<_> = names.chain(directory().iter().map(|(name, ..)| *name)).collect();
    let rows: BTreeSet<_> = ROWS.iter().map(|(name, _)| *name).collect();
    let tabled: BTreeSet<_> = TABLE.iter().map(|method| method.name).collect();
    // `contact.*` stands in both: a roster realm's own answer is the refusal.
    let only_refused: BTreeSet<_> = directory().iter().map(|(name, ..)| *name).collect();
    assert_eq!(rows, tabled.difference(&only_refused).copied().collect(), "the table names every method");
    for name in all {
        let method = methods::find(name).unwrap();
        // Closed params: any other member is refused, and the method does not run.
        probe.err("alice", name, json!({"nobody's": 1}), "invalid_request");
        if method.tier != Tier::Agent {
            let refused = agent.call(name, json!({"nobody's": 1})).unwrap_err();
            assert_eq!(refused.code.as_str(), "forbidden", "{name} on the agent socket");
        }
        let params = good(name);
        if params.get("key").is_some() && name != "session.register" {
            probe.err("alice", name, params.clone(), "not_found");
        }
        if method.needs == Needs::Identity && params.get("key").is_none() || name == "session.register" {
            let code = directory().iter().find(|(row, ..)| *row == name).map_or("no_identity", |_| "");
            if !code.is_empty() {
                probe.err("carol", name, params, code);
            }
        }
    }
    let unknown = agent.call("no.such", json!({})).unwrap_err();
    assert_eq!(unknown.code.as_str(), "forbidden");
    probe.err("alice", "no.such", json!({}), "not_found");
    for (name, params, code) in directory() {
        probe.err("alice", name, params, code);
    }
}

/// Every outcome of the table was seen.
pub(crate) fn all_seen(probe: &Probe) {
    let mut missing = Vec::new();
    for (method, codes) in ROWS {
        let seen = probe.seen(method);
        let wanted = codes.iter().chain(&["ok", "invalid_request"]);
        missing.extend(wanted.filter(|code| !seen.contains(**code)).map(|code| format!("{method}: {code}")));
    }
    assert!(missing.is_empty(), "not seen: {missing:#?}");
}
