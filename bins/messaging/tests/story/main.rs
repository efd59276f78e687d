//! Three persons, five machines, one relay, real processes: mail, a held request answered each way, a task that is
//! delegated twice, direct lines, a channel of three with a removal, a machine removed, a machine with a new key, a
//! machine away and back. Then the same with processes killed at random moments: the end is the same.
//!
//! `MESSAGING_STORY_KILLS=200 cargo test -p messaging --test story` kills that many times.

#![allow(clippy::unwrap_used)]

mod actor;
mod end;
mod script;
#[path = "../world/mod.rs"]
mod world;

use script::Story;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use world::World;

/// How many kills a run in CI makes.
const KILLS: usize = 12;
/// How many one telling of the story bears, so that it ends before the patience of a step.
const KILLS_A_STORY: usize = 25;

#[test]
fn the_story_ends_as_it_should() {
    let story = Story::new();
    story.tell();
    let expected: Value = serde_json::from_str(include_str!("expected.json")).unwrap();
    let end = story.settled_end(&expected);
    assert_eq!(end, expected, "{}", serde_json::to_string_pretty(&end).unwrap());
}

#[test]
fn the_story_ends_the_same_under_kill_9() {
    let wanted =
        std::env::var("MESSAGING_STORY_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let expected: Value = serde_json::from_str(include_str!("expected.json")).unwrap();
    let mut killed = 0;
    let mut seed = 1_u64;
    while killed < wanted {
        let story = Story::new();
        let killer = Killer::start(&story.world, seed, (wanted - killed).min(KILLS_A_STORY));
        story.tell();
        killed += killer.stop();
        let end = story.settled_end(&expected);
        assert_eq!(end, expected, "seed {seed}: {}", serde_json::to_string_pretty(&end).unwrap());
        println!("seed {seed}: {killed} of {wanted} kills");
        seed += 1;
    }
}

/// Kills and restarts one process after another, until it is told to stop.
struct Killer {
    stop: Arc<AtomicBool>,
    killed: Arc<AtomicUsize>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Killer {
    fn start(world: &Arc<Mutex<World>>, seed: u64, most: usize) -> Self {
        let (stop, killed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (world, halt, count) = (Arc::clone(world), Arc::clone(&stop), Arc::clone(&killed));
        let thread = std::thread::spawn(move || {
            let mut state = seed;
            let mut draw = |below: u64| {
                // A small generator is enough: what is random here is the moment.
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            while !halt.load(Ordering::Relaxed) && count.load(Ordering::Relaxed) < most {
                std::thread::sleep(Duration::from_millis(10 + draw(290)));
                let victim = draw(6);
                let mut world = world.lock().unwrap();
                match victim
                    .checked_sub(1)
                    .and_then(|index| script::MACHINES.get(usize::try_from(index).unwrap()))
                {
                    None => {
                        world.kill_relay();
                        world.start_relay();
                    }
                    Some((home, ..)) if world.runs(home) => {
                        world.kill_daemon(home);
                        world.start_daemon(home);
                    }
                    // It is away in the story.
                    Some(_) => continue,
                }
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { stop, killed, thread: Some(thread) }
    }

    fn stop(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.killed.load(Ordering::Relaxed)
    }
}

impl Drop for Killer {
    fn drop(&mut self) {
        // Also when the story failed: nothing is started behind its back.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
