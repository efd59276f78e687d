//! The table: every method with the outcomes that must have been seen, and a set of good params.

use crate::probe::{LEAD, Probe};
use crate::shapes;
use messaging_machines::daemon::ipc::methods::{self, Needs, Tier};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A method, and the errors of its row in the contract that a roster realm can give. Every one has `ok` besides, and
/// `invalid_request (params)` for params it does not take. What takes a fabricated state is tested in the machine:
/// 2000 grants and 200 channels held (`rate_limited`, `invalid_request`).
const ROWS: &[(&str, &[&str])] = &[
    (
        "session.register",
        &["no_identity", "invalid_request (host.kind is not the agent)", "invalid_request (ticket)"],
    ),
    ("session.update", &["not_found (key)"]),
    ("session.unregister", &["not_found (key)"]),
    ("device.status", &[]),
    ("contacts.list", &["no_identity"]),
    (
        "msg.send",
        &[
            "not_found (key)",
            "invalid_request (address)",
            "secret_refused",
            "invalid_request (line: kind)",
            "invalid_request (line: more than one part)",
            "invalid_request (line: a part that is no text)",
            "invalid_request (line: contextId)",
            "invalid_request (line: taskId)",
            "invalid_request (line: messageId)",
            "invalid_request (line: metadata)",
            "invalid_request (line: extensions)",
            "invalid_request (line: referenceTaskIds)",
            "invalid_request (line: onBehalfOf)",
            "invalid_request (line: wake)",
            "invalid_request (line: request)",
            "too_large (line)",
            "not_found (line: person)",
            "not_found (line: channel)",
            "not_found (line: thread)",
            "invalid_request (line: idempotencyKey)",
            "rate_limited (line: agents to a person)",
            "rate_limited (line: lines to a machine)",
            "invalid_request (mail: request)",
            "invalid_request (mail: taskId of a task)",
            "invalid_request (mail: onBehalfOf of a message)",
            "not_found (mail: taskId)",
            "not_found (mail: onBehalfOf.taskId)",
            "invalid_state (mail: taskId)",
            "invalid_state (mail: onBehalfOf.taskId)",
            "invalid_request (mail: idempotencyKey)",
            "ambiguous_address",
            "unknown_session",
            "no_recipients (person)",
            "no_recipients (label)",
            "too_large (mail)",
        ],
    ),
    ("inbox.list", &["not_found (key)", "invalid_request (cursor)"]),
    ("inbox.get", &["not_found (key)", "not_found (id)"]),
    ("inbox.ack", &["not_found (key)", "not_found (id)"]),
    ("item.read", &["not_found (key)", "not_found (id)"]),
    (
        "conv.read",
        &[
            "not_found (key)",
            "invalid_request (before with after)",
            "invalid_request (cursor)",
            "invalid_request (thread with agent:)",
            "invalid_request (agent: without key)",
            "not_found (channel)",
            "not_found (person)",
            "not_found (thread)",
            "no_recipients",
        ],
    ),
    ("search", &["not_found"]),
    ("task.list", &["not_found (key)", "invalid_request (cursor)"]),
    ("task.get", &["not_found (key)", "not_found (taskId)"]),
    (
        "task.update",
        &[
            "not_found (key)",
            "not_found (taskId)",
            "invalid_state (not executor)",
            "invalid_state (transition)",
            "invalid_state (terminal)",
            "invalid_request (neither)",
            "invalid_request (message without state)",
            "secret_refused",
            "too_large",
        ],
    ),
    (
        "task.cancel",
        &[
            "not_found (key)",
            "not_found (taskId)",
            "invalid_state (not requester)",
            "invalid_state (terminal)",
            "secret_refused",
        ],
    ),
    ("events.subscribe", &["not_found (key)"]),
    ("daemon.status", &[]),
    ("daemon.health", &[]),
    ("conv.list", &[]),
    ("conv.markRead", &["not_found"]),
    ("conv.subscribe", &[]),
    (
        "person.send",
        &[
            "not_found (person)",
            "not_found (channel)",
            "not_found (thread)",
            "too_large",
            "secret_refused",
            "rate_limited",
            "invalid_request (clientId)",
        ],
    ),
    ("people.search", &[]),
    ("people.get", &["not_found"]),
    ("grant.list", &["not_found"]),
    ("grant.set", GRANT),
    ("grant.set.preview", GRANT),
    ("request.list", &[]),
    ("request.answer", &["not_found", "invalid_request (answer)"]),
    ("request.answer.preview", &["not_found", "invalid_request (answer)"]),
    ("card.get", &["not_found"]),
    ("agents.list", &[]),
    ("agents.read", &["not_found", "invalid_request (before without conversation)"]),
    ("notice.subscribe", &["not_found"]),
    ("notice.list", &[]),
    ("notice.ack", &[]),
    (
        "channel.create",
        &[
            "invalid_request (held name)",
            "invalid_request (own person)",
            "invalid_request (repeated person)",
            "not_found",
        ],
    ),
    ("channel.invite", &["not_found (channel)", "not_found (person)", "invalid_request (members already)"]),
    ("channel.leave", &["not_found"]),
    (
        "channel.remove",
        &["not_found (channel)", "not_found (person)", "forbidden", "invalid_request (own person)"],
    ),
    ("daemon.stop", &[]),
    ("daemon.woke", &[]),
    ("person.attached", &[]),
    ("daemon.snapshot", &["invalid_state"]),
    (
        "identity.rotateEnc",
        &["invalid_state (retained)", "invalid_state (alarm)", "relay_unavailable", "no_identity"],
    ),
    ("team.prepare", &["invalid_state (team)", "invalid_state (pairing)", "invalid_state (keys_missing)"]),
    (
        "team.create",
        &[
            "invalid_state (team)",
            "invalid_state (pairing)",
            "invalid_state (keys_missing)",
            "relay_unavailable",
            "forbidden",
            "rate_limited",
        ],
    ),
    ("team.invite", &["forbidden", "relay_unavailable", "no_identity"]),
    ("team.revoke", &["forbidden", "invite_invalid", "relay_unavailable"]),
    (
        "team.join",
        &[
            "invalid_request (ticket)",
            "invite_invalid",
            "forbidden",
            "invalid_state (team)",
            "invalid_state (keys_missing)",
            "relay_unavailable",
        ],
    ),
    ("team.pair", &["invalid_state (team)", "invalid_state (founding keys)", "invalid_state (keys_missing)"]),
    ("team.add", &["forbidden (member)", "forbidden (label)", "invalid_request (key)", "relay_unavailable"]),
    (
        "team.claim",
        &[
            "invalid_state (team)",
            "invalid_state (founding keys)",
            "invalid_state (nothing waits)",
            "invalid_state (keys_missing)",
            "relay_unavailable",
        ],
    ),
    ("team.pairCancel", &[]),
    ("team.info", &["no_identity"]),
    ("team.remove", CHANGE),
    ("team.role", CHANGE),
    ("team.rekey", &["forbidden (member)", "not_found", "relay_unavailable"]),
];

const GRANT: &[&str] = &[
    "not_found (person)",
    "not_found (channel)",
    "invalid_request (levels of a channel)",
    "invalid_request (discoverable)",
    "invalid_request (trustedUntil without ask)",
    "invalid_request (trustedUntil too far)",
    "invalid_request (trust with trustedUntil)",
    "invalid_request (trust without ask)",
    "invalid_state",
];

const CHANGE: &[&str] = &["forbidden (member)", "forbidden (last admin)", "not_found", "relay_unavailable"];

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
    let refused: BTreeMap<_, _> = directory().into_iter().map(|(name, _, code)| (name, code)).collect();
    let rows: BTreeSet<_> = ROWS.iter().map(|(name, _)| *name).chain(refused.keys().copied()).collect();
    let served: BTreeSet<_> = methods::all().map(|method| method.name).collect();
    assert_eq!(rows, served, "there is a row for every method the daemon knows");
    assert!(ROWS.iter().all(|(name, _)| shapes::covers(name)), "and a shape of its result");
    for name in served {
        let method = methods::find(name).unwrap();
        // Closed params: any other member is refused, and the method does not run.
        probe.err("alice", name, json!({"nobody's": 1}), "invalid_request (params)");
        if method.tier != Tier::Agent {
            let result = agent.call(name, json!({"nobody's": 1}));
            probe.refused(name, &json!({}), result, "forbidden (agent socket)");
        }
        let params = good(name);
        if params.get("key").is_some() && name != "session.register" {
            probe.err("alice", name, params.clone(), "not_found (key)");
        }
        // Without a key of its connection the answer would be `not_found`.
        let keyless = params.get("key").is_none() || name == "session.register";
        if method.needs == Needs::Identity && keyless && !refused.contains_key(name) {
            probe.err("carol", name, params, "no_identity");
        }
    }
    let unknown = agent.call("no.such", json!({})).unwrap_err();
    assert_eq!(unknown.code.as_str(), "forbidden");
    assert_eq!(probe.alice.call("no.such", json!({})).unwrap_err().code.as_str(), "not_found");
    for (name, params, code) in directory() {
        probe.err("alice", name, params, code);
    }
}

/// Every outcome of the table was seen. Writes the table to the file that `MESSAGING_METHODS_TABLE` names.
pub(crate) fn all_seen(probe: &Probe) {
    let mut missing = Vec::new();
    for (method, outcomes) in ROWS {
        let seen = probe.seen(method);
        let wanted = outcomes.iter().chain(&["ok", "invalid_request (params)"]);
        missing.extend(wanted.filter(|code| !seen.contains(**code)).map(|code| format!("{method}: {code}")));
    }
    if let Some(path) = std::env::var_os("MESSAGING_METHODS_TABLE") {
        let mut table = "| Method | Tier | Seen |\n|---|---|---|\n".to_owned();
        for method in methods::all() {
            let all = probe.seen(method.name);
            // The code alone says nothing beside the code with its reason.
            let explained = |code: &String| all.iter().any(|other| other.starts_with(&format!("{code} (")));
            let seen: Vec<_> = all.iter().filter(|code| !explained(code)).map(String::as_str).collect();
            table += &format!("| `{}` | {:?} | {} |\n", method.name, method.tier, seen.join(", "));
        }
        std::fs::write(path, table).unwrap();
    }
    let events = probe.events();
    missing
        .extend(shapes::events().filter(|name| !events.contains(*name)).map(|name| format!("event {name}")));
    assert!(missing.is_empty(), "not seen: {missing:#?}");
}
