//! Dropping envelopes at their end, and forgetting ids after it (`messaging/1 §7`, "Queue size and fairness").
//!
//! One table says what ends when. A first pass at `exp` drops what still waits; a second, `clockSkewMs` later,
//! forgets the id. Both are bounded per step and go on in the next.

use super::{Dropped, Queue};
use crate::machine::Step;
use crate::relay::schema::{
    EXPIRY, ExpiryKey, PlaceRow, SEEN, SeenRow, expiry_key, expiry_of, expiry_start, seen_key,
};
use crate::store::{Range, Row, StoreDown, Txn};
use messaging_proto::limits::CLOCK_SKEW_MS;
use messaging_proto::time::Wall;
use std::ops::Bound;

/// Rows each pass looks at in one step.
pub(super) const BUDGET: usize = 256;
/// The purge does not run more often than this.
const MIN_MS: u64 = 1_000;
/// Nor less often while anything can end: the wall clock may jump.
const MAX_MS: u64 = 60_000;

/// What one step of the purge did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::relay) struct Purged {
    /// Envelopes that ended while they waited.
    pub(in crate::relay) dropped: Vec<Dropped>,
    /// Ids forgotten.
    pub(in crate::relay) seen: u64,
}

impl Queue {
    /// Has the purge run as soon as it can (`§7`, "Store failures").
    pub(in crate::relay) fn purge_now(&mut self, step: &Step) {
        self.purge_at = Some(step.mono);
    }

    /// Runs both passes, if they are due.
    pub(in crate::relay) fn purge(&mut self, step: &Step, txn: &mut Txn<'_>) -> Result<Purged, StoreDown> {
        if self.purge_at.is_none_or(|at| at > step.mono) {
            return Ok(Purged::default());
        }
        let (dropped, behind) = self.drop_ended(txn, step.wall)?;
        let (seen, more) = self.forget_old(txn, step.wall)?;
        if behind || more {
            self.purge_at = Some(step.mono.plus(1));
        } else {
            self.plan(step, txn)?;
        }
        Ok(Purged { dropped, seen })
    }

    /// The first pass; whether it stopped short.
    fn drop_ended(&mut self, txn: &mut Txn<'_>, now: Wall) -> Result<(Vec<Dropped>, bool), StoreDown> {
        // §7: an envelope ends at `exp`.
        let ended = expiry_start(now.plus(1));
        let rows = between(txn, Bound::Included(&self.passed), &ended)?;
        let mut dropped = Vec::new();
        for (key, row) in &rows {
            let Some((exp, from, id)) = expiry_of(key) else {
                txn.damaged(EXPIRY, key);
                txn.delete(EXPIRY, key);
                continue;
            };
            let place = match txn.noting(EXPIRY, key, PlaceRow::decode(row)) {
                Some(place) => Some(place),
                None => {
                    let seen = txn.get(SEEN, &seen_key(from, id))?;
                    let seen = seen.as_deref().and_then(SeenRow::decode);
                    seen.map(|seen| PlaceRow { to: seen.to, position: seen.position })
                }
            };
            if let Some(place) = place
                && let Some(order) = self.waiting(txn, place.to, from, place.position)?
            {
                self.delete(txn, place.to, from, place.position, order.size);
                dropped.push(Dropped { to: place.to, from, id });
            }
            // This row is looked at again when the step ends here: it is the first not surely passed.
            self.pass(expiry_key(exp, from, id), exp);
        }
        let short = rows.len() == BUDGET;
        if !short {
            self.pass(ended, now.plus(1));
        }
        if !dropped.is_empty() {
            self.save(txn);
        }
        Ok((dropped, short))
    }

    /// Moves the mark of the first pass forward; it does not follow a clock that goes back.
    fn pass(&mut self, key: ExpiryKey, exp: Wall) {
        if key > self.passed {
            self.passed = key;
            self.counts.purged = exp;
        }
    }

    /// The second pass; whether it stopped short.
    fn forget_old(&self, txn: &mut Txn<'_>, now: Wall) -> Result<(u64, bool), StoreDown> {
        // Nothing is old yet while the clock stands before the skew.
        let Some(old) = now.0.checked_sub(CLOCK_SKEW_MS) else { return Ok((0, false)) };
        // Not past what the first pass has seen.
        let end = expiry_start(Wall(old.saturating_add(1))).min(self.passed);
        let rows = between(txn, Bound::Unbounded, &end)?;
        for (key, _) in &rows {
            txn.delete(EXPIRY, key);
            if let Some((_, from, id)) = expiry_of(key) {
                txn.delete(SEEN, &seen_key(from, id));
            }
        }
        Ok((rows.len() as u64, rows.len() == BUDGET))
    }

    /// Sets the time of the next purge by what ends next.
    fn plan(&mut self, step: &Step, txn: &Txn<'_>) -> Result<(), StoreDown> {
        let passed = self.passed;
        let first = |from: Bound<&[u8]>| -> Result<Option<Wall>, StoreDown> {
            let rows = txn.range(EXPIRY, Range { from, to: Bound::Unbounded, reverse: false, limit: 1 })?;
            Ok(rows.first().map(|(key, _)| expiry_of(key).map_or(Wall(0), |(exp, ..)| exp)))
        };
        self.purge_at = None;
        if let Some(exp) = first(Bound::Included(&passed))? {
            self.purge_by(step, exp);
        }
        if let Some(exp) = first(Bound::Unbounded)? {
            self.purge_by(step, exp.plus(CLOCK_SKEW_MS));
        }
        Ok(())
    }

    /// Has the purge run soon after `end`, and in any case within a minute.
    pub(super) fn purge_by(&mut self, step: &Step, end: Wall) {
        let wait = end.0.saturating_sub(step.wall.0).clamp(MIN_MS, MAX_MS);
        let at = step.mono.plus(wait);
        self.purge_at = Some(self.purge_at.map_or(at, |planned| planned.min(at)));
    }
}

fn between(txn: &Txn<'_>, from: Bound<&ExpiryKey>, end: &ExpiryKey) -> Result<Vec<Row>, StoreDown> {
    let from = from.map(ExpiryKey::as_slice);
    txn.range(EXPIRY, Range { from, to: Bound::Excluded(end), reverse: false, limit: BUDGET })
}
