//! A disk that is full: what a daemon says then, and that it loses nothing it acknowledged.

use crate::daemon::{Reaper, cli, cli_error, start};
use crate::disk::{SmallDisk, fill};
use crate::world::{PATIENCE, World, wait};
use messaging_smol::client::{Client, ClientError, Options};
use messaging_smol::home::Home;
use serde_json::{Value, json};
use std::time::Instant;

fn say(home: &Home, number: usize) -> Result<Value, ClientError> {
    let client = Client::connect(&Options::admin(home.clone()))?;
    let text = format!("{number} {}", "x".repeat(3_000));
    client.call("person.send", json!({"conversation": "dm:alice", "text": text}))
}

/// Says lines until one is refused because the disk is full. What was acknowledged is added.
fn until_full(home: &Home, acked: &mut Vec<usize>, next: &mut usize) {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "it never was refused for the full disk");
        *next += 1;
        match say(home, *next) {
            Ok(_) => acked.push(*next),
            Err(error) if error.to_string().contains("the disk of the home is full") => return,
            Err(error) => {
                assert!(matches!(error.code.as_str(), "internal" | "daemon_unavailable"), "{error}");
            }
        }
    }
}

#[test]
fn a_full_disk_is_named_and_nothing_acked_is_lost() {
    let disk = SmallDisk::mount(6);
    let world = World::new();
    let home = Home::new(&disk.path("alice"));
    let mut daemon = start(home.path());
    let client = Client::connect(&Options::admin(home.clone())).unwrap();
    let create = json!({"relay": world.relay_url(), "name": "Blue", "person": "alice", "label": "desk"});
    client.call("team.create", create).unwrap();
    let (mut acked, mut next) = (Vec::new(), 0);
    for _ in 0..10 {
        next += 1;
        say(&home, next).unwrap();
        acked.push(next);
    }
    let ballast = disk.path("ballast");
    fill(&ballast);
    until_full(&home, &mut acked, &mut next);
    assert!(daemon.is_running());
    std::fs::remove_file(&ballast).unwrap();
    // It comes back by itself.
    wait("a line that is taken again", || {
        next += 1;
        let said = say(&home, next).is_ok();
        said.then(|| acked.push(next))
    });

    fill(&ballast);
    until_full(&home, &mut acked, &mut next);
    daemon.kill();
    let error = cli_error(home.path(), &["daemon", "start"]);
    assert!(error["message"].as_str().unwrap().contains("No space left"), "{error}");
    std::fs::remove_file(&ballast).unwrap();
    let _reaper = Reaper(home.clone());
    assert!(cli(home.path(), &["daemon", "start"]).status.success());
    next += 1;
    say(&home, next).unwrap();
    acked.push(next);
    let client = Client::connect(&Options::admin(home.clone())).unwrap();
    let read = client.call("conv.read", json!({"conversation": "dm:alice", "limit": 100})).unwrap();
    let lines = read["lines"].as_array().unwrap().iter();
    let lines: Vec<usize> = lines
        .map(|line| line["text"].as_str().unwrap().split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(lines.is_sorted_by(|one, next| one < next), "{lines:?}");
    let lost: Vec<_> = acked.iter().filter(|number| !lines.contains(number)).collect();
    assert!(lost.is_empty(), "{lost:?} of {acked:?}");
    assert!(cli(home.path(), &["daemon", "stop"]).status.success());
}
