//! The runs of the simulator: they agree, they repeat, and they can fail.
#![allow(clippy::unwrap_used)]

use messaging_sim::World;
use messaging_sim::chaos::{agree, team, team_twice};

#[test]
fn a_seed_repeats_to_the_last_effect_and_seeds_differ() {
    let reports: Vec<_> = (100..103).map(|seed| team_twice(seed, 30).unwrap()).collect();
    for report in &reports {
        assert_eq!((report.steps, report.members), (30, 3), "seed {}", report.seed);
        assert!(report.entries >= 5, "a genesis, two invites and two joins: {report:?}");
    }
    assert_ne!(reports[0].effects, reports[1].effects);
    assert_ne!(reports[1].effects, reports[2].effects);
}

#[test]
fn more_steps_are_another_run() {
    assert_ne!(team(7, 5).unwrap().effects, team(7, 25).unwrap().effects);
}

#[test]
fn a_machine_that_is_cut_off_is_named_with_the_seed() {
    let mut world = World::team(9, &["alice/laptop", "bob/desk"]);
    agree(&mut world, 9).unwrap();
    world.reach_from(1, false);
    let failure = agree(&mut world, 9).unwrap_err();
    assert_eq!(failure.to_string(), "seed 9: machine 1: it is not connected");
}

#[test]
fn a_machine_with_another_key_than_the_roster_is_named() {
    let mut world = World::team(11, &["alice/laptop", "bob/desk"]);
    world.nodes[1].identity = world.nodes[0].identity.clone();
    let failure = agree(&mut world, 11).unwrap_err();
    assert!(failure.what.starts_with("machine 1: the roster has another key"), "{failure}");
}
