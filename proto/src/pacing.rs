//! Pacing of lines by agents to a person (`messaging/1 §6.9`, "Pacing").

use crate::limits::{A2H_PER_DAY, A2H_PER_HOUR};
use crate::time::Mono;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 86_400_000;

/// The lines that one person's agents had accepted for one other person, within the last day.
///
/// It counts in memory: a restart starts the windows again. Its clock is the monotonic one, so a set clock neither
/// opens nor closes a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct A2h {
    /// The times of the accepted lines, oldest first.
    times: VecDeque<Mono>,
}

impl A2h {
    /// A counter that has accepted nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { times: VecDeque::new() }
    }

    /// Whether a line may be accepted now. A line that is refused counts for nothing.
    ///
    /// # Errors
    /// The earliest time at which a line may be accepted, if nothing else is until then.
    pub fn check(&self, now: Mono) -> Result<(), Mono> {
        let waits = [(A2H_PER_HOUR, HOUR_MS), (A2H_PER_DAY, DAY_MS)].into_iter();
        match waits.filter_map(|(most, window)| self.full_until(most, window, now)).max() {
            Some(retry_at) => Err(retry_at),
            None => Ok(()),
        }
    }

    /// Counts a line that was accepted now, and forgets those that left the longest window.
    pub fn accept(&mut self, now: Mono) {
        self.times.retain(|time| now.since(*time) < DAY_MS);
        self.times.push_back(now);
    }

    /// Whether nothing is counted any more, so that the counter may be dropped.
    #[must_use]
    pub fn is_idle(&self, now: Mono) -> bool {
        self.times.iter().all(|time| now.since(*time) >= DAY_MS)
    }

    /// When the count of the last `window` milliseconds falls below `most`; nothing when it is below now.
    fn full_until(&self, most: usize, window: u64, now: Mono) -> Option<Mono> {
        let counted = self.times.iter().filter(|time| now.since(**time) < window).count();
        // With n counted, the oldest n - most + 1 must leave; the last of them is the most-th from the end.
        let last_to_leave = self.times.len().checked_sub(most).filter(|_| counted >= most)?;
        self.times.get(last_to_leave).map(|time| time.plus(window))
    }
}
