//! How much waits for one recipient, and whether there is room for more.

use super::{DEPTHS, Queue};
use crate::machine::Step;
use crate::relay::limits::{Bucket, Limits, Rate};
use crate::relay::schema::{EXPIRY, ORDER, OrderRow, Seat, expiry_of, order_of, seat_prefix};
use crate::store::{Range, StoreDown, Txn, prefix_end};
use messaging_proto::time::Wall;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Rows read at once while counting.
const PAGE: usize = 1_024;

/// Rows counted again for senders who met a full queue: some hundredths of a processor. Beyond that they are refused until
/// the purge comes by, within a second or so.
pub(super) const RECOUNT: Rate = Rate { tokens: 100_000, period_ms: 1_000, burst: 200_000 };

/// Which cap a `send` met (contract wire-core §7.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) enum Full {
    /// `queuePerSender`.
    Sender,
    /// `queuePerMachine` or `queueBytesPerMachine`.
    Machine,
    /// `queueRows` or `queueBytes`.
    Whole,
}

/// What waits for one recipient.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Depth {
    rows: u64,
    bytes: u64,
    senders: BTreeMap<Seat, u64>,
}

impl Depth {
    pub(super) fn add(&mut self, from: Seat, size: u32) {
        self.rows += 1;
        self.bytes += u64::from(size);
        *self.senders.entry(from).or_default() += 1;
    }

    pub(super) fn subtract(&mut self, from: Seat, size: u32) {
        self.rows = self.rows.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(u64::from(size));
        if let Some(rows) = self.senders.get_mut(&from) {
            *rows -= 1;
            if *rows == 0 {
                self.senders.remove(&from);
            }
        }
    }

    /// §7 Queue size and fairness: the recipient's own caps.
    fn over(&self, limits: &Limits, from: Seat, size: u64) -> Option<Full> {
        if self.senders.get(&from).copied().unwrap_or(0) >= limits.queue_per_sender {
            return Some(Full::Sender);
        }
        let machine = self.rows >= limits.queue_per_machine
            || self.bytes.saturating_add(size) > limits.queue_bytes_per_machine;
        machine.then_some(Full::Machine)
    }

    /// Counts a recipient's queue: what has not ended at `now`, or all of it without one. Reads one small row per
    /// envelope, at most `queuePerMachine` of them.
    fn count(txn: &Txn<'_>, to: Seat, now: Option<Wall>) -> Result<Self, StoreDown> {
        let mut depth = Self::default();
        let end = prefix_end(&seat_prefix(to));
        let to_bound = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut last: Vec<u8> = seat_prefix(to).to_vec();
        loop {
            let range = Range { from: Bound::Excluded(&last), to: to_bound, reverse: false, limit: PAGE };
            let rows = txn.range(ORDER, range)?;
            for (key, row) in &rows {
                let Some((_, from, _)) = order_of(key) else { continue };
                let order = txn.noting(ORDER, key, OrderRow::decode(row));
                // A damaged one counts until it is cleared away.
                if now.is_none_or(|now| order.is_none_or(|order| order.exp > now)) {
                    depth.add(from, order.map_or(0, |order| order.size));
                }
            }
            match rows.into_iter().last() {
                Some((key, _)) => last = key,
                None => return Ok(depth),
            }
        }
    }
}

impl Queue {
    /// The cap that one more envelope of `size` bytes would pass, if any.
    ///
    /// Caps count unexpired envelopes. The recipient's own are exact at any time, but for a while when very many are asked for
    /// again and again; the caps of the whole queue also count what has ended until the purge comes by, as long as the queue
    /// is [`Queue::behind`].
    pub(in crate::relay) fn full(
        &mut self,
        step: &Step,
        txn: &Txn<'_>,
        limits: &Limits,
        to: Seat,
        from: Seat,
        size: u64,
    ) -> Result<Option<Full>, StoreDown> {
        let now = step.wall;
        let depth = self.depth(txn, to)?;
        let rows = depth.rows;
        if let Some(full) = depth.over(limits, from, size)
            && (!self.behind(txn, now)?
                || !self.recounts(step, rows)
                || Depth::count(txn, to, Some(now))?.over(limits, from, size).is_some())
        {
            return Ok(Some(full));
        }
        let whole = self.counts.rows >= limits.queue_rows
            || self.counts.bytes.saturating_add(size) > limits.queue_bytes;
        Ok(whole.then_some(Full::Whole))
    }

    /// The senders with envelopes waiting for `to`, apart from removed ones.
    pub(in crate::relay) fn backlog(&mut self, txn: &Txn<'_>, to: Seat) -> Result<Vec<Seat>, StoreDown> {
        let senders: Vec<Seat> = self.depth(txn, to)?.senders.keys().copied().collect();
        Ok(senders.into_iter().filter(|from| !self.sweeping.contains(from)).collect())
    }

    fn depth(&mut self, txn: &Txn<'_>, to: Seat) -> Result<&Depth, StoreDown> {
        if !self.depths.contains_key(&to) {
            if self.depths.len() >= DEPTHS {
                self.depths.clear();
            }
            self.depths.insert(to, Depth::count(txn, to, None)?);
        }
        self.depths.get(&to).ok_or(StoreDown)
    }

    /// Whether so many rows may be counted now; they are paid for then.
    fn recounts(&mut self, step: &Step, rows: u64) -> bool {
        let bucket = self.recounts.get_or_insert_with(|| Bucket::new(&RECOUNT, step.mono));
        let cost = rows.min(RECOUNT.burst);
        let paid = bucket.wait_ms(&RECOUNT, step.mono, cost) == 0;
        if paid {
            bucket.take(&RECOUNT, step.mono, cost);
        }
        paid
    }

    /// Whether something has ended that the purge has not come by.
    pub(in crate::relay) fn behind(&self, txn: &Txn<'_>, now: Wall) -> Result<bool, StoreDown> {
        let from = Bound::Included(self.passed.as_slice());
        let next = txn.range(EXPIRY, Range { from, to: Bound::Unbounded, reverse: false, limit: 1 })?;
        match next.first() {
            Some((key, _)) => Ok(expiry_of(key).is_none_or(|(exp, ..)| exp <= now)),
            None => Ok(false),
        }
    }
}
