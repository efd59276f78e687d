//! What a tool call comes to when the daemon behind it is stuck, dies in the middle, or is started by ten servers at once; and
//! what standard input may hold.
#![allow(clippy::unwrap_used)]

mod mcp;
#[path = "../../messaging/tests/world/mod.rs"]
mod world;

use mcp::Mcp;
use messaging_smol::home::Home;
use messaging_smol::supervise;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use world::World;

/// Long enough for a call to reach a daemon that does not answer it. Too short, a test checks less and still passes.
const ON_ITS_WAY: Duration = Duration::from_millis(300);

/// Stops whatever daemon owns a home when dropped: servers start some.
struct Stop(Home);

impl Drop for Stop {
    fn drop(&mut self) {
        let _ = supervise::stop(&self.0);
    }
}

fn signal(world: &mut World, name: &str, signal: Signal) {
    let pid = i32::try_from(world.daemon(name).pid()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    if signal == Signal::STOP {
        // Not before each of its threads stands still: one that waits for the disk goes on until it need not.
        let stopped = || {
            let mut threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
            threads.all(|thread| {
                let stat = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap_or_default();
                stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
            })
        };
        world::wait("it to stop", || stopped().then_some(()));
    }
}

fn call(mcp: &mut Mcp, verb: &str, arguments: &Value) -> u64 {
    mcp.ask("tools/call", json!({"name": format!("messaging_{verb}"), "arguments": arguments}))
}

fn team_of_one(world: &mut World) {
    world.start_daemon("alice");
    let create = json!({"relay": world.relay_url(), "name": "Blue", "person": "alice", "label": "laptop"});
    world.admin("alice").call("team.create", create).unwrap();
}

/// What can be asked twice is asked again of the daemon that comes next; what cannot is an error with a step, and did not
/// take effect twice.
#[test]
fn a_daemon_that_dies_in_the_middle_of_a_call() {
    let mut world = World::new();
    world.pair();
    world::program();
    let mut alice = Mcp::start(&world.path("alice"), &[]);
    let mut bob = Mcp::start(&world.path("bob"), &[]);
    let _stop = Stop(world.home("bob"));
    let task = alice.send(json!({"to": "bob/mcp", "text": "Count", "ask": true}))["taskId"].clone();
    bob.unread();

    signal(&mut world, "bob", Signal::STOP);
    let id = call(&mut bob, "task_update", &json!({"id": task, "state": "working"}));
    std::thread::sleep(ON_ITS_WAY);
    world.kill_daemon("bob");
    let reply = bob.reply(id);
    let result = &reply["result"];
    // On a machine so slow that the call comes after the daemon's end, it finds the next daemon instead.
    let late = result["isError"] == false;
    if !late {
        let error = &result["structuredContent"]["error"];
        assert_eq!(error["code"], "daemon_unavailable", "{error}");
        assert!(error["message"].as_str().unwrap().starts_with("daemon_unavailable: "), "{error}");
        assert_eq!(error["remedy"], "Next: ask your person to run: messaging daemon start.");
        assert_eq!(error.as_object().unwrap().len(), 3);
    }
    // The next call finds a daemon, which it may have started, and the task as it was.
    let state = if late { "working" } else { "submitted" };
    bob.until("tasks", &json!({"role": "asked"}), |document| {
        (document["tasks"][0]["state"] == state).then_some(())
    });

    // What reads is answered by the daemon that comes after.
    let pid = world.admin("bob").hello().pid;
    let id = i32::try_from(pid).unwrap();
    kill_process(Pid::from_raw(id).unwrap(), Signal::STOP).unwrap();
    let call = call(&mut bob, "read", &json!({"id": task}));
    std::thread::sleep(ON_ITS_WAY);
    kill_process(Pid::from_raw(id).unwrap(), Signal::KILL).unwrap();
    let reply = bob.reply(call);
    assert_eq!(reply["result"]["isError"], false, "{reply}");
    assert_eq!(reply["result"]["structuredContent"]["task"]["id"], task);
    assert_ne!(world.admin("bob").hello().pid, pid);
}

/// A call that its client gave up is not answered any more, and takes nothing with it.
#[test]
fn a_cancelled_call_is_not_answered() {
    let mut world = World::new();
    team_of_one(&mut world);
    let mut mcp = Mcp::start(&world.path("alice"), &[]);
    mcp.ok("inbox", json!({}));
    signal(&mut world, "alice", Signal::STOP);
    let given_up = call(&mut mcp, "contacts", &json!({}));
    std::thread::sleep(ON_ITS_WAY);
    mcp.write(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": given_up}}),
    );
    // What comes in is taken in its order: this is answered once the call was given up.
    let listed = mcp.ask("tools/list", json!({}));
    assert_eq!(mcp.line()["id"], listed);
    signal(&mut world, "alice", Signal::CONT);
    for _ in 0..3 {
        let asked = call(&mut mcp, "contacts", &json!({}));
        let line = mcp.line();
        assert_eq!((&line["id"], &line["result"]["isError"]), (&json!(asked), &json!(false)), "{line}");
    }
    assert_eq!(world.admin("alice").call("daemon.status", json!({})).unwrap()["sessions"]["live"], 1);
}

/// §8.2: a daemon is started only where none answers; of ten that try at once all end up at the same one.
#[test]
fn ten_servers_at_once_start_one_daemon() {
    let mut world = World::new();
    team_of_one(&mut world);
    world.kill_daemon("alice");
    world::program();
    let home = world.path("alice");
    let _stop = Stop(world.home("alice"));
    let state = home.with_extension("state");
    let mut servers: Vec<Mcp> = (0..10).map(|_| Mcp::spawn(mcp::command(&home, &state, &[]))).collect();
    let mut names = BTreeSet::new();
    for server in &mut servers {
        server.shake_hands();
        let address = server
            .until("contacts", &json!({}), |document| document["me"]["address"].as_str().map(str::to_owned));
        names.insert(address);
    }
    let wanted: BTreeSet<String> = (1..=10)
        .map(|n| if n == 1 { "alice/mcp@laptop".to_owned() } else { format!("alice/mcp-{n}@laptop") })
        .collect();
    assert_eq!(names, wanted);
    let status = world.admin("alice").call("daemon.status", json!({})).unwrap();
    assert_eq!(status["sessions"], json!({"live": 10, "kept": 0}));
    assert_eq!(Some(u64::from(world.home("alice").locked_by().unwrap())), status["pid"].as_u64());
}

/// Standard output holds protocol alone, whatever comes in; what is no request ends nothing.
#[test]
fn what_is_no_request_ends_nothing() {
    let mut world = World::new();
    team_of_one(&mut world);
    let mut mcp = Mcp::start(&world.path("alice"), &[]);
    mcp.write_raw(b"\n\r\nnot json\n{\"half\": \n\xff\xfe\n");
    let unknown = mcp.ask("no/such", json!({}));
    let line = mcp.line();
    assert_eq!((&line["id"], &line["error"]["code"]), (&json!(unknown), &json!(-32601)), "{line}");
    let nobody = mcp.ask("tools/call", json!({"name": "messaging_grant", "arguments": {}}));
    let line = mcp.line();
    assert_eq!((&line["id"], &line["error"]["code"]), (&json!(nobody), &json!(-32602)), "{line}");
    // Without arguments at all, and with a member that is null: absent is absent, and null is a value.
    let bare = mcp.ask("tools/call", json!({"name": "messaging_inbox"}));
    assert_eq!(mcp.reply(bare)["result"]["isError"], false);
    assert_eq!(mcp.code("inbox", json!({"cursor": null})), "invalid_request");
    assert_eq!(mcp.ok("inbox", json!({}))["items"], json!([]));
}

/// A store that no daemon of this release opens is said by its code, its reason and the step of that reason.
#[test]
fn a_store_that_is_refused_is_told_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    messaging_smol::home::private_directory(&home, 0o700).unwrap();
    std::fs::write(home.join("messaging.db"), b"SQLite format 3\0 and so on").unwrap();
    world::program();
    let mut mcp = Mcp::start(&home, &[]);
    let said = mcp.tool("contacts", json!({}));
    let error = &said.document["error"];
    assert_eq!((said.code(), &error["reason"]), ("store_refused", &json!("pre-reset")), "{error}");
    assert_eq!(error["remedy"], "Next: ask your person to move the home aside and set up again.");
    assert_eq!(error.as_object().unwrap().len(), 4, "{error}");
}

/// §8.2 "Hello": a daemon of another release is told of and neither replaced nor called; a home that others can write is
/// nobody's to use.
#[test]
fn another_release_and_a_home_that_is_not_private_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(&folder.path().join("home"));
    messaging_smol::home::private_directory(&home.run(), 0o700).unwrap();
    let set = |mode: u32| std::fs::set_permissions(home.path(), PermissionsExt::from_mode(mode)).unwrap();
    set(0o700);
    let agents = UnixListener::bind(home.agent_socket()).unwrap();
    let admins = UnixListener::bind(home.admin_socket()).unwrap();
    let said = Arc::new(Mutex::new(Vec::new()));
    for listener in [agents, admins] {
        let said = Arc::clone(&said);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let params = json!({"daemon": "messagingd", "version": "9.9.9", "protocol": 1, "pid": 7});
                let hello = json!({"jsonrpc": "2.0", "method": "hello", "params": params});
                let _ = writeln!(stream, "{hello}");
                let mut all = Vec::new();
                let _ = stream.read_to_end(&mut all);
                said.lock().unwrap().extend(all);
            }
        });
    }
    world::program();
    let mut mcp = Mcp::start(home.path(), &[]);
    let answer = mcp.tool("contacts", json!({}));
    assert_eq!(answer.code(), "daemon_mismatch");
    let error = &answer.document["error"];
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("9.9.9") && message.contains(env!("CARGO_PKG_VERSION")), "{message}");
    assert_eq!(error["remedy"], "Next: ask your person to stop that daemon and start this version's.");
    assert!(!home.store().exists(), "no other daemon was started");
    set(0o770);
    assert_eq!(mcp.code("contacts", json!({})), "forbidden");
    mcp.close();
    mcp.wait_end();
    assert!(said.lock().unwrap().is_empty(), "a daemon of another release was called");
}
