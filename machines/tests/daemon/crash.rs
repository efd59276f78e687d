//! A crash at any moment of the way into a team, and two runs that are the same.

use crate::common::{Crash, URL, World, at, text};
use messaging_proto::identity::IdentityFile;
use messaging_proto::json::Value;

/// Prepares a world, begins a flow in it with a crash at each of its steps, in each of the ways one can crash, and
/// checks the end. Returns at how many steps a crash happened.
fn at_every_step(
    prepare: impl Fn(&mut World) -> usize,
    begin: impl Fn(&mut World, usize),
    check: impl Fn(&mut World, usize, Crash),
) -> usize {
    for step in 1.. {
        let mut any = false;
        for (committed, effects) in [(false, 0), (true, 0), (true, 1), (true, 2)] {
            let mut world = World::new(step as u64);
            let number = prepare(&mut world);
            let crash = Crash { at: step, committed, effects };
            world.crash(number, crash);
            begin(&mut world, number);
            world.pass(3_000);
            any |= world.nodes[number].crash.take().is_none();
            world.pass(130_000);
            check(&mut world, number, crash);
        }
        if !any {
            return step - 1;
        }
    }
    0
}

fn in_team(world: &mut World, number: usize) -> bool {
    world.call(number, "team.info", "{}").is_ok()
}

#[test]
fn creating_survives_a_crash_at_any_step() {
    let params = format!(r#"{{"relay":"{URL}","name":"t","person":"alice","label":"l"}}"#);
    let steps = at_every_step(
        World::add,
        |world, number| {
            let admin = world.nodes[number].admin;
            world.ask(number, admin, "team.create", &params);
        },
        |world, number, crash| {
            if !in_team(world, number) {
                // Nothing was said before the crash: it can be done again.
                assert!(world.nodes[number].pairing.is_none(), "{crash:?}: no keys are left over");
                world.ok(number, "team.create", &params);
            }
            world.pass(60_000);
            assert_eq!(text(&world.ok(number, "daemon.health", "{}"), "relay"), "connected", "{crash:?}");
            assert!(world.nodes[number].pairing.is_none(), "{crash:?}");
            assert!(world.nodes[number].config.contains("alice"), "{crash:?}");
        },
    );
    assert!(steps >= 8, "{steps} steps");
}

#[test]
fn joining_survives_a_crash_at_any_step() {
    let ticket = std::cell::RefCell::new(String::new());
    let join = || format!(r#"{{"ticket":"{}","label":"desk"}}"#, ticket.borrow());
    let steps = at_every_step(
        |world| {
            world.join_next("alice/laptop");
            *ticket.borrow_mut() = world.ticket(0, "bob");
            world.add()
        },
        |world, number| {
            let admin = world.nodes[number].admin;
            world.ask(number, admin, "team.join", &join());
        },
        |world, number, crash| {
            if !in_team(world, number) {
                assert!(world.nodes[number].pairing.is_none(), "{crash:?}: no keys are left over");
                world.ok(number, "team.join", &join());
            }
            world.pass(60_000);
            let info = world.ok(number, "team.info", "{}");
            assert_eq!(at(&info, "members").as_array().unwrap().len(), 2, "{crash:?}");
            assert_eq!(text(&world.ok(number, "daemon.health", "{}"), "relay"), "connected", "{crash:?}");
            assert!(world.nodes[number].pairing.is_none(), "{crash:?}");
        },
    );
    assert!(steps >= 10, "{steps} steps");
}

#[test]
fn rotating_survives_a_crash_at_any_step() {
    let steps = at_every_step(
        |world| world.join_next("alice/laptop"),
        |world, number| {
            let admin = world.nodes[number].admin;
            world.ask(number, admin, "identity.rotateEnc", "{}");
        },
        |world, number, crash| {
            let file = world.nodes[number].identity.clone().unwrap();
            let identity = IdentityFile::new(zeroize::Zeroizing::new(file)).read().unwrap();
            let info = world.ok(number, "team.info", "{}");
            let published = text(&info, "members.0.enc");
            assert_eq!(identity.enc().to_string(), published, "{crash:?}: the file and the roster agree");
            assert!(identity.pending().is_none(), "{crash:?}");
            let health = world.ok(number, "daemon.health", "{}");
            assert_eq!(at(&health, "alarm"), &Value::Null, "{crash:?}");
        },
    );
    assert!(steps >= 4, "{steps} steps");
}

/// A busy hour of a team.
fn busy(seed: u64) -> Vec<String> {
    let mut world = World::team(seed, &["alice/laptop", "bob/desk", "carol/host"]);
    world.ok(1, "identity.rotateEnc", "{}");
    world.reach_from(2, false);
    world.ticket(0, "dave");
    world.restart_relay();
    world.pass(30_000);
    world.crash(1, Crash { at: 5, committed: true, effects: 1 });
    world.reach_from(2, true);
    world.pass(600_000);
    world.join_next("dave/phone");
    world.pass(600_000);
    world.log
}

#[test]
fn two_runs_are_the_same_to_the_byte() {
    let (first, second) = (busy(7), busy(7));
    assert!(first.len() > 300, "{} effects", first.len());
    for (at, (one, other)) in first.iter().zip(&second).enumerate() {
        assert_eq!(one, other, "effect {at}");
    }
    assert_eq!(first.len(), second.len());
    assert_ne!(first, busy(8), "another seed is another run");
}
