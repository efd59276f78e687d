//! Captures of real daemon and relay processes replay to the last byte, also after `kill -9` and with a torn end.

#![allow(clippy::unwrap_used)]

mod world;

use messaging_machines::capture::{Reader, Record, TITLE, write};
use messaging_sim::replay::{Failure, Options, Played, replay};
use serde_json::json;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use world::{Agent, World, wait};

/// Starts a daemon with its capture.
fn start(world: &mut World, name: &str, file: &Path) {
    world.environment = vec![("MESSAGING_CAPTURE".to_owned(), file.display().to_string())];
    world.start_daemon(name);
}

fn play(file: &Path) -> Played {
    let bytes = std::fs::read(file).unwrap();
    replay(&bytes, Options::default()).unwrap_or_else(|failure| panic!("{}: {failure}", file.display()))
}

/// One exchange: a message, its answer, and a task that is done.
fn exchange(alice: &mut Agent, bob: &mut Agent, round: usize) {
    let id = alice.send("bob/builder@desk", &format!("is build {round} green?"), &format!("ask-{round}"));
    alice.wait_stage(&id, "delivered");
    bob.call("inbox.ack", json!({"ids": [id], "stage": "handed_to_agent"})).unwrap();
    bob.read(&id);
    let params = json!({
        "to": "alice/planner@laptop", "parts": [{"text": format!("build {round} is green")}],
        "replyTo": id, "idempotencyKey": format!("answer-{round}"),
    });
    wait("the answer", || bob.call("msg.send", params.clone()).ok());
    alice.wait_stage(&id, "replied");
}

fn files(folder: &Path) -> [PathBuf; 3] {
    ["relay", "alice", "bob"].map(|name| folder.join(format!("{name}.capture")))
}

#[test]
fn captures_of_real_processes_replay_to_the_last_byte() {
    let folder = tempfile::tempdir().unwrap();
    let [relay, of_alice, of_bob] = files(folder.path());
    // Small, so that the relay begins anew now and then: its sockets live on.
    let mut world =
        World::with_relay_flags(&["--capture", relay.to_str().unwrap(), "--capture-bytes", "60000"]);
    start(&mut world, "alice", &of_alice);
    start(&mut world, "bob", &of_bob);
    world.pair();
    let mut alice = Agent::new(&world, "alice", "planner");
    let mut bob = Agent::new(&world, "bob", "builder");
    bob.inbox();
    alice.inbox();
    for round in 0..6 {
        exchange(&mut alice, &mut bob, round);
        match round {
            1 => {
                world.kill_daemon("alice");
                start(&mut world, "alice", &of_alice);
            }
            3 => {
                world.kill_relay();
                world.start_relay();
            }
            _ => {}
        }
    }
    // While they run: nothing is buffered, so what is there replays, though its last record may be half written.
    assert!(play(&of_bob).remarks.iter().any(|remark| remark.contains("still runs")));
    assert_eq!(world.daemon("bob").terminate(), Some(0));
    world.kill_daemon("alice");
    assert_eq!(world.relay().terminate(), Some(0));

    for file in [&relay, &of_alice, &of_bob] {
        let meta = file.metadata().unwrap();
        assert_eq!((meta.mode() & 0o777, meta.is_file()), (0o600, true));
        assert!(std::fs::read(file).unwrap().starts_with(TITLE.as_bytes()));
    }
    let played = play(&of_alice);
    assert_eq!(played.machines, 2, "one of each process");
    assert!(
        played.events > 100 && played.effects > 100 && played.batches > 30 && played.rows > 20,
        "{played:?}"
    );
    let killed = |played: &Played| played.remarks.iter().filter(|remark| remark.contains("killed")).count();
    assert_eq!(killed(&played), 2, "{:?}", played.remarks);
    let played = play(&of_bob);
    assert_eq!((played.machines, killed(&played)), (1, 0), "{:?}", played.remarks);

    // The relay's: what its last file holds, and the one before it.
    let before = relay.with_extension("capture.1");
    let (last, before) = (play(&relay), play(&before));
    assert!(last.machines >= 1 && before.events > 20, "{last:?} {before:?}");
    assert!(world::contains(&world.path("relay.log"), b"capture.rotated"));
    assert!(world::contains(&world.path("relay.log"), b"capture.on"));
    assert!(!world::contains(&relay, b"is build"), "what a relay is given is sealed");
    assert!(world::contains(&of_bob, b"is build"), "what a daemon says is not, and the page says so");

    torn_and_changed(&of_bob);
}

/// A torn end is told and harms nothing; an event or an effect that is not what it was is found, with its number.
fn torn_and_changed(file: &Path) {
    let bytes = std::fs::read(file).unwrap();
    let whole = play(file);
    let places: Vec<usize> = Reader::new(&bytes).unwrap().map(|(at, _)| at).collect();
    let last = *places.last().unwrap();
    for cut in [last + 1, last + 9, bytes.len() - 1] {
        let played = replay(&bytes[..cut], Options::default()).unwrap();
        assert!(played.remarks[0].contains("no whole record"), "{:?}", played.remarks);
        assert_eq!((played.events, played.effects), (whole.events, whole.effects));
    }

    let records: Vec<Record> = Reader::new(&bytes).unwrap().map(|(_, record)| record.unwrap()).collect();
    let changed = |change: &mut dyn FnMut(&mut Record)| {
        let mut bytes = TITLE.as_bytes().to_vec().into();
        for record in &records {
            let mut record = record.clone();
            change(&mut record);
            write(&record, &mut bytes);
        }
        replay(&bytes, Options::default())
    };
    assert_eq!(changed(&mut |_| {}).unwrap(), whole, "the form is a function of the records");
    let mut events = 0;
    let word = changed(&mut |record| match record {
        Record::Event { .. } => events += 1,
        Record::Effects { effects, .. } => {
            for effect in effects {
                *effect = effect.replacen("green", "greed", 1);
            }
        }
        _ => {}
    });
    let Err(Failure::Differs { event, what, .. }) = word else { panic!("{word:?}") };
    assert!(event > 1 && event <= events && what.contains("greed") && what.contains("green"), "{what}");
    assert!(what.contains("the events before and this one"), "{what}");
    let mut left = events / 2;
    let entropy = changed(&mut |record| {
        if let Record::Event { entropy, .. } = record {
            left = left.saturating_sub(1);
            entropy[0] ^= u8::from(left == 0);
        }
    });
    assert!(
        matches!(entropy, Err(Failure::Differs { .. })),
        "every key and nonce comes from it: {entropy:?}"
    );
    let rows = changed(&mut |record| {
        if let Record::Batch { rows, .. } = record {
            *rows += 1;
        }
    });
    assert!(matches!(rows, Err(Failure::Differs { what, .. }) if what.contains("rows written")));
}
