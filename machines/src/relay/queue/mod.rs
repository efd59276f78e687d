//! What waits for whom (`messaging/1 §7`, "Queue size and fairness", "Dedupe").
//!
//! Everything durable is in the store: memory holds the totals, which are a row too, and the depths of recipients
//! that were asked for.

mod depth;
mod purge;
mod read;
pub(super) mod recount;
mod sweep;
#[cfg(test)]
mod tests;

pub(super) use depth::Full;
pub use read::{Gauges, gauges};
pub(super) use read::{after, text};

use super::schema::{
    COUNT, COUNT_QUEUE, ENVELOPE, EXPIRY, EnvelopeRow, ExpiryKey, IdKey, ORDER, OrderRow, PlaceRow, Position,
    Print, QueueCounts, SEEN, SWEEP, Seat, SeenRow, envelope_key, expiry_key, expiry_start, order_key,
    seen_key,
};
use crate::machine::Step;
use crate::relay::limits::Bucket;
use crate::store::{StoreDown, Txn};
use depth::Depth;
use messaging_proto::limits::CLOCK_SKEW_MS;
use messaging_proto::time::{Mono, Wall};
use std::collections::{BTreeMap, BTreeSet};

/// Depths kept before all are forgotten: they are read again when asked for.
const DEPTHS: usize = 32_768;

/// An envelope to be stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    pub(super) to: Seat,
    pub(super) from: Seat,
    pub(super) id: IdKey,
    pub(super) exp: Wall,
    pub(super) print: Print,
    /// The canonical text.
    pub(super) text: &'a str,
}

/// An envelope that left the queue other than by its recipient's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) to: Seat,
    pub(super) from: Seat,
    pub(super) id: IdKey,
}

/// What is known of an id (`§7`, "Dedupe").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// It was not taken yet.
    Fresh,
    /// It was taken, and is not to be taken again before this row ends.
    Taken(SeenRow),
    /// It was taken so long ago that its row should be gone: [`Queue::forget`] it, then it is fresh.
    Stale(SeenRow),
}

pub(super) struct Queue {
    counts: QueueCounts,
    depths: BTreeMap<Seat, Depth>,
    /// What pays for counting them again.
    recounts: Option<Bucket>,
    /// Removed machines whose envelopes are not all gone.
    sweeping: BTreeSet<Seat>,
    /// Rows of `relay.expiry` before this one have no queued envelope any more.
    passed: ExpiryKey,
    purge_at: Option<Mono>,
    sweep_at: Option<Mono>,
}

impl Queue {
    /// The queue as the store holds it. Reads a few rows, however long the queue is.
    pub(super) fn start(step: &Step, txn: &Txn<'_>) -> Result<Self, StoreDown> {
        let counts = match txn.get(COUNT, COUNT_QUEUE)? {
            Some(row) => match txn.noting(COUNT, COUNT_QUEUE, QueueCounts::decode(&row)) {
                Some(counts) => counts,
                None => recount::queue(txn)?,
            },
            None => QueueCounts::default(),
        };
        // Bounded by the machines removed but not yet swept.
        let sweeping = txn
            .prefix(SWEEP, &[], usize::MAX)?
            .into_iter()
            .filter_map(|(key, _)| key.try_into().map(u64::from_be_bytes).map(Seat).ok())
            .collect::<BTreeSet<Seat>>();
        Ok(Self {
            counts,
            depths: BTreeMap::new(),
            recounts: None,
            sweep_at: (!sweeping.is_empty()).then_some(step.mono),
            sweeping,
            passed: expiry_start(counts.purged),
            purge_at: Some(step.mono),
        })
    }

    /// What is known of an id of `from` at `now`.
    pub(super) fn lookup(
        &self,
        txn: &Txn<'_>,
        now: Wall,
        from: Seat,
        id: IdKey,
    ) -> Result<Lookup, StoreDown> {
        let key = seen_key(from, id);
        let Some(row) = txn.get(SEEN, &key)? else { return Ok(Lookup::Fresh) };
        let Some(seen) = txn.noting(SEEN, &key, SeenRow::decode(&row)) else { return Ok(Lookup::Fresh) };
        // §7 Dedupe: until `exp + clockSkewMs`.
        Ok(if now < seen.exp.plus(CLOCK_SKEW_MS) { Lookup::Taken(seen) } else { Lookup::Stale(seen) })
    }

    /// Drops a stale row, and the envelope it stands for when the purge has not come by.
    pub(super) fn forget(
        &mut self,
        txn: &mut Txn<'_>,
        from: Seat,
        id: IdKey,
        seen: &SeenRow,
    ) -> Result<Option<Dropped>, StoreDown> {
        txn.delete(SEEN, &seen_key(from, id));
        txn.delete(EXPIRY, &expiry_key(seen.exp, from, id));
        let waiting = self.waiting(txn, seen.to, from, seen.position)?;
        Ok(waiting.map(|order| {
            self.delete(txn, seen.to, from, seen.position, order.size);
            Dropped { to: seen.to, from, id }
        }))
    }

    /// Stores an envelope whose id is fresh and that has room, at the end of the queue.
    pub(super) fn put(&mut self, step: &Step, txn: &mut Txn<'_>, item: &Item<'_>) -> Position {
        let Item { to, from, id, exp, print, text } = *item;
        // §7 Delivery: positions are never reused.
        let position = Position(self.counts.next);
        self.counts.next += 1;
        let size = u32::try_from(text.len()).unwrap_or(u32::MAX);
        txn.put(ENVELOPE, &envelope_key(position), &EnvelopeRow { at: step.wall, text }.encode());
        txn.put(ORDER, &order_key(to, from, position), &OrderRow { exp, id, size }.encode());
        txn.put(SEEN, &seen_key(from, id), &SeenRow { exp, to, position, print }.encode());
        let expiry = expiry_key(exp, from, id);
        txn.put(EXPIRY, &expiry, &PlaceRow { to, position }.encode());
        if expiry < self.passed {
            // The wall clock went back since the purge came by.
            self.passed = expiry_start(exp);
            self.counts.purged = exp;
        }
        self.counts.rows += 1;
        self.counts.bytes += u64::from(size);
        if let Some(depth) = self.depths.get_mut(&to) {
            depth.add(from, size);
        }
        self.save(txn);
        self.purge_by(step, exp);
        position
    }

    /// The envelope at a place, when it still waits.
    pub(super) fn waiting(
        &self,
        txn: &Txn<'_>,
        to: Seat,
        from: Seat,
        position: Position,
    ) -> Result<Option<OrderRow>, StoreDown> {
        let key = order_key(to, from, position);
        let Some(row) = txn.get(ORDER, &key)? else { return Ok(None) };
        Ok(txn.noting(ORDER, &key, OrderRow::decode(&row)))
    }

    /// Deletes an envelope that waits. Its id stays taken.
    pub(super) fn delete(&mut self, txn: &mut Txn<'_>, to: Seat, from: Seat, position: Position, size: u32) {
        txn.delete(ORDER, &order_key(to, from, position));
        txn.delete(ENVELOPE, &envelope_key(position));
        self.counts.rows = self.counts.rows.saturating_sub(1);
        self.counts.bytes = self.counts.bytes.saturating_sub(u64::from(size));
        if let Some(depth) = self.depths.get_mut(&to) {
            depth.subtract(from, size);
        }
        self.save(txn);
    }

    fn save(&self, txn: &mut Txn<'_>) {
        txn.put(COUNT, COUNT_QUEUE, &self.counts.encode());
    }

    /// When this wants a step, and which.
    pub(super) fn deadline(&self) -> Option<(Mono, super::Timer)> {
        let purge = self.purge_at.map(|at| (at, super::Timer::Purge));
        let sweep = self.sweep_at.map(|at| (at, super::Timer::Sweep));
        purge.into_iter().chain(sweep).min_by_key(|(at, _)| *at)
    }
}
