//! Three persons, five machines, one relay, real processes: mail, a held request answered each way, a task that is
//! delegated twice, direct lines, a channel of three with a removal, a machine removed, a machine with a new key, a
//! machine away and back. Then the same with processes killed at random moments: the end is the same.
//!
//! `MESSAGING_STORY_KILLS=200 cargo test -p messaging --test story` kills that many times.

#![allow(clippy::unwrap_used)]

mod actor;
mod end;
mod killer;
mod reports;
mod script;
#[path = "../world/mod.rs"]
mod world;

use killer::Killer;
use script::Story;
use serde_json::Value;

/// How many kills a run in CI makes.
const KILLS: usize = 12;
/// How many one telling of the story bears, so that it ends before the patience of a step.
const KILLS_A_STORY: usize = 25;

/// How many kills are asked for.
fn kills(otherwise: usize) -> usize {
    let asked = std::env::var("MESSAGING_STORY_KILLS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn the_story_ends_as_it_should() {
    let story = Story::new();
    story.tell();
    let expected: Value = serde_json::from_str(include_str!("expected.json")).unwrap();
    let end = story.settled_end(&expected);
    assert!(end == expected, "{end:#}");
}

#[test]
fn the_story_ends_the_same_under_kill_9() {
    let wanted = kills(KILLS);
    let expected: Value = serde_json::from_str(include_str!("expected.json")).unwrap();
    let mut killed = 0;
    let mut seed = 1_u64;
    while killed < wanted {
        let story = Story::new();
        let killer = Killer::start(&story.world, seed, (wanted - killed).min(KILLS_A_STORY));
        story.tell();
        killed += killer.stop();
        let end = story.settled_end(&expected);
        assert!(end == expected, "seed {seed}: {end:#}");
        println!("seed {seed}: {killed} of {wanted} kills");
        seed += 1;
    }
}
