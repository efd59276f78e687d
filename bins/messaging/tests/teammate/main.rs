//! What a hostile member of the team gets, over a real relay, with keys and an address of its own: the specified
//! answer, or none, and nothing of it to be seen at who it attacks, who is killed now and then meanwhile.

#![allow(clippy::unwrap_used)]

mod cases;
mod flood;
mod local;
mod mallory;
mod stage;
mod texts;
#[path = "../world/mod.rs"]
mod world;

use mallory::{Draft, Said};
use serde_json::json;
use stage::Stage;

#[test]
fn every_bad_envelope_is_answered_as_specified_and_changes_nothing() {
    let mut stage = Stage::new();
    let cases = cases::headers(&mut stage);
    stage.nothing_comes_of(cases);
    stage.nothing_comes_of(cases::bodies());
    let cases = cases::chains(&mut stage);
    stage.nothing_comes_of(cases);
    let cases = cases::progress(&mut stage);
    stage.nothing_comes_of(cases);
    let cases = cases::chats(&mut stage);
    stage.nothing_comes_of(cases);

    // What is allowed, at its edges, and readable.
    let before = stage.bob.inbox().len();
    let edges = cases::edges();
    let count = edges.len();
    stage.try_all(edges);
    let items = stage.bob.inbox();
    assert_eq!(items.len(), before + count);
    for item in &items[before..] {
        assert_eq!((&item["from"]["person"], &item["consent"]), (&json!("mallory"), &json!("guarded")));
        stage.bob.read(item["id"].as_str().unwrap());
    }
    again(&mut stage);
    out_of_order(&mut stage);
    old_keys(&mut stage);
    stage.all_is_well();
}

/// One envelope twice, its id with other content, and its content under another id.
fn again(stage: &mut Stage) {
    let before = stage.bob.inbox().len();
    let mallory = &mut stage.mallory;
    let payload = json!({
        "kind": "message", "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": mallory::MARK}]},
    });
    let (id, text) = mallory.make(&Draft::mail(&payload));
    for _ in 0..2 {
        assert_eq!(mallory.send(&id, &text), Said::Relayed);
    }
    let (_, other) = mallory.make(&Draft::mail(&payload).with(json!({"id": id})));
    assert_eq!(mallory.send(&id, &other), Said::Refused("invalid_request".to_owned()));
    mallory.settle();
    assert_eq!(mallory.said(&id).len(), 1, "a duplicate is not answered");
    assert_eq!(stage.bob.inbox().len(), before + 1);
    // A line again under another envelope's id, and its id for other words: the first stays.
    let said = stage.mallory.ulid();
    let line = |text: &str| {
        let message = json!({"messageId": said, "role": "ROLE_USER", "parts": [{"text": text}]});
        Draft::line(&json!({"kind": "message", "message": message}))
    };
    for text in ["one", "one", "two"] {
        let id = stage.mallory.relayed(&line(text));
        assert_eq!(stage.mallory.verdict(&id), ("delivered".to_owned(), None));
    }
    let read = json!({"conversation": "dm:mallory"});
    let lines = stage.world.admin("bob").call("conv.read", read).unwrap()["lines"].clone();
    assert_eq!(lines.as_array().unwrap().len(), 1);
    assert_eq!(lines[0]["text"], "one");
}

/// Receipts and updates of what is its own, in any order: forward only.
fn out_of_order(stage: &mut Stage) {
    let (task, request) = stage.my_task.clone();
    let mine = stage.mine.clone();
    let receipt =
        |of: &str, reached: &str| Draft::of("receipt", &json!({"ref": of, "stage": reached, "at": 1}));
    for reached in ["read", "delivered", "held", "handed_to_agent", "read"] {
        stage.mallory.relayed(&receipt(&mine, reached));
    }
    stage.mallory.settle();
    let sent = stage.bob.read(&mine);
    let stages: Vec<&str> =
        sent["history"].as_array().unwrap().iter().map(|step| step["stage"].as_str().unwrap()).collect();
    assert_eq!(stages, ["accepted", "relayed", "read"]);
    let status = |state: &str| {
        let payload = json!({"taskId": task, "contextId": "c", "status": {"state": state}});
        Draft::of("task.status", &payload).replying(&request)
    };
    for (state, code) in [
        ("TASK_STATE_INPUT_REQUIRED", None),
        ("TASK_STATE_REJECTED", Some("invalid_state")),
        ("TASK_STATE_COMPLETED", None),
        ("TASK_STATE_WORKING", Some("invalid_state")),
        ("TASK_STATE_COMPLETED", Some("invalid_state")),
    ] {
        let id = stage.mallory.relayed(&status(state));
        let said = stage.mallory.verdict(&id);
        assert_eq!(said.1.as_deref(), code, "{state}");
    }
    // It ended: a rejection of its request by the one who did it moves nothing.
    let rejected = json!({"ref": request, "stage": "rejected", "code": "refused", "at": 1});
    stage.mallory.relayed(&Draft::of("receipt", &rejected));
    stage.mallory.settle();
    let shown = stage.bob.call("task.get", json!({"taskId": task})).unwrap();
    assert_eq!(shown["task"]["state"], "TASK_STATE_COMPLETED");
}

/// Sealed to the key bob had before, which he still holds, and to one he never had.
fn old_keys(stage: &mut Stage) {
    stage.world.cli_json("bob", &["identity", "rotate-enc"]);
    let payload = json!({
        "kind": "message", "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": mallory::MARK}]},
    });
    let stranger = messaging_proto::key::EncSecret::from_bytes([9; 32]).public();
    stage.try_all(vec![
        ("to the old key", Draft::mail(&payload), stage::Fate::Delivered),
        (
            "to no key of his, before he changed it",
            Draft::mail(&payload).sealed_to(stranger),
            stage::Fate::Rejected("roster_conflict"),
        ),
    ]);
    stage.mallory.sync();
    stage.try_all(vec![
        ("to the new key", Draft::mail(&payload), stage::Fate::Delivered),
        (
            "to no key of his",
            Draft::mail(&payload).sealed_to(stranger),
            stage::Fate::Rejected("bad_signature"),
        ),
    ]);
    // Its own keys, again and again: nobody else is held up.
    for _ in 0..20 {
        stage.mallory.rekey();
    }
    stage.mallory.settle();
}
