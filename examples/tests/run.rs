//! The examples run against a real daemon.
#![allow(clippy::unwrap_used)]

#[path = "../../bins/messaging/tests/world/mod.rs"]
mod world;

use serde_json::json;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use world::{Agent, World, wait};

fn example(name: &str) -> PathBuf {
    // target/debug/deps/<test> -> target/debug/examples/<name>, which `cargo test` made.
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples").join(name)
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn team_of_one(world: &mut World) {
    world.start_daemon("alice");
    let relay = world.relay_url();
    let create = json!({"relay": relay, "name": "Blue", "person": "alice", "label": "laptop"});
    world.admin("alice").call("team.create", create).unwrap();
}

#[test]
fn the_echo_agent_answers_executes_and_outlives_its_daemon() {
    let mut world = World::new();
    team_of_one(&mut world);
    let mut command = Command::new(example("echo_agent"));
    command.env("MESSAGING_HOME", world.path("alice")).stdout(Stdio::null());
    let _echo = Running(command.spawn().unwrap());
    let mut asker = Agent::new(&world, "alice", "asker");
    for round in ["first", "second"] {
        let id = asker.send("alice/echo", &format!("hello {round}"), round);
        asker.wait_stage(&id, "replied");
        let params = json!({"to": "alice/echo", "kind": "task", "parts": [{"text": "do it"}]});
        let asked = asker.call("msg.send", params).unwrap();
        let task = json!({"taskId": asked["results"][0]["taskId"]});
        wait("the task to be done", || {
            let record = asker.call("task.get", task.clone()).unwrap();
            assert_ne!(record["task"]["state"], "TASK_STATE_FAILED");
            let done = record["task"]["state"] == "TASK_STATE_COMPLETED";
            done.then(|| assert_eq!(record["task"]["artifacts"][0]["parts"][0]["text"], "do it"))
        });
        world.kill_daemon("alice");
        world.start_daemon("alice");
    }
    let answers = asker.inbox();
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[0]["preview"], "You said: hello first");
}

#[test]
fn the_machine_runs_in_tokio() {
    let mut world = World::new();
    team_of_one(&mut world);
    let output = Command::new(example("tokio_agent"))
        .arg("--once")
        .env("MESSAGING_HOME", world.path("alice"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("registered as alice/tokio@laptop\n"), "{text}");
    assert!(text.contains("alice/tokio@laptop is idle"), "{text}");
}
