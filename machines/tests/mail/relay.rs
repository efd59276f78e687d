//! Mail under the relay's pacing, and a relay that fails.

use crate::clients::{Agent, open};
use crate::common::{World, text};

/// §7 "Delivery", §8.3: a backlog is delivered at the recipient's budget, in order, all of it, once.
#[test]
fn a_backlog_arrives_whole_and_in_order() {
    let mut world = World::team(11, &["alice/laptop", "bob/desk"]);
    open(&mut world, 1, "alice");
    let mut alice = Agent::new(&mut world, 0, 'a', "lead");
    let mut bobs = [Agent::new(&mut world, 1, 'b', "one"), Agent::new(&mut world, 1, 'c', "two")];
    world.pass(3_000);
    world.reach_from(1, false);
    // Two sessions, and a pause between, so that only the machine's budget is in the way, not the loop guard.
    for round in 0..8 {
        for number in 0..10 {
            let to = ["bob/one", "bob/two"][round % 2];
            alice.send(&mut world, to, &format!("{round}-{number}"), "");
        }
    }
    world.pass(5_000);
    world.reach_from(1, true);
    // Twenty of one sender to one session pass the loop guard in ten minutes; the rest is refused and told.
    world.pass(180_000);
    for bob in &mut bobs {
        bob.register(&mut world);
        let inbox = bob.inbox(&mut world);
        assert_eq!(inbox.len(), 20);
        let mut sorted = inbox.clone();
        sorted.sort();
        assert_eq!(inbox, sorted, "in order");
    }
}

/// The relay dies at any time: what it acked it has, and what it did not it gets again.
#[test]
fn the_relay_restarts_between_any_two_sends() {
    let mut world = World::team(12, &["alice/laptop", "bob/desk"]);
    open(&mut world, 1, "alice");
    let mut alice = Agent::new(&mut world, 0, 'a', "lead");
    let mut bob = Agent::new(&mut world, 1, 'b', "agent");
    world.pass(3_000);
    let mut ids = Vec::new();
    for number in 0..10 {
        ids.push(
            text(&alice.send(&mut world, "bob/agent", &number.to_string(), ""), "envelopeId").to_owned(),
        );
        world.restart_relay();
        world.pass(if number % 3 == 0 { 70_000 } else { 100 });
    }
    world.pass(120_000);
    assert_eq!(bob.inbox(&mut world), ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    for id in ids {
        assert_eq!(alice.stages(&mut world, &id), ["accepted", "relayed", "delivered"]);
    }
}
