//! A filesystem of 4 MiB that fills while a relay works on it: the specified answers, recovery, nothing acked lost.

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
use std::time::Duration;
use world::{PATIENCE, Process, wait};

fn ready(port: u16) -> (bool, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: relay\r\n\r\n").unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
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
        Process::start(&arguments, "messaging-relay: ready ", &log)
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
