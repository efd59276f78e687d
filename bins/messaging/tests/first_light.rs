//! The set-up by hand, over real processes and their restarts, and what the relay gets to see.

#![allow(clippy::unwrap_used)]

mod world;

use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use world::{Agent, PROGRAM, World, contains, wait};

#[test]
fn the_demonstration_shows_every_stage_and_a_completed_task() {
    let output = Command::new(PROGRAM).args(["demo", "--json"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for stage in ["held", "delivered", "handed_to_agent", "read", "replied", "WORKING", "COMPLETED"] {
        assert!(lines.iter().any(|line| line["stage"] == stage), "no {stage} in {text}");
    }
    let summary = lines.last().unwrap();
    assert_eq!((&summary["messages"], &summary["tasks"]), (&json!(4), &json!(1)));
    assert!(summary["totalMs"].as_u64().unwrap() < 30_000, "slow: {text}");
}

/// What `--keep` leaves behind is looked at and stopped with the commands it prints, one after the other.
#[test]
fn the_demonstration_that_is_kept_is_stopped_by_its_own_commands() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(PROGRAM)
        .args(["demo", "--keep"])
        .env("TMPDIR", folder.path())
        // What stays behind keeps it open.
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let commands: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| ["messaging ", "kill ", "rm "].iter().any(|word| line.starts_with(word)))
        .collect();
    assert_eq!(commands.len(), 9, "{text}");
    let path =
        format!("{}:{}", Path::new(PROGRAM).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut failed = Vec::new();
    for command in &commands {
        let run = Command::new("bash").args(["-c", command]).env("PATH", &path).output().unwrap();
        if !run.status.success() {
            failed.push((*command, String::from_utf8_lossy(&run.stderr).into_owned()));
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let relay = commands.iter().find_map(|command| command.strip_prefix("kill ")).unwrap();
    wait("the relay to end", || {
        // It was nobody's child any more, so it is gone or waits to be collected by the container's first process.
        let state = std::fs::read_to_string(format!("/proc/{relay}/stat")).unwrap_or_default();
        (state.is_empty() || state.contains(") Z ")).then_some(())
    });
}

/// The set-up of the README, with the recipient offline and every process restarted on the way.
#[test]
fn two_machines_by_hand_across_restarts() {
    let mut world = World::new();
    world.start_daemon("alice");
    world.start_daemon("bob");
    let relay = world.relay_url();
    world.cli_json(
        "alice",
        &["team", "create", "--relay", &relay, "--name", "Blue", "--person", "alice", "--label", "laptop"],
    );
    let invite = world.cli_json("alice", &["team", "invite", "bob"]);
    let ticket = invite["ticket"].as_str().unwrap().to_owned();
    let joined = world.cli_json("bob", &["team", "join", &ticket, "--label", "desk"]);
    assert_eq!((&joined["person"], &joined["label"]), (&json!("bob"), &json!("desk")));

    // Bob's terminal registers once, so that it is a session; then his machine goes away.
    world.cli_json("bob", &["inbox"]);
    world.cli_json("bob", &["grant", "alice", "--ask", "open", "--yes"]);
    world.until_contact("alice", "bob/cli@desk");
    world.kill_daemon("bob");
    let sent = world.cli_json("alice", &["send", "bob/cli@desk", "are you there?"]);
    let id = sent["results"][0]["envelopeId"].as_str().unwrap().to_owned();
    wait("the relay to have it", || {
        let item = world.cli_json("alice", &["sent", &id]);
        (item["stage"] == "relayed").then_some(())
    });

    // Every process goes and comes back; the message waits at the relay.
    world.kill_daemon("alice");
    world.kill_relay();
    world.start_relay();
    world.start_daemon("alice");
    world.start_daemon("bob");
    let item =
        wait("the message in bob's inbox", || world.cli_json("bob", &["inbox"])["items"].get(0).cloned());
    assert_eq!(item["preview"], "are you there?");
    let read = world.cli_json("bob", &["read", &id]);
    assert_eq!(read["message"]["parts"][0]["text"], "are you there?");
    wait("the read receipt", || (world.cli_json("alice", &["sent", &id])["stage"] == "read").then_some(()));
    let status = world.cli_json("alice", &["status"]);
    assert_eq!(status["identity"]["person"], "alice");
    assert_eq!(status["relay"]["state"], "connected");
}

/// The relay holds and logs no plaintext, also while a message waits in its store.
#[test]
fn the_relay_never_sees_what_a_message_says() {
    let marker = "xyzzy-plaintext-marker-7c41";
    let mut world = World::with_relay_flags(&["--log-level", "debug"]);
    world.pair();
    let mut alice = Agent::new(&world, "alice", "planner");
    let mut bob = Agent::new(&world, "bob", "builder");
    bob.inbox();
    let first = alice.send("bob/builder@desk", &format!("{marker} one"), "one");
    alice.wait_stage(&first, "delivered");
    world.kill_daemon("bob");
    let second = alice.send("bob/builder@desk", &format!("{marker} two"), "two");
    alice.wait_stage(&second, "relayed");
    world.relay().terminate();
    for file in ["relay.db", "relay.log"] {
        assert!(world.path(file).exists(), "{file}");
        assert!(!contains(&world.path(file), marker.as_bytes()), "plaintext in {file}");
    }
    // The check itself can fail: the envelope's id, which the relay does hold, is found the same way.
    assert!(contains(&world.path("relay.db"), second.as_bytes()));
    // Nor do the daemons log it.
    for file in ["alice.log", "bob.log", "alice/logs", "bob/logs"] {
        assert!(!contains(&world.path(file), marker.as_bytes()), "plaintext in {file}");
    }
}
