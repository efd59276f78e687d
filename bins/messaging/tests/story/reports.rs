//! What users of other systems lost when a process ended, and what happens here.

use crate::actor::Actor;
use crate::killer::Random;
use crate::kills;
use crate::world::{Agent, World, wait};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// How many kills a run in CI makes.
const KILLS: usize = 10;

/// The sender's daemon dies once the relay acked, or the recipient's about the moment an envelope comes: before it was
/// read, before its commit, before the relay got `recv.ack`.
#[test]
fn report_17_a_daemon_killed_mid_handshake_loses_nothing_and_doubles_nothing() {
    let mut world = World::new();
    world.pair();
    let mut alice = Agent::new(&world, "alice", "planner");
    let mut bob = Agent::new(&world, "bob", "builder");
    bob.inbox();
    let mut random = Random(17);
    let mut sent = BTreeSet::new();
    for round in 0..kills(KILLS) {
        if round % 2 == 0 {
            let id = alice.send("bob/builder@desk", &format!("text {round}"), &format!("key {round}"));
            alice.wait_stage(&id, "relayed");
            world.kill_daemon("alice");
            world.start_daemon("alice");
            sent.insert(id);
        } else {
            let id = alice.send("bob/builder@desk", &format!("text {round}"), &format!("key {round}"));
            std::thread::sleep(Duration::from_micros(random.below(6000)));
            world.kill_daemon("bob");
            world.start_daemon("bob");
            sent.insert(id);
        }
        // No more than this waits for one session at once: its guard against loops refuses a twentieth.
        if round % 10 == 9 {
            sent.iter().for_each(|id| alice.wait_stage(id, "delivered"));
        }
    }
    sent.iter().for_each(|id| alice.wait_stage(id, "delivered"));
    let items = bob.inbox();
    let got: BTreeSet<_> = items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(items.len(), got.len(), "nothing came twice");
    assert_eq!(got, sent, "nothing was lost");
}

/// The daemon is another process, the session the same: its name, its unread mail and its tasks.
#[test]
fn report_27_a_session_lives_on_when_its_daemon_is_started_again() {
    let mut world = World::new();
    world.pair();
    let planner = Actor::session(world.home("alice"), "planner");
    let builder = Actor::session(world.home("bob"), "builder");
    let address = "bob/builder@desk";
    builder.call("inbox.list", &json!({}), &[]);
    let mail = planner.call("msg.send", &mail(address, "read me later"), &[]);
    let task = ask(&planner, address, "build it");
    builder.until("task.get", &json!({"taskId": task}), &[], |_| true);
    update(&builder, &task, "TASK_STATE_WORKING");
    let before = builder.call("inbox.list", &json!({}), &[]);

    for kill in [true, false] {
        if kill {
            world.kill_daemon("bob");
        } else {
            assert_eq!(world.daemon("bob").terminate(), Some(0));
        }
        world.start_daemon("bob");
        // The client still holds the dead daemon's connection; it comes back with its key.
        let after = builder.call("inbox.list", &json!({}), &[]);
        assert_eq!(after, before, "unread mail is as it was");
        let mine = |listed: &Value| {
            let entries = listed["entries"].as_array().unwrap();
            entries
                .iter()
                .filter(|entry| entry["local"] == true)
                .map(|entry| entry["address"].clone())
                .collect()
        };
        let addresses: Vec<_> = mine(&world.admin("bob").call("contacts.list", json!({})).unwrap());
        assert_eq!(addresses, [json!(address)], "the same session under the same name");
    }
    let id = &mail["results"][0]["envelopeId"];
    let read = builder.call("item.read", &json!({"id": id}), &[]);
    assert_eq!(read["message"]["parts"][0]["text"], "read me later");
    planner.until("item.read", &json!({"id": id}), &[], |sent| sent["stage"] == "read");
    update(&builder, &task, "TASK_STATE_COMPLETED");
    planner.until("task.get", &json!({"taskId": task}), &[], completed);
}

/// A task that is under way while one daemon after the other starts again: the same task, done once, and the requester
/// learns of it.
#[test]
fn report_65_a_task_under_way_survives_both_daemons() {
    let mut world = World::new();
    world.pair();
    let planner = Actor::session(world.home("alice"), "planner");
    let builder = Actor::session(world.home("bob"), "builder");
    builder.call("inbox.list", &json!({}), &[]);
    let task = ask(&planner, "bob/builder@desk", "build it");
    builder.until("task.get", &json!({"taskId": task}), &[], |_| true);
    update(&builder, &task, "TASK_STATE_WORKING");
    let working = |got: &Value| got["task"]["state"] == "TASK_STATE_WORKING";
    planner.until("task.get", &json!({"taskId": task}), &[], working);

    for home in ["bob", "alice"] {
        world.kill_daemon(home);
        world.start_daemon(home);
        for actor in [&planner, &builder] {
            let got = actor.call("task.get", &json!({"taskId": task}), &[]);
            assert!(working(&got), "{got}");
        }
    }
    // Asking again with the same key is not a second task, neither for the requester nor for the executor.
    assert_eq!(ask(&planner, "bob/builder@desk", "build it"), task);
    update(&builder, &task, "TASK_STATE_COMPLETED");
    let done = planner.until("task.get", &json!({"taskId": task}), &[], completed);
    assert_eq!(done["task"]["taskId"], task.as_str());
    for actor in [&planner, &builder] {
        let listed = actor.call("task.list", &json!({}), &[]);
        assert_eq!(listed["total"], 1, "{listed}");
    }
    let inbox = builder.call("inbox.list", &json!({"kind": "task"}), &[]);
    assert_eq!(inbox["items"].as_array().unwrap().len(), 1, "it was handed out once");
    // A finished task is not run again.
    let again = wait("an answer", || {
        let params = json!({"taskId": task, "state": "TASK_STATE_WORKING"});
        builder.attempt("task.update", params).err().map(|error| error.code.as_str())
    });
    assert_eq!(again, "invalid_state");
}

fn mail(to: &str, text: &str) -> Value {
    json!({"to": to, "parts": [{"text": text}], "idempotencyKey": text})
}

/// Asks for a task. Its id.
fn ask(from: &Actor, to: &str, text: &str) -> String {
    let mut params = mail(to, text);
    params["kind"] = json!("task");
    let sent = from.call("msg.send", &params, &[]);
    sent["results"][0]["taskId"].as_str().unwrap().to_owned()
}

fn update(actor: &Actor, task: &str, state: &str) {
    let params = json!({"taskId": task, "state": state, "message": [{"text": state}]});
    actor.call("task.update", &params, &[]);
}

fn completed(got: &Value) -> bool {
    got["task"]["state"] == "TASK_STATE_COMPLETED"
}
