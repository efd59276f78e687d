//! How a driver and its store are: read by other threads, for `/readyz` and the metrics.

use crate::store::{Reader, RedbStore};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Upper bounds of the commit histogram, in microseconds.
pub const COMMIT_BUCKETS_MICROS: [u64; 13] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000,
];

/// Flags and counters. Counters start at 0 with the process.
#[derive(Debug, Default)]
pub struct Health {
    pub(super) closed: AtomicBool,
    pub(super) failing: AtomicBool,
    pub(super) full: AtomicBool,
    pub(super) stopping: AtomicBool,
    pub(super) reading: AtomicBool,
    pub(super) writes: AtomicU64,
    pub(super) store_errors: AtomicU64,
    /// The store, while a machine runs over it.
    store: Mutex<Option<Arc<RedbStore>>>,
    /// Time in commit.
    pub commits: Histogram,
    /// Time that events waited for the machine.
    pub delay: Histogram,
}

impl Health {
    /// The store is not open, or does not answer reads (`store_closed`).
    #[must_use]
    pub fn store_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// The last write failed and none has committed since (`store_failing`).
    #[must_use]
    pub fn store_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// Whether a machine runs: over a store that takes writes, or one that is read meanwhile.
    #[must_use]
    pub fn serves(&self) -> bool {
        !self.store_failing() || self.reading.load(Ordering::Relaxed)
    }

    /// The last write failed because the disk, or the owner's share of it, was full.
    #[must_use]
    pub fn disk_full(&self) -> bool {
        self.store_failing() && self.full.load(Ordering::Relaxed)
    }

    /// The process is shutting down (`stopping`).
    #[must_use]
    pub fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Marks the process as shutting down. A driver without a machine then ends.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Rows committed.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Store operations that failed.
    #[must_use]
    pub fn store_errors(&self) -> u64 {
        self.store_errors.load(Ordering::Relaxed)
    }

    fn store(&self) -> MutexGuard<'_, Option<Arc<RedbStore>>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_store(&self, store: Option<&Arc<RedbStore>>) {
        *self.store() = store.cloned();
    }

    /// Reads what is durable now, from any thread. Nothing while the store is closed. The store cannot be closed
    /// meanwhile, so keep it short.
    pub fn read<T>(&self, read: impl FnOnce(&Reader) -> T) -> Option<T> {
        self.store().as_ref().map(|store| read(&store.reader()))
    }

    /// The open store; nothing while it is closed. It cannot be closed or opened again while this is held.
    pub(crate) fn handle(&self) -> Option<Arc<RedbStore>> {
        self.store().clone()
    }

    /// The store file's length; 0 while it is closed.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.store().as_ref().map_or(0, |store| store.file_bytes())
    }

    /// The length of the store's journal; 0 while it is closed, or has none.
    #[must_use]
    pub fn journal_bytes(&self) -> u64 {
        self.store().as_ref().map_or(0, |store| store.journal_bytes())
    }
}

const BUCKETS: usize = 192;

/// A histogram of microseconds with eight buckets a doubling (12 % wide), up to 2^26 µs (67 s).
#[derive(Debug)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    count: AtomicU64,
    sum: AtomicU64,
    max: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            count: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            max: AtomicU64::new(0),
        }
    }
}

impl Histogram {
    /// Adds a measurement.
    pub fn add(&self, micros: u64) {
        self.buckets[Self::bucket(micros)].fetch_add(1, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(micros, Ordering::Relaxed);
        self.max.fetch_max(micros, Ordering::Relaxed);
    }

    /// How many were added.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Their sum.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    /// The largest.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max.load(Ordering::Relaxed)
    }

    /// How many are at most `micros`, to the width of a bucket.
    #[must_use]
    pub fn at_most(&self, micros: u64) -> u64 {
        self.buckets.iter().take(Self::bucket(micros) + 1).map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }

    /// The smallest bucket bound that `per_mille` of the measurements do not exceed; 0 without any.
    #[must_use]
    pub fn quantile(&self, per_mille: u64) -> u64 {
        let wanted = (self.count() * per_mille).div_ceil(1_000);
        let mut seen = 0;
        for (index, bucket) in self.buckets.iter().enumerate() {
            seen += bucket.load(Ordering::Relaxed);
            if seen >= wanted && seen > 0 {
                return Self::bound(index).min(self.max());
            }
        }
        self.max()
    }

    /// Values below 8 have a bucket each; above, the top four bits choose.
    fn bucket(micros: u64) -> usize {
        if micros < 8 {
            return usize::try_from(micros).unwrap_or(0);
        }
        let doubling = 63 - micros.leading_zeros();
        let step = usize::try_from((micros >> (doubling - 3)) & 7).unwrap_or(0);
        (8 * (doubling as usize - 2) + step).min(BUCKETS - 1)
    }

    /// The largest value of a bucket.
    fn bound(index: usize) -> u64 {
        if index < 8 {
            return index as u64;
        }
        let doubling = index / 8 + 2;
        (((index % 8 + 9) as u64) << (doubling - 3)) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_within_its_bucket() {
        for micros in (0..2_000).chain((11..26).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1])) {
            let index = Histogram::bucket(micros);
            assert!(micros <= Histogram::bound(index), "{micros}");
            assert!(index == 0 || micros > Histogram::bound(index - 1), "{micros}");
        }
        assert_eq!(Histogram::bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_and_counts() {
        let histogram = Histogram::default();
        assert_eq!(histogram.quantile(990), 0);
        for micros in 1..=1_000 {
            histogram.add(micros);
        }
        assert!((500..=575).contains(&histogram.quantile(500)), "{}", histogram.quantile(500));
        assert!((990..=1_000).contains(&histogram.quantile(990)));
        assert_eq!((histogram.max(), histogram.count(), histogram.at_most(7)), (1_000, 1_000, 7));
    }
}
