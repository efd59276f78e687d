//! When the server begins, comes back and ends.
#![allow(clippy::unwrap_used)]

mod mcp;
#[path = "../../messaging/tests/world/mod.rs"]
mod world;

use mcp::{Mcp, PATIENCE};
use messaging_smol::supervise;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use world::{World, wait};

/// Within a second is what is promised; a loaded machine gets a little more.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

fn team_of_one(world: &mut World) {
    world.start_daemon("alice");
    let relay = world.relay_url();
    let create = json!({"relay": relay, "name": "Blue", "person": "alice", "label": "laptop"});
    world.admin("alice").call("team.create", create).unwrap();
}

fn kept(world: &World, address: &str) {
    wait("the session to be kept", || {
        let contacts = world.admin("alice").call("contacts.list", json!({})).unwrap();
        let entries = contacts["entries"].as_array().unwrap();
        let entry = entries.iter().find(|entry| entry["address"] == address)?;
        (entry["kept"] == true && entry["state"] == "offline").then_some(())
    });
}

/// User report 47: closed input, with nothing to do, with calls under way and with a daemon that never answers; a dead parent.
#[test]
fn report_47_it_ends_with_its_input_and_with_its_parent() {
    let mut world = World::new();
    team_of_one(&mut world);
    let home = world.path("alice");

    let mut idle = Mcp::start(&home, &[]);
    idle.ok("inbox", json!({}));
    idle.close();
    assert!(idle.wait_end() < ENDS_WITHIN);
    kept(&world, "alice/mcp@laptop");

    // Its name and mailbox are its successor's.
    let mut next = Mcp::start(&home, &[]);
    assert_eq!(next.ok("contacts", json!({}))["me"]["address"], "alice/mcp@laptop");
    let call = next.ask("tools/call", json!({"name": "messaging_contacts", "arguments": {}}));
    next.close();
    assert_eq!(next.reply(call)["result"]["isError"], false, "a call under way is answered");
    assert!(next.wait_end() < ENDS_WITHIN);

    // A daemon that hangs holds no server.
    let mut stuck = Mcp::start(&home, &[]);
    stuck.ok("inbox", json!({}));
    let daemon = rustix::process::Pid::from_raw(world.daemon("alice").pid() as i32).unwrap();
    rustix::process::kill_process(daemon, rustix::process::Signal::STOP).unwrap();
    stuck.ask("tools/call", json!({"name": "messaging_contacts", "arguments": {}}));
    std::thread::sleep(Duration::from_millis(100));
    stuck.close();
    let took = stuck.wait_end();
    rustix::process::kill_process(daemon, rustix::process::Signal::CONT).unwrap();
    assert!(took < ENDS_WITHIN);
    kept(&world, "alice/mcp@laptop");

    // The parent dies while somebody else holds the pipe open.
    let script = "\"$0\" --home \"$1\" <&0 & echo $!; wait";
    let mut parent = Command::new("sh")
        .args(["-c", script, mcp::SERVER])
        .arg(&home)
        .env("XDG_STATE_HOME", world.path("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let orphan: u32 = line.trim().parse().unwrap();
    wait("the session", || {
        (world.admin("alice").call("daemon.status", json!({})).unwrap()["sessions"]["live"] == 1)
            .then_some(())
    });
    let held = parent.stdin.take();
    parent.kill().unwrap();
    parent.wait().unwrap();
    let start = Instant::now();
    wait("the orphan to end", || (!supervise::is_alive(orphan)).then_some(()));
    assert!(start.elapsed() < ENDS_WITHIN);
    drop(held);
    kept(&world, "alice/mcp@laptop");
}

#[test]
fn it_starts_the_daemon_where_none_answers_and_follows_its_restarts() {
    let mut world = World::new();
    team_of_one(&mut world);
    world.kill_daemon("alice");
    // The daemon's program is beside the server's: `cargo test` made both.
    world::program();
    let mut mcp = Mcp::start(&world.path("alice"), &["--name", "helper"]);
    let me = mcp.ok("contacts", json!({}))["me"]["address"].clone();
    assert_eq!(me, "alice/helper@laptop");
    let pid = world.admin("alice").hello().pid;
    let stop = Stop(world.home("alice"));

    // Killed, and started again by somebody else or by the next call.
    assert!(
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(pid as i32).unwrap(),
            rustix::process::Signal::KILL
        )
        .is_ok()
    );
    let end = Instant::now() + PATIENCE;
    loop {
        let said = mcp.tool("contacts", json!({}));
        if !said.failed {
            assert_eq!(said.document["me"]["address"], me);
            break;
        }
        assert_eq!(said.code(), "daemon_unavailable");
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(50));
    }
    let again = world.admin("alice").hello().pid;
    assert_ne!(pid, again);

    // Stopped on purpose: an idle server leaves it stopped, and registers again once it runs.
    supervise::stop(&world.home("alice")).unwrap();
    std::thread::sleep(Duration::from_millis(700));
    assert!(
        supervise::stop(&world.home("alice")).is_ok_and(|was| !was),
        "it was started behind its person's back"
    );
    drop(stop);
    world.start_daemon("alice");
    wait("the session to be back", || {
        let status = world.admin("alice").call("daemon.status", json!({})).unwrap();
        (status["sessions"]["live"] == 1).then_some(())
    });
}

struct Stop(messaging_smol::home::Home);

impl Drop for Stop {
    fn drop(&mut self) {
        let _ = supervise::stop(&self.0);
    }
}

#[test]
fn tasks_that_changed_while_the_daemon_was_away_are_counted() {
    let mut world = World::new();
    world.pair();
    let mut alice = Mcp::start(&world.path("alice"), &[]);
    let mut bob = Mcp::start(&world.path("bob"), &[]);
    let sent = alice.send(json!({"to": "bob/mcp", "text": "x", "ask": true}));
    bob.unread();
    bob.ok("task_update", json!({"id": sent["taskId"], "state": "working"}));
    let changed = |said: &mcp::Said| said.tail.as_deref() == Some("Unread: 0. Tasks changed: 1.");
    wait("the change to be told", || changed(&alice.tool("contacts", json!({}))).then_some(()));
    alice.ok("read", json!({"id": sent["taskId"]}));
    assert!(alice.tool("contacts", json!({})).tail.is_none(), "seen");
    world.kill_daemon("alice");
    bob.ok("task_update", json!({"id": sent["taskId"], "state": "completed"}));
    world.start_daemon("alice");
    let done = |document: &Value| (document["task"]["state"] == "completed").then_some(());
    wait("the change to be told", || {
        let said = alice.tool("contacts", json!({}));
        (!said.failed && changed(&said)).then_some(())
    });
    alice.until("read", &json!({"id": sent["taskId"]}), done);
}

#[test]
fn a_home_without_a_team_says_so() {
    let mut world = World::new();
    world.start_daemon("alone");
    let mut mcp = Mcp::start(&world.path("alone"), &[]);
    let said = mcp.tool("inbox", json!({}));
    assert_eq!(said.code(), "no_identity");
    assert_eq!(said.document["error"]["remedy"], "Next: ask your person to create or join a team.");
    // A team founded later is found without a restart.
    let relay = world.relay_url();
    let create = json!({"relay": relay, "name": "Blue", "person": "alice", "label": "laptop"});
    world.admin("alone").call("team.create", create).unwrap();
    mcp.until("inbox", &json!({}), |document| (document["unread"] == 0).then_some(()));
}

#[test]
fn flags() {
    let run = |flags: &[&str]| {
        let output = Command::new(mcp::SERVER).args(flags).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = run(&["--version"]);
    assert_eq!(
        (code, text.trim_end()),
        (Some(0), concat!("messaging-mcp ", env!("CARGO_PKG_VERSION"), " (protocol messaging/1)"))
    );
    assert!(run(&["--help"]).1.contains("--channel"));
    for wrong in [&["--name", "Not A Name"][..], &["--channel", "a b"], &["--unknown"]] {
        assert_eq!(run(wrong).0, Some(2), "{wrong:?}");
    }
}
