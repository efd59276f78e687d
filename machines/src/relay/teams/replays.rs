//! What replaying rosters may cost (`messaging/1 §7`, "Limits": nobody's requests stop the relay for the others).
//!
//! A team that is not parsed is replayed when a connection names it. A large one takes long enough that a few
//! connections, each naming another, would keep the machine busy. So large replays are paid for.

use crate::relay::limits::{Bucket, Rate};
use messaging_proto::time::Mono;

/// Rosters of so many entries are replayed whenever they are asked for.
const FREE: u64 = 1_000;

/// Entries replayed in a second beyond that: some hundredths of a processor.
const RATE: Rate = Rate { tokens: 5_000, period_ms: 1_000, burst: 100_000 };

/// For whom a roster is replayed. Each has an allowance of its own: what strangers use up, members still have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) enum Asker {
    /// A current member that says `hello`.
    Member,
    /// Somebody with an invite, or with a guess at one.
    Stranger,
}

/// The allowances, full at first.
#[derive(Default)]
pub(super) struct Replays {
    member: Option<Bucket>,
    stranger: Option<Bucket>,
}

impl Replays {
    /// Milliseconds until a roster of so many entries may be replayed; 0 when it may now, and is paid for.
    pub(super) fn wait_ms(&mut self, asker: Asker, entries: u64, now: Mono) -> u64 {
        if entries <= FREE {
            return 0;
        }
        let bucket = match asker {
            Asker::Member => &mut self.member,
            Asker::Stranger => &mut self.stranger,
        };
        let bucket = bucket.get_or_insert_with(|| Bucket::new(&RATE, now));
        // One that is larger than the whole allowance takes the whole.
        let cost = entries.min(RATE.burst);
        let wait = bucket.wait_ms(&RATE, now, cost);
        if wait == 0 {
            bucket.take(&RATE, now, cost);
        }
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_replays_are_paid_for_and_small_ones_are_not() {
        let mut replays = Replays::default();
        assert_eq!(replays.wait_ms(Asker::Stranger, 60_000, Mono(0)), 0);
        assert_eq!(replays.wait_ms(Asker::Stranger, 60_000, Mono(0)), 4_000, "20,000 more at 5,000 a second");
        assert_eq!(replays.wait_ms(Asker::Stranger, FREE, Mono(0)), 0);
        assert_eq!(replays.wait_ms(Asker::Member, 60_000, Mono(0)), 0, "members have their own");
        assert_eq!(replays.wait_ms(Asker::Stranger, 60_000, Mono(4_000)), 0);
        assert_eq!(
            replays.wait_ms(Asker::Member, 1_000_000, Mono(100_000)),
            0,
            "the largest can be paid for too"
        );
    }
}
