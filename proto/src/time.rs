//! The two clocks, kept apart by type. There is no arithmetic between them.

use serde::{Deserialize, Serialize};

/// Milliseconds of a monotonic clock that also counts system sleep. Never goes back.
///
/// For timers, backoff, token buckets and redelivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Mono(pub u64);

/// Milliseconds since 1970-01-01T00:00:00Z, at most 2^53 − 1. May jump either way.
///
/// For `ts`, `exp`, clock skew and retention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Wall(pub u64);

impl Mono {
    /// This instant plus `ms`, saturating.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this instant, 0 when it is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Wall {
    /// This instant plus `ms`, saturating.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// This instant minus `ms`, saturating at the epoch.
    #[must_use]
    pub const fn minus(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms))
    }

    /// The absolute difference in milliseconds.
    #[must_use]
    pub const fn distance(self, other: Self) -> u64 {
        self.0.abs_diff(other.0)
    }
}
