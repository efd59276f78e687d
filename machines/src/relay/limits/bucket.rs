//! Token buckets in whole numbers.

use messaging_proto::time::Mono;

/// How a bucket refills: `tokens` per `period_ms`, continuously, up to `burst`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens per period.
    pub tokens: u64,
    /// The period in milliseconds.
    pub period_ms: u64,
    /// What a full bucket holds.
    pub burst: u64,
}

impl Rate {
    /// `tokens` a minute, a minute's worth at most.
    #[must_use]
    pub const fn per_minute(tokens: u64) -> Self {
        Self { tokens, period_ms: 60_000, burst: tokens }
    }

    const fn full(&self) -> u64 {
        self.burst.saturating_mul(self.period_ms)
    }
}

/// A bucket of a [`Rate`] that its owner keeps. Starts full (contract wire-core §7.9).
///
/// The level is in tokens times the period, so that a refill of one millisecond is a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    level: u64,
    at: Mono,
}

impl Bucket {
    /// A full bucket.
    #[must_use]
    pub const fn new(rate: &Rate, now: Mono) -> Self {
        Self { level: rate.full(), at: now }
    }

    fn level(&self, rate: &Rate, now: Mono) -> u64 {
        let refill = now.since(self.at).saturating_mul(rate.tokens);
        self.level.saturating_add(refill).min(rate.full())
    }

    /// Milliseconds until `cost` tokens are there; 0 when they are. A cost over the burst never fits, and the
    /// wait is then until the bucket is full.
    #[must_use]
    pub fn wait_ms(&self, rate: &Rate, now: Mono, cost: u64) -> u64 {
        let need = cost.saturating_mul(rate.period_ms);
        let level = self.level(rate, now);
        if need <= level {
            return 0;
        }
        (need.min(rate.full()).saturating_sub(level)).div_ceil(rate.tokens.max(1)).max(1)
    }

    /// Takes `cost` tokens that [`Self::wait_ms`] said are there.
    pub fn take(&mut self, rate: &Rate, now: Mono, cost: u64) {
        self.level = self.level(rate, now).saturating_sub(cost.saturating_mul(rate.period_ms));
        self.at = now;
    }

    /// Whether nothing is missing: a new bucket would be the same.
    #[must_use]
    pub fn is_full(&self, rate: &Rate, now: Mono) -> bool {
        self.level(rate, now) == rate.full()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn starts_full_refills_evenly_and_says_how_long() {
        let rate = Rate::per_minute(600);
        let mut bucket = Bucket::new(&rate, Mono(0));
        for _ in 0..600 {
            assert_eq!(bucket.wait_ms(&rate, Mono(0), 1), 0);
            bucket.take(&rate, Mono(0), 1);
        }
        assert_eq!(bucket.wait_ms(&rate, Mono(0), 1), 100);
        assert_eq!(bucket.wait_ms(&rate, Mono(99), 1), 1);
        assert_eq!(bucket.wait_ms(&rate, Mono(100), 1), 0);
        assert!(!bucket.is_full(&rate, Mono(59_999)));
        assert!(bucket.is_full(&rate, Mono(60_000)));
        assert_eq!(bucket.wait_ms(&rate, Mono(60_000), 601), 1, "over the burst never fits");
    }

    #[test]
    fn presence_is_five_then_one_every_two_seconds() {
        let rate = Rate { tokens: 1, period_ms: 2_000, burst: 5 };
        let mut bucket = Bucket::new(&rate, Mono(0));
        (0..5).for_each(|_| bucket.take(&rate, Mono(0), 1));
        assert_eq!(bucket.wait_ms(&rate, Mono(0), 1), 2_000);
        assert_eq!(bucket.wait_ms(&rate, Mono(1_999), 1), 1);
        bucket.take(&rate, Mono(2_000), 1);
        assert_eq!(bucket.wait_ms(&rate, Mono(2_000), 1), 2_000);
    }

    proptest! {
        /// Over any stretch of time a bucket lets through at most its burst and what refilled.
        #[test]
        fn never_more_than_burst_and_refill(
            tokens in 1_u64..1_000, period in 1_u64..100_000, burst in 1_u64..1_000,
            asks in prop::collection::vec((0_u64..5_000, 1_u64..50), 1..200),
        ) {
            let rate = Rate { tokens, period_ms: period, burst };
            let mut bucket = Bucket::new(&rate, Mono(0));
            let (mut now, mut taken) = (Mono(0), 0_u64);
            for (pause, cost) in asks {
                now = now.plus(pause);
                let wait = bucket.wait_ms(&rate, now, cost);
                if wait == 0 {
                    bucket.take(&rate, now, cost);
                    taken += cost;
                } else if cost <= burst {
                    prop_assert_eq!(bucket.wait_ms(&rate, now.plus(wait), cost), 0);
                    prop_assert!(bucket.wait_ms(&rate, now.plus(wait - 1), cost) > 0);
                }
                prop_assert!(u128::from(taken) * u128::from(period)
                    <= u128::from(burst) * u128::from(period) + u128::from(now.0) * u128::from(tokens));
            }
        }
    }
}
