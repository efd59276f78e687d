//! How long to wait before the next connection (`contract wire-core §7.10`): 500 ms doubling to 60 s, with full
//! jitter.

/// The first bound.
const FIRST_MS: u64 = 500;
/// The last one.
const LAST_MS: u64 = 60_000;

/// How often in a row a connection did not last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Backoff {
    tries: u32,
}

impl Backoff {
    /// The next wait, in milliseconds. `slow` after another process took this machine's place: two of them must
    /// not throw each other out at full speed, so the wait is in the upper half of the longest.
    pub(super) fn next(&mut self, slow: bool, draw_below: impl Fn(u64) -> u64) -> u64 {
        let bound = (FIRST_MS << self.tries.min(7)).min(LAST_MS);
        self.tries = self.tries.saturating_add(1);
        if slow { LAST_MS / 2 + draw_below(LAST_MS / 2 + 1) } else { draw_below(bound + 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_doubles_to_a_minute_and_replaced_waits_long() {
        let mut backoff = Backoff::default();
        let most: Vec<u64> = (0..10).map(|_| backoff.next(false, |bound| bound - 1)).collect();
        assert_eq!(most, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
        assert_eq!(Backoff::default().next(false, |_| 0), 0, "full jitter starts at nothing");
        assert_eq!(Backoff::default().next(true, |_| 0), 30_000);
        assert_eq!(Backoff::default().next(true, |bound| bound - 1), 60_000);
    }
}
