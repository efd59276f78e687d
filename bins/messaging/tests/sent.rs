//! That nothing that was sent and did not come through is passed over in silence: `send`, `send --wait` and `sent`.

#![allow(clippy::unwrap_used)]

mod world;

use serde_json::{Value, json};
use world::{Agent, World, wait};

fn row(world: &World, id: &str) -> Option<Value> {
    let sent = world.cli_json("alice", &["sent"]);
    sent["items"].as_array().unwrap().iter().find(|row| row["id"] == id).cloned()
}

fn text(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A refusal has its code, its words and its exit status, in the send that waited for it and in the list.
#[test]
fn what_was_refused_says_so_and_why() {
    let mut world = World::new();
    world.pair();
    let mut builder = Agent::new(&world, "bob", "builder");
    builder.inbox();
    world.cli_json("bob", &["inbox"]);
    world.until_contact("alice", "bob/builder@desk");
    world.until_contact("alice", "bob/cli@desk");
    // A terminal takes no tasks: nothing is promised and nothing is sent.
    for to in ["bob/cli", "bob/cli@desk"] {
        let refused = world.cli("alice", &["send", to, "--task", "x"]);
        assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
        assert!(text(&refused).starts_with("messaging: refused: "), "{}", text(&refused));
    }
    assert_eq!(world.cli_json("alice", &["tasks"])["total"], 0);
    // A task that its agent rejects.
    let sent = world.cli_json("alice", &["send", "bob/builder", "--task", "do it", "--wait", "60"]);
    assert_eq!(sent["outcome"]["stage"], "delivered", "{sent}");
    let task = sent["results"][0]["taskId"].as_str().unwrap().to_owned();
    assert_eq!(row(&world, &task).unwrap()["why"], "no agent has begun to work on it");
    let rejected =
        json!({"taskId": task, "state": "TASK_STATE_REJECTED", "message": [{"text": "not today"}]});
    builder.call("task.update", rejected).unwrap();
    let listed = wait("the rejection", || row(&world, &task).filter(|row| row["stage"] == "rejected"));
    assert!(listed["why"].as_str().unwrap().ends_with("not today"), "{listed}");
    // The id of the list is an id of the verb.
    let shown = world.cli("alice", &["sent", &task]);
    assert!(shown.status.success() && text(&shown).contains("│ not today"), "{}", text(&shown));
    let document = world.cli_json("alice", &["sent", &task]);
    assert_eq!(document["task"]["state"], "TASK_STATE_REJECTED", "{document}");
    // A message that their person does not let through.
    world.cli_json("bob", &["grant", "alice", "--ask", "no", "--yes"]);
    let blocked = world.cli("alice", &["--json", "send", "bob/builder", "hello", "--wait", "60"]);
    assert_eq!(blocked.status.code(), Some(1), "{}", text(&blocked));
    let document: Value = serde_json::from_slice(&blocked.stdout).unwrap();
    assert_eq!(document["outcome"]["stage"], "rejected", "{document}");
    let code = document["outcome"]["code"].as_str().unwrap().to_owned();
    let id = document["results"][0]["envelopeId"].as_str().unwrap();
    assert!(row(&world, id).unwrap()["why"].as_str().unwrap().starts_with(&code));
    let blocked = world.cli("alice", &["send", "bob/builder", "hello", "--wait", "60"]);
    assert_eq!(blocked.status.code(), Some(1));
    let said = text(&blocked);
    assert!(said.contains(&format!("({code})")) && said.contains(&format!("messaging: {code}: ")), "{said}");
}

/// A task that waits says for what, and so does what another agent of the person sent.
#[test]
fn what_waits_says_for_what() {
    let mut world = World::new();
    world.pair();
    let mut builder = Agent::new(&world, "bob", "builder");
    builder.inbox();
    let mut planner = Agent::new(&world, "alice", "planner");
    world.until_contact("alice", "bob/builder@desk");
    world.kill_daemon("bob");
    wait("bob's leaving", || {
        let contacts = world.cli_json("alice", &["contacts"]);
        let there =
            contacts["entries"].as_array()?.iter().find(|entry| entry["address"] == "bob/builder@desk")?;
        (there["online"] == false).then_some(())
    });
    let to = json!({"to": "bob/builder", "kind": "task", "parts": [{"text": "later"}]});
    let theirs = planner.call("msg.send", to).unwrap()["results"][0]["taskId"].as_str().unwrap().to_owned();
    let sent = world.cli_json("alice", &["send", "bob/builder", "--task", "later"]);
    let task = sent["results"][0]["taskId"].as_str().unwrap().to_owned();
    for id in [&task, &theirs] {
        wait("the reason", || {
            row(&world, id).filter(|row| row["why"].as_str().unwrap().starts_with("their machine is off"))
        });
        let shown = world.cli("alice", &["sent", id]);
        assert!(shown.status.success(), "{}", text(&shown));
    }
    // In a pipe a column holds what its title says.
    assert!(text(&world.cli("alice", &["sent"])).starts_with("ID\tSINCE\tKIND\t"));
    world.kill_relay();
    wait("the lost link", || {
        (world.cli_json("alice", &["daemon", "health"])["relay"] != "connected").then_some(())
    });
    let said = text(&world.cli("alice", &["send", "bob/builder", "even later"]));
    assert!(said.contains("outbox here") && !said.contains("the relay keeps it"), "{said}");
    assert!(text(&world.cli("alice", &["contacts"])).contains("waits in the outbox here"));
    let nobody = world.cli("alice", &["sent", "01ARZ3NDEKTSV4RRFFQ69G5FAV"]);
    assert!(text(&nobody).starts_with("messaging: not_found"), "{}", text(&nobody));
}

/// The files of a message are saved inside the folder that was named, whatever their sender called them.
#[test]
fn files_are_saved_from_the_command_line() {
    let mut world = World::new();
    world.pair();
    let mut builder = Agent::new(&world, "bob", "builder");
    world.cli_json("alice", &["inbox"]);
    let parts = json!([{"text": "see"}, {"raw": "AAEC", "filename": "../../evil.bin"}]);
    wait("alice's terminal at bob's", || {
        builder.call("msg.send", json!({"to": "alice/cli@laptop", "parts": parts})).ok()
    });
    let item = wait("the mail", || world.cli_json("alice", &["inbox"])["items"].get(0).cloned());
    let folder = world.path("saved");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    let id = item["id"].as_str().unwrap();
    for name in ["evil.bin", "evil-2.bin"] {
        let read = world.cli_json("alice", &["read", id, "--save", folder]);
        assert_eq!(read["saved"], json!([format!("{folder}/{name}")]));
        assert_eq!(std::fs::read(format!("{folder}/{name}")).unwrap(), [0, 1, 2]);
    }
}
