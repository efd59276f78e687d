//! How a daemon ends, and what it says last (contract ipc §6.2).

use crate::daemon::{cli_error, ended, refused, start};
use crate::world::PROGRAM;
use messaging_smol::client::{Client, Options as ClientOptions};
use messaging_smol::home::Home;
use messaging_smol::store::{Location, Options, RedbStore, Schema};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

/// `messagingd` itself.
fn messagingd(arguments: &[&str]) -> Output {
    let program = Path::new(PROGRAM).with_file_name("messagingd");
    let mut command = Command::new(program);
    command.env_remove("HOME").env_remove("MESSAGING_HOME").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn the_version_needs_no_home() {
    let release = env!("CARGO_PKG_VERSION");
    let output = messagingd(&["--version"]);
    let line = format!("messagingd {release} (store schema 1, protocol messaging/1)\n");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), line.as_str()));
    let output = messagingd(&["--version", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said, json!({"version": release, "storeSchema": 1, "protocol": "messaging/1"}));
    let output = messagingd(&["--help"]);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(0), false));
    for bad in [&["--no-such"][..], &["--home"], &["--log-level", "loud"], &["stray"]] {
        let output = messagingd(bad);
        assert_eq!(output.status.code(), Some(2), "{bad:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
    // `messagingd cli` is the command line.
    assert_eq!(messagingd(&["cli", "--version"]).status.code(), Some(0));
}

#[test]
fn a_daemon_that_is_told_to_stop_ends_with_0() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("home");
    let home = Home::new(&path);
    let mut daemon = start(&path);
    let client = Client::connect(&ClientOptions::admin(home.clone())).unwrap();
    let stopped = client.call("daemon.stop", json!({})).unwrap();
    assert_eq!(stopped, json!({"ok": true, "pid": daemon.pid()}), "the reply comes first");
    assert_eq!(ended(&mut daemon), Some(0));
    assert!(!home.admin_socket().exists() && !home.agent_socket().exists() && !home.pid_file().exists());
    for signal in [Signal::TERM, Signal::INT] {
        let mut daemon = start(&path);
        kill_process(Pid::from_raw(i32::try_from(daemon.pid()).unwrap()).unwrap(), signal).unwrap();
        assert_eq!(ended(&mut daemon), Some(0), "{signal:?}");
        assert!(!home.pid_file().exists());
    }
}

#[test]
fn a_start_that_is_refused_ends_with_1_and_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("home");
    start(&path).terminate();
    let config = path.join("config.json");
    for (bad, named) in [
        ("{", "config.json"),
        (r#"{"person":"Not A Person"}"#, "person"),
        (r#"{"relay":"ws://example.org/"}"#, "relay"),
        (r#"{"identity":{"rotateEncDays":1}}"#, "identity.rotateEncDays"),
        (r#"{"ipc":{"agentGroup":-1}}"#, "ipc.agentGroup"),
        (r#"{"retention":{"readDays":0}}"#, "retention.readDays"),
    ] {
        std::fs::write(&config, bad).unwrap();
        let (status, text) = refused(&path);
        assert_eq!(status, Some(1), "{bad}: {text}");
        let line = text.lines().last().unwrap();
        assert!(line.starts_with("messagingd: invalid_request: ") && line.contains(named), "{bad}: {text}");
        assert!(!text.contains("Not A") && !text.contains("example.org"), "no values: {text}");
    }
}

/// The files of a home, what is in them and when they were written.
fn files(home: &Path) -> Vec<(PathBuf, Vec<u8>, SystemTime)> {
    let mut files: Vec<_> = std::fs::read_dir(home)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| {
            let bytes = std::fs::read(&path).unwrap();
            let written = path.metadata().unwrap().modified().unwrap();
            (path, bytes, written)
        })
        .collect();
    files.sort();
    files
}

#[test]
fn a_store_of_another_time_ends_it_with_78() {
    let options = Options { cache_bytes: 1 << 20, quick_repair: false, journal: None };
    let ours = Schema::CURRENT;
    let others = [
        ("pre-reset", Some(Schema { generation: ours.generation + 1, ..ours })),
        ("pre-reset", None),
        ("newer", Some(Schema { schema: ours.schema + 1, min_reader: ours.schema + 1, ..ours })),
    ];
    for (reason, schema) in others {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("home");
        let home = Home::new(&path);
        start(&path).terminate();
        std::fs::remove_file(home.store()).unwrap();
        match schema {
            Some(schema) => {
                RedbStore::open(&Location::new(&home.store()), schema, options).unwrap().close().unwrap();
            }
            None => std::fs::write(home.store(), b"SQLite format 3\0 and so on").unwrap(),
        }
        // Nothing else in the home is read first.
        std::fs::write(path.join("config.json"), "{").unwrap();
        let before = files(&path);
        let (status, text) = refused(&path);
        assert_eq!(status, Some(78), "{text}");
        assert!(text.starts_with(&format!("messagingd: store_refused: {reason}: ")), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        let error = cli_error(&path, &["daemon", "start"]);
        assert_eq!((&error["code"], &error["reason"]), (&json!("store_refused"), &json!(reason)));
        // Neither the store nor anything beside it changed by a byte.
        assert!(files(&path) == before, "{reason}: the home was changed");
    }
}
