//! What is wrong, and what helps: each state of a home that keeps a machine from working, as `doctor` and `status` say it.

#![allow(clippy::unwrap_used)]

mod world;

use serde_json::Value;
use std::path::Path;
use world::{World, wait};

/// The finding of `check`, its state, detail and fix in one line.
fn finding(world: &World, name: &str, check: &str) -> String {
    let output = world.cli(name, &["--json", "doctor"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = document["checks"].as_array().unwrap().iter().find(|found| found["check"] == check);
    let Some(found) = found else { panic!("no finding of {check} in {document}") };
    let part = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
    format!("{}: {} | {}", part("state"), part("detail"), part("fix"))
}

fn said(world: &World, name: &str, arguments: &[&str]) -> String {
    let output = world.cli(name, arguments);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains(".."), "{text}");
    text
}

fn connected(world: &World, name: &str) {
    wait("the link", || (world.cli_json(name, &["status"])["relay"]["state"] == "connected").then_some(()));
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

/// A relay answers at the address and calls itself something else: the error names the cause, what to do, and so does doctor.
#[test]
fn a_relay_that_calls_itself_something_else() {
    let mut world = World::new();
    world.start_daemon("alice");
    let id = world.relay_url().replace("/v1/connect", "");
    let other = id.replace("127.0.0.1", "localhost");
    let create = |relay: &str| {
        let flags = ["--relay", relay, "--name", "Blue", "--person", "alice", "--label", "laptop"];
        said(&world, "alice", &[&["team", "create"][..], &flags].concat())
    };
    has(
        &create(&other),
        &[
            "relay_unavailable: the challenge names another relay id",
            &id,
            "Next: use the address",
            "--relay-id",
        ],
    );
    has(
        &finding(&world, "alice", "relay"),
        &["look: none is set", "another relay id", "use the address", &id],
    );
    let nobody = id.replace(&world.relay_url().rsplit(':').next().unwrap().replace("/v1/connect", ""), "1");
    has(&create(&nobody), &["cannot be reached: connect", "Next: check that a relay runs at that address"]);
    has(&create(&id), &["is founded"]);
    connected(&world, "alice");
    has(&finding(&world, "alice", "relay"), &["ok: ", "connected"]);
    // The address in config.json, changed by hand.
    world.kill_daemon("alice");
    let config = world.path("alice").join("config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("127.0.0.1", "localhost")).unwrap();
    world.start_daemon("alice");
    wait("the finding", || {
        let found = finding(&world, "alice", "relay");
        (found.contains("another relay id") && found.contains("use the address")).then_some(())
    });
    has(&said(&world, "alice", &["log", "--level", "warn"]), &["link.lost", "why=relay_id"]);
}

/// Keys gone, removed, copied: nobody is told that they are somebody, or to create a team.
#[test]
fn homes_that_are_nobody_or_two() {
    let mut world = World::new();
    world.pair();
    // Copied.
    world.kill_daemon("bob");
    copy(&world.path("bob"), &world.path("copy"));
    world.start_daemon("bob");
    connected(&world, "bob");
    world.start_daemon("copy");
    wait("the finding", || {
        let found = finding(&world, "bob", "relay");
        (found.starts_with("wrong: ") && found.contains("this home was copied")).then_some(())
    });
    has(&said(&world, "bob", &["log", "--level", "warn"]), &["why=replaced"]);
    // The one that took over is replaced in turn; what stands is told apart from what is now.
    world.kill_daemon("copy");
    world.admin("bob").call("daemon.woke", serde_json::json!({})).unwrap();
    connected(&world, "bob");
    has(&finding(&world, "bob", "relay"), &["wrong: ", "connected; earlier: another daemon"]);
    has(&said(&world, "bob", &["status"]), &["earlier: another daemon with this identity"]);

    // Without keys.
    world.kill_daemon("bob");
    let identity = world.path("bob").join("identity.json");
    std::fs::rename(&identity, world.path("kept.json")).unwrap();
    world.start_daemon("bob");
    has(&finding(&world, "bob", "team"), &["ok: Blue: known from before the keys were lost"]);
    has(&finding(&world, "bob", "keys"), &["wrong: identity.json is gone", "put it back"]);
    has(&finding(&world, "bob", "relay"), &["ok: ", "does not connect"]);
    let status = said(&world, "bob", &["status"]);
    has(&status, &["This home has no keys", "Team     Blue\n", "identity.json is gone"]);
    assert!(!status.contains("in no team"), "{status}");
    // No other team is the way out.
    let relay = world.relay_url();
    let create = ["team", "create", "--relay", &relay, "--name", "B", "--person", "bob", "--label", "desk"];
    for verb in [&["inbox"][..], &["contacts"], &["team", "info"], &["send", "alice", "x"], &create] {
        let said = said(&world, "bob", verb);
        has(&said, &["missing", "Next: put identity.json back from a backup"]);
    }
    world.kill_daemon("bob");
    std::fs::rename(world.path("kept.json"), &identity).unwrap();

    // Removed, and told so with the signed entry.
    world.start_daemon("bob");
    connected(&world, "bob");
    has(&said(&world, "alice", &["team", "remove", "bob@desk", "--yes"]), &["is removed"]);
    wait("bob to know", || {
        let found = finding(&world, "bob", "team");
        (found.starts_with("wrong: Blue: this machine was removed") && found.contains("new ticket"))
            .then_some(())
    });
    let status = said(&world, "bob", &["status"]);
    has(&status, &["This machine was removed from its team"]);
    assert!(!status.contains("in no team"), "{status}");
    has(&finding(&world, "bob", "relay"), &["ok: ", "does not connect"]);
}

/// A home that no daemon starts with: doctor names the file, the place in it and what to do.
#[test]
fn homes_that_no_daemon_starts_with() {
    let mut world = World::new();
    world.pair();
    world.kill_daemon("alice");
    let (config, store) = (world.path("alice").join("config.json"), world.path("alice").join("messaging.db"));
    // The daemon of this home, not of another.
    let start = format!("| run `messaging --home {} daemon start`", world.path("alice").display());
    has(&finding(&world, "alice", "daemon"), &["daemon_unavailable", &start]);
    let good = std::fs::read_to_string(&config).unwrap();
    for (text, parts) in [
        ("{\n  \"relay\": ,\n}", &["wrong: config.json is not a JSON object (line 2, column"][..]),
        (
            "{\n  \"presence\": {\n    \"share\": [\"everything\"]\n  }\n}",
            &["wrong: config.json: presence.share (line 3) is not what it may be", "correct "],
        ),
        ("{\n  \"relay\": \"http://x\"\n}", &["wrong: config.json: relay (line 2)"]),
    ] {
        std::fs::write(&config, text).unwrap();
        has(&finding(&world, "alice", "config"), parts);
        let doctor = said(&world, "alice", &["doctor"]);
        assert!(!doctor.contains("create a team"), "{doctor}");
        has(&finding(&world, "alice", "daemon"), &["do what is said above"]);
        has(&said(&world, "alice", &["daemon", "start"]), &["config.json", "invalid_request"]);
    }
    std::fs::write(&config, good.replacen('{', "{\"presense\":{},", 1)).unwrap();
    has(
        &finding(&world, "alice", "config"),
        &["look: config.json has members that nobody reads: presense (line 1)"],
    );
    std::fs::write(&config, &good).unwrap();

    let whole = std::fs::read(&store).unwrap();
    for (what, bytes, parts) in [
        ("zeros", vec![0; whole.len()], &["damaged", "put messaging.db back from a backup"][..]),
        ("another file", b"# notes".to_vec(), &["no store of this generation", "put messaging.db back"]),
        ("half", whole[..whole.len() / 2].to_vec(), &["damaged", "put messaging.db back"]),
        (
            "garbage",
            [&whole[..64], &vec![0xA5; whole.len() - 64]].concat(),
            &["damaged", "put messaging.db back"],
        ),
    ] {
        std::fs::write(&store, &bytes).unwrap();
        let found = finding(&world, "alice", "store");
        has(&format!("{what}: {found}"), parts);
        has(&found, &["wrong: "]);
        has(&finding(&world, "alice", "daemon"), &["do what is said above"]);
        assert!(std::fs::read(&store).unwrap() == bytes, "{what}: doctor wrote to it");
    }
    std::fs::remove_file(&store).unwrap();
    has(&finding(&world, "alice", "store"), &["wrong: messaging.db is gone"]);
    std::fs::write(&store, &whole).unwrap();
    has(&finding(&world, "alice", "daemon"), &[&start]);
    assert!(std::fs::read(&store).unwrap() == whole, "doctor wrote to a store whose daemon was killed");
    world.start_daemon("alice");
    has(&finding(&world, "alice", "store"), &["ok: "]);
}

fn copy(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(done.success());
    let _ = std::fs::remove_dir_all(to.join("run"));
}
