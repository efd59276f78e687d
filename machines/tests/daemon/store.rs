//! What is in the store: its shape, its size, and what happens when it is not what it should be.

use crate::common::shapes::shapes;
use crate::common::{World, at, text};
use messaging_machines::daemon::schema;
use messaging_machines::store::{MemoryBase, Txn, Writes};
use messaging_proto::json::Value;
use std::collections::BTreeSet;

/// Changes a store outside any machine.
fn edit(base: &mut MemoryBase, change: impl FnOnce(&mut Txn<'_>)) {
    let mut writes = Writes::new();
    change(&mut Txn::new(base, None, &mut writes));
    base.apply(&writes);
}

#[test]
fn a_roster_that_does_not_lead_to_its_head_is_not_used() {
    let mut world = World::team(1, &["alice/laptop"]);
    world.ticket(0, "bob");
    edit(&mut world.nodes[0].base, |txn| txn.delete(schema::ROSTER, &1_u64.to_be_bytes()));
    world.start(0);
    assert!(world.log.iter().any(|line| line.contains("roster.broken")));
    assert_eq!(world.refused(0, "team.info", "{}"), "no_identity");
    assert_eq!(text(&world.ok(0, "daemon.health", "{}"), "relay"), "offline");
    // Nothing of the home is overwritten.
    let url = crate::common::URL;
    let params = format!(r#"{{"relay":"{url}","name":"t","person":"alice","label":"l"}}"#);
    assert_eq!(world.refused(0, "team.create", &params), "invalid_state");
}

#[test]
fn a_row_of_a_newer_version_counts_as_absent() {
    let mut world = World::new(1);
    world.add();
    world.ok(0, "team.prepare", "{}");
    edit(&mut world.nodes[0].base, |txn| txn.put(schema::TEAM, b"pending", b"\x02{}"));
    world.start(0);
    assert_eq!(world.ok(0, "team.pairCancel", "{}"), crate::common::json(r#"{"cancelled":false}"#));
}

#[test]
fn a_long_roster_loads() {
    let mut world = World::new(1);
    world.relay.config.limits.frames_per_minute = 1_000_000;
    world.restart_relay();
    world.join_next("alice/laptop");
    for _ in 0..300 {
        world.ticket(0, "somebody");
    }
    world.start(0);
    world.settle();
    assert_eq!(at(&world.ok(0, "team.info", "{}"), "head.seq"), &Value::int(300));
}

#[test]
fn the_stored_shapes_are_the_recorded_ones() {
    // §8.8 "The test": a change of the store is seen in review, as a change of the recorded file.
    let url = crate::common::URL;
    let mut bases: Vec<MemoryBase> = Vec::new();
    let mut world = World::new(1);
    for number in 0..3 {
        world.add();
        world.nodes[number].keep = true;
    }
    world.ok(0, "team.prepare", "{}");
    world.ok(0, "team.create", &format!(r#"{{"relay":"{url}","name":"t","person":"alice","label":"l"}}"#));
    world.settle();
    let ticket = world.ticket(0, "bob");
    world.ok(1, "team.join", &format!(r#"{{"ticket":"{ticket}","label":"l"}}"#));
    let team = "A".repeat(43);
    world.ok(2, "team.pair", &format!(r#"{{"relay":"{url}","team":"{team}","person":"a","label":"l"}}"#));
    // A head that the relay withholds from bob: evidence.
    world.pass(5_000);
    world.relay.swallow = Some((1, r#""t":"roster"#));
    world.ticket(0, "carol");
    world.pass(100_000);
    for node in &mut world.nodes {
        bases.append(&mut node.kept);
    }
    let found = shapes(&bases.iter().collect::<Vec<_>>(), &["evidence", "meta", "roster", "team"]);
    let recorded = include_str!("store-1.txt");
    assert_eq!(found.trim(), recorded.trim(), "the store changed; found:\n{found}");
}

#[test]
fn every_table_has_its_own_name() {
    let names: BTreeSet<&str> = schema::TABLES.iter().map(|table| table.0).collect();
    assert_eq!(names.len(), schema::TABLES.len());
}
