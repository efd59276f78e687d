//! `kill -9` of daemons and the relay at random moments.

use crate::script::MACHINES;
use crate::world::World;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Kills and restarts one process after another, until it is told to stop.
pub(crate) struct Killer {
    stop: Arc<AtomicBool>,
    killed: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Killer {
    /// Starts killing, at most `most` times.
    pub(crate) fn start(world: &Arc<Mutex<World>>, seed: u64, most: usize) -> Self {
        let (stop, killed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (world, halt, count) = (Arc::clone(world), Arc::clone(&stop), Arc::clone(&killed));
        let thread = std::thread::spawn(move || {
            let mut random = Random(seed);
            while !halt.load(Ordering::Relaxed) && count.load(Ordering::Relaxed) < most {
                std::thread::sleep(random.pause(10, 290));
                let deaths = strike(&mut world.lock().unwrap(), &mut random);
                count.fetch_add(deaths, Ordering::Relaxed);
            }
        });
        Self { stop, killed, thread: Some(thread) }
    }

    /// Ends the killing. How many processes died.
    pub(crate) fn stop(mut self) -> usize {
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

/// Kills one process, or two at once, and starts them again; now and then one dies again while it starts.
fn strike(world: &mut World, random: &mut Random) -> usize {
    let mut victims = vec![random.below(6)];
    if random.below(4) == 0 {
        victims.push(random.below(6));
        victims.dedup();
    }
    // One that is away in the story stays away.
    victims.retain(|&victim| home(victim).is_none_or(|home| world.runs(home)));
    for &victim in &victims {
        match home(victim) {
            Some(home) => world.kill_daemon(home),
            None => world.kill_relay(),
        }
    }
    let mut deaths = victims.len();
    for &victim in &victims {
        let again = random.below(4) == 0;
        deaths += usize::from(again);
        let life = random.pause(1, 40);
        match home(victim) {
            Some(home) => {
                if again {
                    world.flash_daemon(home, life);
                }
                world.start_daemon(home);
            }
            None => {
                if again {
                    world.flash_relay(life);
                }
                world.start_relay();
            }
        }
    }
    deaths
}

/// The home of a victim; the relay has none.
fn home(victim: u64) -> Option<&'static str> {
    let index = usize::try_from(victim).unwrap().checked_sub(1)?;
    MACHINES.get(index).map(|(home, ..)| *home)
}

/// A small generator is enough: what is random here is the moment.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    pub(crate) fn pause(&mut self, least: u64, more: u64) -> Duration {
        Duration::from_millis(least + self.below(more))
    }
}
