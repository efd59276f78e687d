//! Copies of a home while its daemon writes (`messaging/1 §8.2`, "Backups").

use crate::daemon::{ended, start};
use crate::world::{PATIENCE, World};
use messaging_smol::client::{Client, Options};
use messaging_smol::home::Home;
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A line's number, from its text.
fn number(line: &serde_json::Value) -> u64 {
    line["text"].as_str().unwrap().parse().unwrap()
}

/// Every line of alice's own conversation, oldest first.
fn lines(client: &Client) -> Vec<u64> {
    let mut all = Vec::new();
    let mut after = 0;
    loop {
        let page = json!({"conversation": "dm:alice", "after": after, "limit": 100});
        let page = client.call("conv.read", page).unwrap();
        let found = page["lines"].as_array().unwrap();
        let Some(last) = found.last() else { return all };
        after = last["seq"].as_u64().unwrap();
        all.extend(found.iter().map(number));
    }
}

#[test]
fn a_snapshot_is_of_one_moment_while_writes_go_on() {
    let mut world = World::new();
    world.pair();
    let acked = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicU64::new(u64::MAX));
    let (client, writes, until) = (world.admin("alice"), Arc::clone(&acked), Arc::clone(&stop));
    let writer = std::thread::spawn(move || {
        for n in 1.. {
            if n > until.load(Ordering::Relaxed) {
                return;
            }
            client.call("person.send", json!({"conversation": "dm:alice", "text": n.to_string()})).unwrap();
            writes.store(n, Ordering::Release);
        }
    });
    let admin = world.admin("alice");
    let mut copies = Vec::new();
    for round in 0..3 {
        let begun = Instant::now();
        let before = acked.load(Ordering::Acquire);
        while acked.load(Ordering::Acquire) < before + 10 {
            assert!(begun.elapsed() < PATIENCE, "the writer stopped");
            std::thread::yield_now();
        }
        let before = acked.load(Ordering::Acquire);
        let made = admin.call("daemon.snapshot", json!({})).unwrap();
        // One more may have been on its way.
        let after = acked.load(Ordering::Acquire) + 1;
        let second = admin.call("daemon.snapshot", json!({})).unwrap_err();
        assert_eq!(second.code.as_str(), "invalid_state", "one at a time");
        let folder = Path::new(made["folder"].as_str().unwrap());
        for file in made["files"].as_array().unwrap() {
            let path = folder.join(file["name"].as_str().unwrap());
            assert_eq!(path.metadata().unwrap().len(), file["bytes"].as_u64().unwrap(), "{file}");
        }
        let to = world.path(&format!("copy-{round}"));
        assert!(Command::new("cp").arg("-a").arg(folder).arg(&to).status().unwrap().success());
        assert_eq!(admin.call("daemon.snapshot", json!({"done": true})).unwrap(), json!({"released": true}));
        copies.push((to, before, after));
    }
    stop.store(0, Ordering::Relaxed);
    writer.join().unwrap();
    assert_eq!(world.daemon("alice").terminate(), Some(0));
    for (path, before, after) in copies {
        // No key is in it: it says so, does nothing, and is whole again with the key beside it.
        let mut daemon = start(&path);
        let client = Client::connect(&Options::admin(Home::new(&path))).unwrap();
        assert_eq!(client.call("daemon.status", json!({})).unwrap()["alarm"], "keys_missing");
        let error = client.call("conv.list", json!({})).unwrap_err();
        assert!(error.code.as_str() == "no_identity" && error.message.contains("identity.json"), "{error}");
        client.call("daemon.stop", json!({})).unwrap();
        assert_eq!(ended(&mut daemon), Some(0));
        std::fs::copy(world.path("alice").join("identity.json"), path.join("identity.json")).unwrap();
        let mut daemon = start(&path);
        let client = Client::connect(&Options::admin(Home::new(&path))).unwrap();
        let found = lines(&client);
        let count = found.len() as u64;
        assert!(found.iter().copied().eq(1..=count), "no hole and no doubling");
        assert!((before..=after).contains(&count), "{before} {count} {after}");
        let status = client.call("daemon.status", json!({})).unwrap();
        assert_eq!((&status["identity"]["person"], &status["alarm"]), (&json!("alice"), &json!(null)));
        client.call("daemon.stop", json!({})).unwrap();
        assert_eq!(ended(&mut daemon), Some(0));
    }
}
