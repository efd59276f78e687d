//! What a relay does with its disk: a filesystem of 4 MiB that fills while it works, a file that may not grow, and that it
//! writes nothing else.

#![allow(clippy::unwrap_used)]

#[path = "world/disk.rs"]
mod disk;
mod world;

use disk::{SmallDisk, fill};
use messaging_bench::link::Link;
use messaging_bench::team::Team;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use world::{PATIENCE, Process, wait};

const RELAY: &str = env!("CARGO_BIN_EXE_messaging-relay");
const READY: &str = "messaging-relay: ready ";

fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: relay\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn ready(port: u16) -> (bool, String) {
    let answer = get(port, "/readyz");
    (answer.starts_with("HTTP/1.1 200"), answer)
}

fn events(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn has(log: &Path, event: &str) -> bool {
    events(log).iter().any(|line| line["event"] == event)
}

#[test]
fn a_full_filesystem_refuses_recovers_and_loses_nothing_acked() {
    let disk = SmallDisk::mount(4);
    let folder = tempfile::tempdir().unwrap();
    let (db, log) = (disk.path("relay.db"), folder.path().join("log"));
    let start = |port: u16| {
        let listen = format!("127.0.0.1:{port}");
        let arguments = [
            "relay",
            "--listen",
            &listen,
            "--db",
            db.to_str().unwrap(),
            "--frames-per-minute",
            "1000000",
            "--bytes-per-minute",
            "1000000000",
        ];
        Process::start(&arguments, READY, &log)
    };
    let mut relay = start(0);
    let port = relay.ready.parse().unwrap();
    let team = Team::found(port, 2).unwrap();
    let live = |machine: usize| Link::live(port, &team.machines[machine].key, &team.id).unwrap();
    let mut sender = live(0);
    let mut acked = BTreeSet::new();

    // The queue itself fills the disk. What cannot be stored is refused as internal, on a socket that stays; and then
    // there is not even room for a probe. Pages that are free within the file may let the probe through all the same:
    // then the relay says that it recovered, and the next sends fail again.
    let mut index = 0;
    let mut send = |sender: &mut Link| {
        index += 1;
        let envelope = team.one(0, 1, index, 6_000).unwrap();
        sender.say(envelope.frame.clone()).unwrap();
        loop {
            let answer = sender.value().unwrap();
            if answer["id"] == envelope.id.as_str() {
                return (envelope, answer);
            }
        }
    };
    let mut refused = None;
    let mut unready = None;
    for _ in 0..9_000 {
        let (envelope, answer) = send(&mut sender);
        if answer["t"] == "ack" {
            acked.insert(envelope.id);
            continue;
        }
        assert_eq!(
            (answer["t"].as_str(), answer["code"].as_str()),
            (Some("nack"), Some("internal")),
            "{answer}"
        );
        if refused.is_none() {
            fill(&disk.path("ballast"));
        }
        refused = Some(envelope);
        let (ready, answer) = ready(port);
        if ready {
            continue;
        }
        // A sign of life is answered, and so is what only reads; a newcomer is let in, and gets what waits for it.
        sender.say(r#"{"t":"ping","n":7}"#.to_owned()).unwrap();
        while sender.value().unwrap()["n"] != 7 {}
        sender.say(r#"{"t":"roster.sync","req":"r","after":-1}"#.to_owned()).unwrap();
        let roster = loop {
            let answer = sender.value().unwrap();
            if answer["req"] == "r" || answer["id"] == "r" {
                break answer;
            }
        };
        let mut late = live(1);
        let first = late.value().unwrap();
        if !self::ready(port).0 {
            assert_eq!(roster["t"], "roster.entries", "{roster}");
            assert_eq!(first["t"], "deliver", "{first}");
        }
        drop(late);
        unready = Some(answer);
        break;
    }
    let refused = refused.expect("4 MiB hold no 9,000 envelopes of 9 KiB");
    assert!(acked.len() > 5, "{}", acked.len());
    assert!(relay.is_running());
    let unready = unready.expect("/readyz said so once");
    assert!(
        unready.starts_with("HTTP/1.1 503") && unready.ends_with(r#"{"ok":false,"why":["store_failing"]}"#)
    );
    let failing = events(&log).into_iter().find(|line| line["event"] == "store.failing").unwrap();
    assert_eq!((failing["error"].as_str(), failing["retryMs"].as_u64()), (Some("disk_full"), Some(1_000)));

    // Room comes back, and the relay notices by itself.
    std::fs::remove_file(disk.path("ballast")).unwrap();
    // The journal's rows go into the store before it takes new ones, which needs as much again.
    disk.grow();
    wait("ready again", || ready(port).0.then_some(()));
    wait("the log says so", || has(&log, "store.recovered").then_some(()));

    // Killed, and started again on a full disk: it starts all the same.
    let failures = || events(&log).iter().filter(|line| line["event"] == "store.failing").count();
    let before = failures();
    relay.kill();
    fill(&disk.path("ballast"));
    let mut relay = start(port);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
    std::fs::remove_file(disk.path("ballast")).unwrap();
    wait("ready at last", || ready(port).0.then_some(()));

    // The recipient gets everything that was acked, once it is asked for; acking it makes room.
    let mut recipient = live(1);
    recipient.patience(Duration::from_secs(20)).unwrap();
    let mut got = BTreeSet::new();
    let from = team.machines[0].key.machine();
    while !acked.iter().all(|id| got.contains(id)) {
        let text =
            recipient.poll().unwrap().unwrap_or_else(|| panic!("{} of {} came", got.len(), acked.len()));
        let frame: Value = serde_json::from_str(&text).unwrap();
        if frame["t"] == "deliver" {
            let id = frame["env"]["id"].as_str().unwrap().to_owned();
            recipient.say(format!("{{\"from\":\"{from}\",\"id\":\"{id}\",\"t\":\"recv.ack\"}}")).unwrap();
            // The disk may still have been full under the first acks: what they were for then comes again, and only then.
            assert!(got.insert(id) || failures() > before, "once");
        }
    }
    // What was refused is taken now.
    wait("a send that is taken", || {
        if !ready(port).0 {
            return None;
        }
        let mut sender = Link::live(port, &team.machines[0].key, &team.id).ok()?;
        sender.send_acked(refused.frame.clone(), &refused.id).ok()
    });
    assert_eq!(relay.terminate(), Some(0));
}

/// Nothing is written but the store and its journal: no home, no temporary folder, no folder it was started in.
#[test]
fn nothing_but_the_store_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("data").join("relay.db");
    std::fs::create_dir(db.parent().unwrap()).unwrap();
    let mut command = Command::new(RELAY);
    // Where nobody can write, root included.
    command.env_clear().env("TMPDIR", "/proc").env("HOME", "/proc").current_dir("/proc");
    command.args(["--listen", "127.0.0.1:0", "--db", db.to_str().unwrap()]);
    let mut relay = Process::start_command(&mut command, READY, &folder.path().join("log"));
    let port = relay.ready.parse().unwrap();
    let team = Team::found(port, 2).unwrap();
    let mut link = Link::live(port, &team.machines[0].key, &team.id).unwrap();
    let envelope = team.one(0, 1, 1, 100).unwrap();
    link.send_acked(envelope.frame, &envelope.id).unwrap();
    let files = || -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(db.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(files(), ["relay.db", "relay.db.journal-0", "relay.db.journal-1"]);
    drop(link);
    assert_eq!(relay.terminate(), Some(0));
}

/// A file that may not grow any more (`ulimit -f`) is a store that fails, not the end of the process.
#[test]
fn a_file_at_the_size_it_may_have_is_a_failing_store() {
    let folder = tempfile::tempdir().unwrap();
    let (db, log) = (folder.path().join("relay.db"), folder.path().join("log"));
    let flags = ["--listen", "127.0.0.1:0", "--db", db.to_str().unwrap(), "--bytes-per-minute", "1000000000"];
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 8192; exec \"$0\" \"$@\"", RELAY]).args(flags);
    let mut relay = Process::start_command(&mut limited, READY, &log);
    let port = relay.ready.parse().unwrap();
    let team = Team::found(port, 2).unwrap();
    let mut link = Link::live(port, &team.machines[0].key, &team.id).unwrap();
    let mut acked = Vec::new();
    let refused = (1..200).find_map(|index| {
        let envelope = team.one(0, 1, index, 100_000).unwrap();
        link.say(envelope.frame).unwrap();
        loop {
            let answer = link.value().unwrap();
            if answer["id"] == envelope.id.as_str() {
                if answer["t"] == "nack" {
                    break Some(answer);
                }
                acked.push(envelope.id);
                break None;
            }
        }
    });
    assert_eq!(refused.unwrap()["code"], "internal");
    assert!(acked.len() > 10, "{}", acked.len());
    assert!(relay.is_running());
    let failing =
        wait("the log to say so", || events(&log).into_iter().find(|line| line["event"] == "store.failing"));
    assert_eq!(failing["error"], "file_too_large");
    assert!(get(port, "/healthz").ends_with(r#"{"ok":true}"#));
    link.say(r#"{"t":"ping","n":7}"#.to_owned()).unwrap();
    while link.value().unwrap()["n"] != 7 {}
    drop(link);
    assert_eq!(relay.terminate(), Some(0));
    // Nothing that was acked is lost.
    let again = Process::start(&[&["relay"][..], &flags].concat(), READY, &log);
    let mut link = Link::live(again.ready.parse().unwrap(), &team.machines[1].key, &team.id).unwrap();
    let from = team.machines[0].key.machine();
    for id in &acked {
        let delivered = link.value().unwrap();
        assert_eq!(delivered["env"]["id"], id.as_str());
        link.say(format!("{{\"from\":\"{from}\",\"id\":\"{id}\",\"t\":\"recv.ack\"}}")).unwrap();
    }
}
