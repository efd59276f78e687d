//! A page of the store that does not read: what stands on it is out of reach until a backup is restored, and everything
//! else is served on (`messaging/1 §7`, "Store failures").

use super::Perform;
use super::run::{End, Run};
use crate::clock;
use messaging_machines::Machine;
use messaging_proto::time::Mono;

/// Damage met in a row before the store counts as failing.
const MOST: u64 = 16;
/// In so many milliseconds one more is allowed.
const EACH_MS: u64 = 1_000;
/// What time alone brings about waits for so many milliseconds when it met damage: it would meet it again at once.
const TIMERS_MS: u64 = 5_000;

/// Why a session is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The store failed.
    Failed,
    /// It met a damaged page.
    Damaged,
    /// Nothing happened: another takes its place.
    Renewed,
}

/// How often damage is passed over.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    /// When all that was met of late is paid for.
    paid: Mono,
    /// No timer before this.
    pub(super) timers_after: Mono,
}

impl Allowance {
    fn take(&mut self, now: Mono) -> bool {
        let paid = self.paid.max(now).plus(EACH_MS);
        let allowed = paid.since(now) <= MOST * EACH_MS;
        if allowed {
            self.paid = paid;
        }
        allowed
    }
}

impl<M: Machine, P: Perform<M>> Run<M, P> {
    /// Whether the damage that was just met is passed over.
    pub(super) fn passes_over(&mut self) -> bool {
        self.perform.passes_over_damage() && self.allowance.take(clock::mono())
    }

    /// After a timer that failed.
    pub(super) fn hold_timers(&mut self, end: &End) {
        if matches!(end, End::Damaged(_)) {
            self.allowance.timers_after = clock::mono().plus(TIMERS_MS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_passed_over_sixteen_times_and_then_once_a_second() {
        let mut allowance = Allowance::default();
        let start = Mono(1_000_000);
        let taken = (0..100).filter(|_| allowance.take(start)).count();
        assert_eq!(taken, 16);
        assert!(!allowance.take(start.plus(999)));
        assert!(allowance.take(start.plus(1_000)) && !allowance.take(start.plus(1_000)));
        assert_eq!((0..100).filter(|_| allowance.take(start.plus(60_000))).count(), 16);
    }
}
