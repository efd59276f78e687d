//! Random teams under random faults: nothing is lost that was accepted, and once the faults end everybody agrees.
//! The plan and the checks are the simulator's.

use messaging_sim::chaos::{STEPS, join, team};

#[test]
fn faults_come_and_go_and_everybody_agrees() {
    let mut entries = 0;
    for seed in 0..40 {
        let report = team(seed, STEPS).unwrap();
        entries += report.entries - 5;
    }
    assert!(entries > 200, "{entries} entries were written in all");
}

#[test]
fn a_join_under_faults_ends_in_the_team_or_can_be_done_again() {
    for seed in 0..60 {
        let report = join(seed).unwrap();
        assert_eq!(report.members, 2, "seed {seed}: no ghost joined");
    }
}
