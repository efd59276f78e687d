//! Tasks.

use crate::mail::SECRET;
use crate::probe::{AGENT, LEAD, Probe};
use serde_json::{Value, json};

const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// Alice's lead asks bob's agent for a task. Its id, once bob has it.
fn asked(probe: &mut Probe) -> String {
    let params = json!({"key": LEAD, "to": "bob/agent@desk", "kind": "task", "parts": [{"text": "build"}]});
    let sent = probe.ok("alice", "msg.send", params);
    let id = sent["results"][0]["taskId"].as_str().unwrap().to_owned();
    probe.until("bob", "task.get", &json!({"key": AGENT, "taskId": id}), |_| true);
    id
}

pub(crate) fn tasks(probe: &mut Probe) {
    let id = asked(probe);
    let of = |key: &str, more: Value| {
        let mut params = json!({"key": key, "taskId": id});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        params
    };
    let working = json!({"state": "TASK_STATE_WORKING"});
    probe.err("alice", "task.update", of(LEAD, working.clone()), "invalid_state (not executor)");
    probe.err("bob", "task.update", of(AGENT, json!({})), "invalid_request (neither)");
    let artifact = json!({"artifact": {"parts": [{"text": "x"}]}, "message": [{"text": "x"}]});
    probe.err("bob", "task.update", of(AGENT, artifact), "invalid_request (message without state)");
    let secret = json!({"state": "TASK_STATE_WORKING", "message": [{"text": SECRET}]});
    probe.err("bob", "task.update", of(AGENT, secret), "secret_refused");
    let large = json!({"artifact": {"parts": [{"text": "x".repeat(300_000)}]}});
    probe.err("bob", "task.update", of(AGENT, large), "too_large");
    probe.ok("bob", "task.update", of(AGENT, working.clone()));
    probe.err(
        "bob",
        "task.update",
        of(AGENT, json!({"state": "TASK_STATE_REJECTED"})),
        "invalid_state (transition)",
    );
    probe.err(
        "bob",
        "task.update",
        json!({"key": AGENT, "taskId": ULID, "state": "TASK_STATE_WORKING"}),
        "not_found (taskId)",
    );
    let artifact = json!({"artifact": {"name": "log", "parts": [{"text": "built"}]}});
    probe.ok("bob", "task.update", of(AGENT, artifact));
    let listed = probe.ok("bob", "task.list", json!({"key": AGENT, "role": "executor"}));
    assert_eq!((&listed["total"], &listed["tasks"][0]["taskId"]), (&json!(1), &json!(id)));
    probe.err("bob", "task.list", json!({"key": AGENT, "cursor": "what"}), "invalid_request (cursor)");
    probe.err("bob", "task.get", json!({"key": AGENT, "taskId": ULID}), "not_found (taskId)");
    // Refused before the state is looked at, and only the requester may cancel.
    probe.err("bob", "task.cancel", of(AGENT, json!({})), "invalid_state (not requester)");
    probe.err("alice", "task.cancel", of(LEAD, json!({"reason": SECRET})), "secret_refused");
    probe.err("alice", "task.cancel", json!({"key": LEAD, "taskId": ULID}), "not_found (taskId)");
    let done = json!({"state": "TASK_STATE_COMPLETED", "message": [{"text": "done"}]});
    probe.ok("bob", "task.update", of(AGENT, done));
    probe.err("bob", "task.update", of(AGENT, working), "invalid_state (terminal)");
    let get = json!({"key": LEAD, "taskId": id});
    let record = probe.until("alice", "task.get", &get, |got| got["task"]["state"] == "TASK_STATE_COMPLETED");
    assert_eq!(record["task"]["artifacts"][0]["parts"][0]["text"], "built");
    probe.err("alice", "task.cancel", of(LEAD, json!({})), "invalid_state (terminal)");
    // A finished task takes no more messages and delegates nothing.
    let follow = json!({"key": LEAD, "to": "bob/agent@desk", "taskId": id, "parts": [{"text": "and?"}]});
    probe.err("alice", "msg.send", follow, "invalid_state (mail: taskId)");
    let behalf = json!({"key": AGENT, "to": "alice/lead@laptop", "kind": "task", "parts": [{"text": "x"}],
        "onBehalfOf": {"taskId": id}});
    probe.err("bob", "msg.send", behalf, "invalid_state (mail: onBehalfOf.taskId)");

    let second = asked(probe);
    probe.ok("alice", "task.cancel", json!({"key": LEAD, "taskId": second, "reason": "no more"}));
    let get = json!({"key": LEAD, "taskId": second});
    probe.until("alice", "task.get", &get, |got| got["task"]["state"] == "TASK_STATE_CANCELED");
}
