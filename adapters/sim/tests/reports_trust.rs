//! A relay that shows two machines two rosters (report 63): the proof is two signed things, and stays across restarts.
#![allow(clippy::unwrap_used)]

use messaging_proto::json::{Value, canonicalize};
use messaging_proto::roster::Roster;
use messaging_sim::{World, at, json, text};

fn last_error(world: &mut World, number: usize) -> String {
    let status = world.ok(number, "daemon.status", "{}");
    at(&status, "relay").get("lastError").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The rows of a daemon's evidence.
fn evidence(world: &World, number: usize) -> Vec<(u8, Value)> {
    let rows = world.nodes[number].base.iter().filter(|(table, ..)| table.0 == "evidence");
    rows.map(|(_, key, row)| (key[0], json(std::str::from_utf8(&row[1..]).unwrap()))).collect()
}

fn entries(world: &World, number: usize) -> Vec<Value> {
    let rows = world.nodes[number].base.iter().filter(|(table, ..)| table.0 == "roster");
    rows.map(|(_, _, row)| json(std::str::from_utf8(&row[1..]).unwrap())).collect()
}

/// The last presence that a machine sent.
fn presence(world: &World, number: usize) -> String {
    let start = format!(r#"{number} {{"LinkSend""#);
    let mut of = world.log.iter().rev().filter(|line| line.starts_with(&start));
    let line = of.find(|line| line.contains(r#"\"t\":\"presence\""#)).unwrap();
    let frame = json(text(&json(line.split_once(' ').unwrap().1), "LinkSend.text"));
    canonicalize(at(&frame, "env")).unwrap()
}

#[test]
fn report_63_a_fork_leaves_both_signed_halves() {
    let mut world = World::team(63, &["alice/laptop", "bob/desk", "carol/tower"]);
    world.pass(5_000);
    // Carol alone is shown the first entry that alice signs; everybody else the second.
    world.relay.fork_to = Some(2);
    world.ticket(0, "dan");
    world.pass(5_000);
    let (carols, bobs) = (entries(&world, 2), entries(&world, 1));
    assert_eq!(carols.len(), bobs.len());
    assert_ne!(carols.last(), bobs.last(), "two entries of one position");

    for _ in 0..3 {
        let error = last_error(&mut world, 2);
        assert!(error.contains("forks"), "{error}");
        // Her own entry and the kept one: each verifies after the same beginning.
        let kept = evidence(&world, 2);
        let forks: Vec<&Value> =
            kept.iter().filter(|(kind, _)| *kind == b'f').map(|(_, proof)| proof).collect();
        let [proof] = forks[..] else { panic!("{kept:?}") };
        let other = json(text(proof, "entry"));
        assert_eq!(Some(&other), bobs.last());
        let seq = carols.len() - 1;
        for half in [&carols[seq], &other] {
            let chain: Vec<Value> = carols[..seq].iter().chain([half]).cloned().collect();
            Roster::from_entries(&chain).unwrap();
        }
        assert_eq!(entries(&world, 2), carols, "the other branch is not taken");
        world.start(2);
        world.pass(60_000);
    }

    // What she signs commits to her branch. Brought to bob, it is the proof there, across restarts too.
    let signed = presence(&world, 2);
    world.say_to(1, &format!(r#"{{"t":"deliver","env":{signed}}}"#));
    for _ in 0..3 {
        let status = world.ok(1, "daemon.status", "{}");
        assert_eq!(text(&status, "divergence.person"), "carol");
        let kept = evidence(&world, 1);
        assert!(
            kept.iter().any(|(kind, kept)| *kind == b'd' && text(kept, "envelope") == signed),
            "{kept:?}"
        );
        world.start(1);
        world.pass(5_000);
    }
    // And the honest part of the team goes on.
    assert!(world.ok(0, "daemon.status", "{}").get("divergence").is_none());
    assert!(world.connected(0) && world.connected(1));
}
