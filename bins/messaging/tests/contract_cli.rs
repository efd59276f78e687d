//! The command line against its contract (contract ipc §7, §11.1; `messaging/1 §8.2` "Hello", §8.10): what a verb prints is the
//! method's result, one document and nothing else whatever fails behind it, and the exit status says what happened. A scripted
//! daemon stands in where a real one would have to fail at a given moment.
#![allow(clippy::unwrap_used)]

mod terminal;
mod world;

use messaging_smol::home::Home;
use messaging_smol::supervise;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use terminal::Terminal;
use world::{PATIENCE, PROGRAM, World};

const RELEASE: &str = env!("CARGO_PKG_VERSION");

fn run(home: &Path, arguments: &[&str]) -> Output {
    program_run(Path::new(PROGRAM), home, arguments)
}

fn program_run(program: &Path, home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).arg("--home").arg(home).env_remove("MESSAGING_HOME").stdin(Stdio::null());
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The one document on standard output: a line that ends, and nothing else.
fn document(what: &str, output: &Output) -> Value {
    let out = text(&output.stdout);
    assert!(out.ends_with('\n') && out.lines().count() == 1, "{what}: {out:?} {}", text(&output.stderr));
    serde_json::from_str(out).unwrap_or_else(|_| panic!("{what}: {out:?}"))
}

fn hello(version: &str, protocol: u64) -> Option<String> {
    hello_of(version, protocol, 7)
}

fn hello_of(version: &str, protocol: u64, pid: u32) -> Option<String> {
    let params = json!({"daemon": "messagingd", "version": version, "protocol": protocol, "pid": pid});
    Some(json!({"jsonrpc": "2.0", "method": "hello", "params": params}).to_string())
}

/// Serves every connection to a home's admin socket: its first line, then an answer to each method. Without either it closes.
fn scripted(
    folder: &Path,
    hello: Option<String>,
    answer: impl Fn(&str) -> Option<Value> + Send + 'static,
) -> PathBuf {
    let home = Home::new(&folder.join("home"));
    for path in [home.path().to_owned(), home.run()] {
        std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
    }
    let listener = UnixListener::bind(home.admin_socket()).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut writer = stream.try_clone().unwrap();
            let Some(hello) = &hello else { continue };
            let _ = writeln!(writer, "{hello}");
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let request: Value = serde_json::from_str(&line).unwrap();
                let Some(mut reply) = answer(request["method"].as_str().unwrap()) else { break };
                reply["jsonrpc"] = json!("2.0");
                reply["id"] = request["id"].clone();
                let _ = writeln!(writer, "{reply}");
            }
        }
    });
    home.path().to_owned()
}

/// Stops the daemon of a home when dropped.
struct Stop(Home);

impl Drop for Stop {
    fn drop(&mut self) {
        let _ = supervise::stop(&self.0);
    }
}

/// §8.10: `messagingd cli …` and a link named `messaging` are the command line, whose `daemon start` starts that executable.
#[test]
fn the_daemons_executable_is_the_command_line_and_starts_itself() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = PathBuf::from(env!("CARGO_BIN_EXE_messagingd"));
    let link = folder.path().join("messaging");
    std::os::unix::fs::symlink(&daemon, &link).unwrap();
    for (name, program, words) in [("a", &daemon, &["cli"][..]), ("b", &link, &[])] {
        let home = folder.path().join(name);
        let _stop = Stop(Home::new(&home));
        let with = |more: &[&str]| program_run(program, &home, &[words, &["--json"], more].concat());
        let output = with(&["daemon", "start"]);
        let started = document("daemon start", &output);
        assert_eq!((output.status.code(), &started["started"]), (Some(0), &json!(true)), "{started}");
        let pid = started["pid"].as_u64().unwrap();
        if let Ok(executable) = std::fs::read_link(format!("/proc/{pid}/exe")) {
            assert_eq!(executable, std::fs::canonicalize(&daemon).unwrap());
        }
        assert_eq!(document("again", &with(&["daemon", "start"]))["started"], false);
        // The service's file starts it the same way.
        let shown = document("service show", &with(&["service", "show", "--kind", "systemd"]));
        let unit = shown["text"].as_str().unwrap();
        let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        assert!(line.ends_with(&format!("/messagingd\" --home \"{}\"", home.display())), "{line}");
        // §11.1: the result is `daemon.stop`'s.
        let stopped = document("daemon stop", &with(&["daemon", "stop"]));
        assert_eq!(stopped, json!({"ok": true, "pid": pid, "stopped": true}));
        assert!(!supervise::is_alive(u32::try_from(pid).unwrap()), "it returns once the process has ended");
        assert_eq!(document("again", &with(&["daemon", "stop"]))["stopped"], false);
    }
}

fn alone(world: &mut World) {
    world.start_daemon("alice");
    let create = json!({"relay": world.relay_url(), "name": "Blue", "person": "alice", "label": "laptop"});
    world.admin("alice").call("team.create", create).unwrap();
}

/// Which terminals' sessions there are.
fn terminals(world: &World) -> BTreeSet<String> {
    let contacts = world.admin("alice").call("contacts.list", json!({})).unwrap();
    let of_terminals = |entry: &&Value| entry["client"] == "cli";
    let entries = contacts["entries"].as_array().unwrap().iter().filter(of_terminals);
    entries.map(|entry| entry["address"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_first_ten_commands_at_once_are_one_session() {
    let mut world = World::new();
    alone(&mut world);
    let home = world.path("alice");
    let outputs: Vec<Output> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..10).map(|_| scope.spawn(|| run(&home, &["--json", "inbox"]))).collect();
        started.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for output in outputs {
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    }
    assert_eq!(terminals(&world), BTreeSet::from(["alice/cli@laptop".to_owned()]));
    let file = home.join("cli.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let keys: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(keys.as_object().unwrap().len(), 1);
    // Another name may be said anywhere.
    for words in [&["--as", "one", "inbox"][..], &["inbox", "--as", "two"], &["inbox", "--as=three"]] {
        assert!(run(&home, words).status.success(), "{words:?}");
    }
    let names = ["cli", "one", "three", "two"].map(|name| format!("alice/{name}@laptop"));
    assert_eq!(terminals(&world), BTreeSet::from(names));
    assert_eq!(run(&home, &["inbox", "--as"]).status.code(), Some(2));
}

/// With `--json` a verb prints the result of its method and nothing besides.
#[test]
fn the_document_is_the_methods_result() {
    let mut world = World::new();
    world.pair();
    let home = world.path("alice");
    for arguments in [&["channel", "create", "dev", "bob"][..], &["send", "me", "a note"]] {
        assert!(run(&home, arguments).status.success(), "{arguments:?}");
    }
    let admin = world.admin("alice");
    for (words, method, params) in [
        (&["daemon", "status"][..], "daemon.status", json!({})),
        (&["status"], "daemon.status", json!({})),
        (&["team", "info"], "team.info", json!({})),
        (&["identity", "show"], "device.status", json!({})),
        (&["device", "status"], "device.status", json!({})),
        (&["contacts"], "contacts.list", json!({})),
        (&["chats"], "conv.list", json!({})),
        (&["read", "--with", "dm:alice"], "conv.read", json!({"conversation": "dm:alice"})),
        (&["search", "note"], "search", json!({"query": "note"})),
        (
            &["search", "note", "--in", "dm:alice"],
            "search",
            json!({"query": "note", "conversation": "dm:alice"}),
        ),
        (&["people", "bo"], "people.search", json!({"query": "bo"})),
        (&["person", "bob"], "people.get", json!({"person": "bob"})),
        (&["card", "bob"], "card.get", json!({"person": "bob"})),
        (&["grants"], "grant.list", json!({})),
        (&["grants", "bob"], "grant.list", json!({"subject": {"person": "bob"}})),
        (&["grants", "#dev"], "grant.list", json!({"subject": {"channel": "dev"}})),
        (&["requests"], "request.list", json!({})),
        (&["agents"], "agents.list", json!({})),
        (&["notices"], "notice.list", json!({"lines": true})),
        (&["team", "pair-cancel"], "team.pairCancel", json!({})),
        (&["daemon", "snapshot", "--done"], "daemon.snapshot", json!({"done": true})),
    ] {
        let what = words.join(" ");
        // What changes by itself (who is connected, what is on its way) may change between the two.
        world::wait(&format!("`{what}` to be {method}"), || {
            let output = run(&home, &[&["--json"], words].concat());
            assert_eq!(output.status.code(), Some(0), "{what}: {}", text(&output.stderr));
            let said = document(&what, &output);
            (said == admin.call(method, params.clone()).unwrap()).then_some(())
        });
    }
    let version = document("version", &run(&home, &["--json", "version"]));
    assert_eq!(version, json!({"version": RELEASE, "protocol": "messaging/1"}));
    assert_eq!(document("--version", &run(&home, &["--version", "--json"])), version);
}

fn ok(result: Value) -> Option<Value> {
    Some(json!({ "result": result }))
}

/// What fails behind the result is told beside it: two documents would be none.
#[test]
fn one_document_whatever_fails_behind_it() {
    type Answer = fn(&str) -> Option<Value>;
    let dies: Answer = |method| match method {
        "notice.list" => ok(json!({"notices": [{"id": "a_1", "category": "alert", "at": 1}], "counts": {}})),
        "daemon.health" => ok(json!({"state": "running", "relay": "connected"})),
        _ => None,
    };
    let refuses: Answer = |method| match method {
        "notice.list" => ok(json!({"notices": [{"id": "a_1", "category": "alert", "at": 1}], "counts": {}})),
        "daemon.health" => ok(json!({"state": "running", "relay": "connected"})),
        _ => {
            Some(json!({"error": {"code": -32603, "message": "internal: no", "data": {"code": "internal"}}}))
        }
    };
    let words = &["notices", "--ack"][..];
    for (answer, status, code) in [(dies, 3, "daemon_unavailable"), (refuses, 1, "internal")] {
        let folder = tempfile::tempdir().unwrap();
        let home = scripted(folder.path(), hello(RELEASE, 1), answer);
        let output = run(&home, &[&["--json"], words].concat());
        let said = document(&words.join(" "), &output);
        assert!(said.get("error").is_none(), "{said}");
        assert_eq!(output.status.code(), Some(status));
        let errors = text(&output.stderr);
        assert!(errors.contains(&format!("messaging: {code}: ")), "{errors}");
        assert!(errors.trim_end().lines().last().unwrap().starts_with("Next: "), "{errors}");
    }
    // A verb that goes on: a document a line, the error the last of them.
    let folder = tempfile::tempdir().unwrap();
    let looked = AtomicBool::new(false);
    let home = scripted(folder.path(), hello(RELEASE, 1), move |method| match method {
        "conv.subscribe" => ok(json!({"seq": 0, "gap": false})),
        "daemon.status" if !looked.swap(true, Ordering::Relaxed) => ok(json!({"identity": null})),
        _ => None,
    });
    let output = run(&home, &["--json", "status", "--watch"]);
    assert_eq!((output.status.code(), output.stderr.len()), (Some(3), 0), "{}", text(&output.stderr));
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (&lines[0]["identity"], &lines[1]["error"]["code"]),
        (&json!(null), &json!("daemon_unavailable"))
    );
}

/// Who answers, and what that is to a script.
#[test]
fn exit_statuses_by_who_answers() {
    type Answer = fn(&str) -> Option<Value>;
    let refused: Answer = |_| {
        Some(
            json!({"error": {"code": -32000, "message": "rate_limited: slow down", "data": {"code": "rate_limited", "retryAfterMs": 1500}}}),
        )
    };
    let unknown: Answer = |_| {
        Some(
            json!({"error": {"code": -32000, "message": "a_newer_code: what", "data": {"code": "a_newer_code"}}}),
        )
    };
    for (what, hello, answer, status, code) in [
        ("a refusal", hello(RELEASE, 1), refused, 1, "rate_limited"),
        ("a code of nobody's", hello(RELEASE, 1), unknown, 1, "internal"),
        ("another release", hello("9.9.9", 1), refused, 3, "daemon_mismatch"),
        ("another protocol", hello(RELEASE, 2), refused, 3, "daemon_mismatch"),
        ("another program", Some("SSH-2.0-x".to_owned()), refused, 3, "daemon_mismatch"),
        (
            "a hello without its members",
            Some(r#"{"jsonrpc":"2.0","method":"hello"}"#.to_owned()),
            refused,
            3,
            "daemon_mismatch",
        ),
        ("a connection that closes", None, refused, 3, "daemon_unavailable"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let home = scripted(folder.path(), hello, answer);
        let output = run(&home, &["--json", "contacts"]);
        assert_eq!(output.status.code(), Some(status), "{what}");
        assert!(output.stderr.is_empty(), "{what}: {}", text(&output.stderr));
        let said = document(what, &output);
        let error = said["error"].as_object().unwrap();
        assert_eq!(
            error.keys().map(String::as_str).collect::<Vec<_>>(),
            ["code", "message", "remedy"],
            "{what}"
        );
        assert_eq!(error["code"], code, "{what}");
        assert!(error["message"].as_str().unwrap().starts_with(&format!("{code}: ")), "{what}: {said}");
        if what == "another release" {
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("9.9.9") && message.contains(RELEASE), "it names both: {message}");
        }
        // The same as text: the code first, the step last, nothing on standard output.
        let output = run(&home, &["contacts"]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(status), 0), "{what}");
        let words = format!(
            "messaging: {}\n{}\n",
            error["message"].as_str().unwrap(),
            error["remedy"].as_str().unwrap()
        );
        assert_eq!(text(&output.stderr), words, "{what}");
        // A daemon of another release is reported and never replaced, nor called: its lock names nobody.
        if status == 3 && code == "daemon_mismatch" {
            let start = document(what, &run(&home, &["--json", "daemon", "start"]));
            assert_eq!(start["error"]["code"], "daemon_mismatch", "{what}");
            assert!(!home.join("logs").exists(), "{what}: no daemon was started");
        }
    }
}

/// A store that is not this release's: the daemon's status is 78, the command line's 3, with the reason beside the code.
#[test]
fn a_refused_store_has_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    messaging_smol::home::private_directory(&home, 0o700).unwrap();
    std::fs::write(home.join("messaging.db"), b"SQLite format 3\0 and so on").unwrap();
    let output = run(&home, &["--json", "daemon", "start"]);
    let said = document("daemon start", &output);
    let error = said["error"].as_object().unwrap();
    let names: Vec<&str> = error.keys().map(String::as_str).collect();
    assert_eq!(names, ["code", "message", "reason", "remedy"]);
    assert_eq!((&error["code"], &error["reason"]), (&json!("store_refused"), &json!("pre-reset")));
    assert_eq!(error["remedy"], "Next: move the home folder aside and set up again.");
    assert_eq!(output.status.code(), Some(3));
    let daemon = program_run(Path::new(env!("CARGO_BIN_EXE_messagingd")), &home, &[]);
    assert_eq!(daemon.status.code(), Some(78));
    assert!(text(&daemon.stderr).starts_with("messagingd: store_refused: pre-reset: "));
}

/// Verbs with `--yes`: a script is refused with the status of wrong words, and nothing changes.
#[test]
fn what_asks_first_needs_a_terminal_or_yes() {
    let mut world = World::new();
    world.pair();
    let home = world.path("bob");
    let before = world.cli_json("bob", &["grants"]);
    let output = run(&home, &["grant", "alice", "--ask", "no"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(text(&output.stderr).ends_with("Next: add --yes.\n"), "{}", text(&output.stderr));
    assert_eq!(world.cli_json("bob", &["grants"]), before);
    let sentence = "alice may not ask your agents.";
    for (answer, status) in [("n\n", 4), ("\n", 4), ("y\n", 0)] {
        let mut command = Command::new(PROGRAM);
        command.arg("--home").arg(&home).args(["grant", "alice", "--ask", "no"]);
        let mut terminal = Terminal::start(&mut command);
        terminal.expect("y/N", PATIENCE);
        terminal.type_text(answer);
        let (seen, ended) = terminal.finish(PATIENCE);
        assert!(seen.contains(sentence), "{seen}");
        assert_eq!(ended, Some(status), "{answer:?}: {seen}");
        assert_eq!(world.cli_json("bob", &["grants"]) == before, status != 0, "{answer:?}");
    }
}

/// A process that a scripted daemon says it is, killed when dropped.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// §8.1, §8.2 "Hello", contract ipc §11.1: what `daemon stop` signals when asking does not help, and what it never does.
#[test]
fn the_fallback_of_a_stop_signals_whom_the_lock_names() {
    let other = std::process::id();
    for (what, version, lock, ends) in [
        ("no lock", RELEASE, None, true),
        ("the lock names it", RELEASE, Some(0), true),
        ("the lock names another", RELEASE, Some(other), false),
        ("another release, no lock", "9.9.9", None, false),
        ("another release, named", "9.9.9", Some(0), true),
        ("another release, the lock names another", "9.9.9", Some(other), false),
    ] {
        let mut sleeper = Sleeper(Command::new("sleep").arg("600").spawn().unwrap());
        let pid = sleeper.0.id();
        let folder = tempfile::tempdir().unwrap();
        let called = Arc::new(AtomicBool::new(false));
        let note = Arc::clone(&called);
        let home = scripted(folder.path(), hello_of(version, 1, pid), move |_| {
            note.store(true, Ordering::Relaxed);
            None
        });
        if let Some(named) = lock {
            let named = if named == 0 { pid } else { named };
            std::fs::write(home.join("run/messagingd.lock"), format!("{named}\n")).unwrap();
        }
        let output = run(&home, &["--json", "daemon", "stop"]);
        let said = document(what, &output);
        if ends {
            assert_eq!(said, json!({"ok": true, "pid": pid, "stopped": true}), "{what}");
            let status = world::wait("its end", || sleeper.0.try_wait().unwrap());
            assert_eq!(status.signal(), Some(15), "{what}");
        } else {
            assert_eq!(
                (output.status.code(), &said["error"]["code"]),
                (Some(1), &json!("forbidden")),
                "{what}: {said}"
            );
            assert!(sleeper.0.try_wait().unwrap().is_none(), "{what}: it was signalled");
        }
        // A daemon of another release is never called.
        assert_eq!(called.load(Ordering::Relaxed), version == RELEASE, "{what}");
    }
}

/// What a daemon is started with is its own: nothing of whoever started it stays open, a home is what it is called.
#[test]
fn a_daemon_keeps_nothing_of_whoever_started_it() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("a b");
    let _stop = Stop(Home::new(&home));
    let script = "exec 9>held; \"$0\" --home 'a b' --json daemon start";
    let mut command = Command::new("sh");
    command.args(["-c", script, PROGRAM]).current_dir(folder.path()).env_remove("MESSAGING_HOME");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let pid = document("daemon start", &output)["pid"].as_u64().unwrap();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        assert!(!target.ends_with("held"), "{target:?} is open in the daemon");
    }
    let input = std::fs::read_link(format!("/proc/{pid}/fd/0")).unwrap_or_else(|_| "/dev/null".into());
    assert_eq!(input, Path::new("/dev/null"), "its standard input");
    assert!(document("daemon health", &run(&home, &["--json", "daemon", "health"]))["state"] == "running");
    // A home whose name is no text.
    let name = std::ffi::OsStr::from_bytes(b"h\xff");
    let home = folder.path().join(name);
    let _other = Stop(Home::new(&home));
    let with = |words: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(words).env("MESSAGING_HOME", &home).stdin(Stdio::null()).output().unwrap()
    };
    assert_eq!(document("daemon start", &with(&["--json", "daemon", "start"]))["started"], true);
    assert_eq!(document("daemon stop", &with(&["--json", "daemon", "stop"]))["stopped"], true);
}
