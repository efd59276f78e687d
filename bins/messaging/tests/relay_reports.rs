//! What users of other relays and stores reported, tried on a real relay process (docs/user-reports.md).

#![allow(clippy::unwrap_used)]

mod world;

use messaging_bench::link::{Link, delivered, now};
use messaging_bench::team::Team;
use messaging_proto::json::canonicalize;
use messaging_proto::name::TeamName;
use messaging_proto::roster::{Role, genesis};
use std::time::Duration;
use world::World;

const RAISED: [&str; 4] = ["--frames-per-minute", "100000000", "--bytes-per-minute", "100000000000"];

/// The id of the next delivery, acked; nothing when none comes within a moment.
fn next(link: &mut Link) -> Option<String> {
    link.patience(Duration::from_millis(500)).unwrap();
    loop {
        let text = link.poll().unwrap()?;
        if let Some((id, from)) = delivered(&text) {
            let id = id.to_owned();
            link.say(format!("{{\"from\":\"{from}\",\"id\":\"{id}\",\"t\":\"recv.ack\"}}")).unwrap();
            return Some(id);
        }
    }
}

#[test]
fn report_19_one_key_in_two_teams() {
    let world = World::with_relay_flags(&RAISED);
    let teams = [0, 1].map(|_| Team::found(world.port, 3).unwrap());
    assert_ne!(teams[0].id, teams[1].id);
    let key = |machine: usize| &teams[0].machines[machine].key;
    assert_eq!(key(2).machine(), teams[1].machines[2].key.machine());
    // One machine, two teams: both links stay, and each gets what its team sent, however mixed.
    let mut receivers = [0, 1].map(|team: usize| Link::live(world.port, key(2), &teams[team].id).unwrap());
    let mut senders = [0, 1].map(|team: usize| Link::live(world.port, key(1), &teams[team].id).unwrap());
    for index in 0..10 {
        for team in [0, 1] {
            let envelope = teams[team].one(1, 2, index, 100).unwrap();
            senders[team].send_acked(envelope.frame, &envelope.id).unwrap();
            assert_eq!(next(&mut receivers[team]), Some(envelope.id));
        }
    }
    // An envelope of one team is none of the other.
    let stray = teams[0].one(1, 2, 100, 100).unwrap();
    assert!(senders[1].send_acked(stray.frame, &stray.id).is_err());
    for receiver in &mut receivers {
        assert_eq!(next(receiver), None);
    }
    // Founding a team that is there says what is wrong, and nothing else suffers.
    let founder = &teams[0].machines[0];
    let name = TeamName::parse("twice").unwrap();
    let entry =
        canonicalize(&genesis(&founder.key, now().unwrap(), &name, &founder.member(Role::Admin)).unwrap())
            .unwrap();
    Link::open(world.port).unwrap().append(&entry).unwrap();
    let again = Link::open(world.port).unwrap().append(&entry).unwrap_err();
    assert_eq!(again.to_string(), "append refused: \"roster_conflict\"");
    let envelope = teams[1].one(1, 2, 200, 100).unwrap();
    senders[1].send_acked(envelope.frame, &envelope.id).unwrap();
    assert_eq!(next(&mut receivers[1]), Some(envelope.id));
}

/// 2,000 envelopes here, `MESSAGING_CHURN=…` for more; the soak of docs/relay.md sent 1.2 million.
#[test]
fn report_55_the_store_does_not_grow_with_what_went_through_it() {
    const QUEUE: u64 = 100;
    let churn = std::env::var("MESSAGING_CHURN").map_or(2_000, |count| count.parse().unwrap());
    let mut world = World::with_relay_flags(&RAISED);
    let team = Team::found(world.port, 2).unwrap();
    let mut receiver = Link::live(world.port, &team.machines[1].key, &team.id).unwrap();
    let mut sender = Link::live(world.port, &team.machines[0].key, &team.id).unwrap();
    receiver.patience(Duration::from_secs(20)).unwrap();
    for round in 0..churn / QUEUE {
        for index in 0..QUEUE {
            sender.say(team.one(0, 1, round * QUEUE + index, 1_000).unwrap().frame).unwrap();
        }
        let mut left = QUEUE;
        while left > 0 {
            let text = receiver.poll().unwrap().expect("deliveries");
            let Some((id, from)) = delivered(&text) else { continue };
            receiver.say(format!("{{\"from\":\"{from}\",\"id\":\"{id}\",\"t\":\"recv.ack\"}}")).unwrap();
            left -= 1;
        }
        let mut left = QUEUE;
        while left > 0 {
            let text = sender.poll().unwrap().expect("acks");
            assert!(!text.contains("nack"), "{text}");
            left -= u64::from(text.contains("\"ack\""));
        }
    }
    let bytes = |name: &str| std::fs::metadata(world.path(name)).map_or(0, |meta| meta.len());
    let size = bytes("relay.db");
    let journals = bytes("relay.db.journal-0") + bytes("relay.db.journal-1");
    println!("{churn} envelopes through a queue of {QUEUE}: {size} bytes of file, {journals} of journals");
    // The ids of the last week are kept, at most this much each with the room of a checkpoint; bodies are not.
    assert!(size <= churn * 400 + (24 << 20), "{size}");
    assert!(journals <= 2 * (64 << 20), "{journals}");
    // Nothing is compacted, so nothing needs room to: the file opens as it is and what was acked is gone.
    drop((sender, receiver));
    world.kill_relay();
    world.start_relay();
    let mut receiver = Link::live(world.port, &team.machines[1].key, &team.id).unwrap();
    while next(&mut receiver).is_some() {}
    assert_eq!(next(&mut receiver), None);
}
