//! A store that is damaged, cut or deleted, while the daemon runs and before (user report 53).

use crate::daemon::{cli, cli_error, ended, refused, start};
use crate::world::{World, wait};
use messaging_smol::client::{Client, Options};
use messaging_smol::home::Home;
use serde_json::json;
use std::path::{Path, PathBuf};

/// A home in a team, with lines in its store; its daemon is stopped.
fn lived_in(world: &mut World) -> PathBuf {
    world.pair();
    let alice = world.admin("alice");
    let line = |n: u32| json!({"conversation": "dm:bob", "text": format!("{n} {}", "x".repeat(900))});
    for n in 0..30 {
        alice.call("person.send", line(n)).unwrap();
    }
    let bob = world.admin("bob");
    wait("the lines", || {
        let read = bob.call("conv.read", json!({"conversation": "dm:alice"})).unwrap();
        (read["lines"].as_array().unwrap().len() == 30).then_some(())
    });
    assert_eq!(world.daemon("bob").terminate(), Some(0));
    world.path("bob")
}

/// The home again, as it was.
fn copy(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

/// What of a home must not change: everything but its log and lock.
fn content(home: &Home) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(home.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let mut bytes = std::fs::read(&path).unwrap();
            if path == home.store() {
                // The first page is where redb notes that the file is open.
                bytes.drain(..bytes.len().min(4_096));
            }
            files.push((path.file_name().unwrap().to_str().unwrap().to_owned(), bytes));
        }
    }
    files.sort();
    files
}

/// A supervisor's three starts: each ends the same way and rewrites nothing, and says what to do.
fn is_lost(path: &Path, what: &str) {
    let home = Home::new(path);
    let before = content(&home);
    for _ in 0..3 {
        let (status, text) = refused(path);
        let line = text.lines().find(|line| line.starts_with("messagingd: ")).unwrap_or_default();
        match status {
            Some(1) => assert!(
                line.starts_with("messagingd: internal: messaging.db: corrupted; ")
                    && line.contains("snapshot"),
                "{what}: {text}"
            ),
            Some(78) => assert!(line.starts_with("messagingd: store_refused: pre-reset: "), "{what}: {text}"),
            other => panic!("{what}: {other:?} {text}"),
        }
        assert!(content(&home) == before, "{what}: rewritten");
    }
    let error = cli_error(path, &["daemon", "start"]);
    assert!(matches!(error["code"].as_str().unwrap(), "internal" | "store_refused"), "{what}: {error}");
}

#[test]
fn report_53_a_damaged_store_ends_the_start_and_is_left_alone() {
    let mut world = World::new();
    let from = lived_in(&mut world);
    let good = std::fs::read(from.join("messaging.db")).unwrap();
    let mut number = 0;
    let mut with = |bytes: &[u8]| {
        number += 1;
        let to = world.path(&format!("copy-{number}"));
        copy(&from, &to);
        std::fs::write(to.join("messaging.db"), bytes).unwrap();
        to
    };
    for less in [1, 4_096, good.len() / 2, good.len() - 4_096, good.len() - 100] {
        is_lost(&with(&good[..good.len() - less]), &format!("{less} bytes less"));
    }
    // A byte in each region: the two commit slots, and pages all over the file. What no row is read from does no harm.
    let used: Vec<usize> =
        (0..good.len()).step_by(4_096).filter(|at| good[*at..][..4_096] != [0; 4_096]).collect();
    let pages = used.iter().step_by(used.len() / 12).map(|page| page + 40);
    let (mut lost, mut served) = (0, 0);
    for at in [0, 64, 72, 192, 200].into_iter().chain(pages) {
        let mut bad = good.clone();
        bad[at] ^= 0x20;
        let path = with(&bad);
        let (status, _) = start_or_end(&path);
        if status.is_some() {
            is_lost(&path, &format!("byte {at}"));
            lost += 1;
        } else {
            served += 1;
        }
    }
    assert!(lost >= 4, "{lost} lost, {served} served");
}

/// Starts a daemon; when it serves, everything is there, and it is stopped. Its status otherwise.
fn start_or_end(path: &Path) -> (Option<i32>, String) {
    let home = Home::new(path);
    let started = cli(path, &["daemon", "start"]);
    if !started.status.success() {
        return refused(path);
    }
    let _reaper = crate::daemon::Reaper(home.clone());
    let client = Client::connect(&Options::admin(home)).unwrap();
    let read = client.call("conv.read", json!({"conversation": "dm:alice"})).unwrap();
    assert_eq!(read["lines"].as_array().unwrap().len(), 30);
    for (n, line) in read["lines"].as_array().unwrap().iter().enumerate() {
        assert_eq!(line["text"], format!("{n} {}", "x".repeat(900)));
    }
    assert!(cli(path, &["daemon", "stop"]).status.success());
    (None, String::new())
}

#[test]
fn report_53_a_deleted_store_ends_the_daemon_with_advice() {
    let mut world = World::new();
    let path = lived_in(&mut world);
    let home = Home::new(&path);
    let kept = world.path("kept.db");
    std::fs::copy(home.store(), &kept).unwrap();
    let mut daemon = start(&path);
    let client = Client::connect(&Options::admin(home.clone())).unwrap();
    std::fs::remove_file(home.store()).unwrap();
    // Nothing is acknowledged that only a deleted file holds.
    let result = client.call("person.send", json!({"conversation": "dm:alice", "text": "lost?"}));
    assert!(result.is_err(), "{result:?}");
    assert_eq!(ended(&mut daemon), Some(70));
    let log = std::fs::read_to_string(world.path("bob.log")).unwrap();
    assert!(
        log.contains("daemon.fatal") && log.contains("messagingd: internal: messaging.db: not_found; "),
        "{log}"
    );
    assert!(!home.store().exists(), "no other store was made in its place");

    // Started again, it is no team's machine, makes no new one of itself, and says why.
    let mut daemon = start(&path);
    let client = Client::connect(&Options::admin(home.clone())).unwrap();
    let status = client.call("daemon.status", json!({})).unwrap();
    assert!(status["relay"]["lastError"].as_str().unwrap().contains("snapshot"), "{status}");
    let identity = std::fs::read(path.join("identity.json")).unwrap();
    let create = json!({"relay": world.relay_url(), "name": "Blue", "person": "bob", "label": "desk"});
    assert_eq!(client.call("team.create", create).unwrap_err().code.as_str(), "invalid_state");
    let shown = String::from_utf8(cli(&path, &["doctor"]).stdout).unwrap();
    assert!(shown.contains("snapshot") && !shown.contains("create a team"), "{shown}");
    assert_eq!(std::fs::read(path.join("identity.json")).unwrap(), identity);
    assert_eq!(daemon.terminate(), Some(0));

    // What it said to do helps.
    std::fs::copy(&kept, home.store()).unwrap();
    let mut daemon = start(&path);
    let client = Client::connect(&Options::admin(home)).unwrap();
    let read = client.call("conv.read", json!({"conversation": "dm:alice"})).unwrap();
    assert_eq!(read["lines"].as_array().unwrap().len(), 30);
    assert_eq!(daemon.terminate(), Some(0));
}

#[test]
fn report_53_a_cut_store_is_not_written_over() {
    let mut world = World::new();
    let path = lived_in(&mut world);
    let home = Home::new(&path);
    let mut daemon = start(&path);
    let client = Client::connect(&Options::admin(home.clone())).unwrap();
    // Another file in its place, as a careless copy leaves one.
    std::fs::write(world.path("other"), b"not a store at all").unwrap();
    std::fs::rename(world.path("other"), home.store()).unwrap();
    let result = client.call("person.send", json!({"conversation": "dm:alice", "text": "lost?"}));
    assert!(result.is_err(), "{result:?}");
    assert_eq!(ended(&mut daemon), Some(70));
    assert_eq!(std::fs::read(home.store()).unwrap(), b"not a store at all");
    assert_eq!(refused(&path).0, Some(78));
    assert_eq!(std::fs::read(home.store()).unwrap(), b"not a store at all");
}
