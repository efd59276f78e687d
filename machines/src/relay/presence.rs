//! The latest presence of each machine (`messaging/1 §7`, "Other frames"; contract wire-core §7.8).

use super::schema::{PRESENCE, PresenceRow, Seat, seat_prefix};
use crate::machine::Step;
use crate::store::{Range, StoreDown, Txn};
use messaging_proto::time::{Mono, Wall};
use std::ops::Bound;
use std::sync::Arc;

/// How often some rows are looked at for their end. A presence that ended is never sent; this only frees its row.
const ROUND_MS: u64 = 60_000;
/// Rows looked at each time.
const BUDGET: usize = 256;

/// Frees the rows of presences that ended, in a slow round.
pub(super) struct Presences {
    at: Mono,
    /// The round has come to here.
    turn: Seat,
}

impl Presences {
    pub(super) const fn start(step: &Step) -> Self {
        Self { at: step.mono.plus(ROUND_MS), turn: Seat(0) }
    }

    /// Looks at the next rows of the round; how many had ended.
    pub(super) fn purge(&mut self, step: &Step, txn: &mut Txn<'_>) -> Result<u64, StoreDown> {
        if self.at > step.mono {
            return Ok(0);
        }
        let from = seat_prefix(self.turn);
        let range =
            Range { from: Bound::Excluded(&from), to: Bound::Unbounded, reverse: false, limit: BUDGET };
        let rows = txn.range(PRESENCE, range)?;
        self.turn = Seat(0);
        let mut purged = 0;
        for (key, row) in &rows {
            match PresenceRow::decode(row) {
                Some(presence) if presence.exp > step.wall => {}
                Some(_) => {
                    txn.delete(PRESENCE, key);
                    purged += 1;
                }
                None => txn.damaged(PRESENCE, key),
            }
        }
        let wait = match rows.last() {
            Some((key, _)) if rows.len() == BUDGET => {
                self.turn = Seat(key.as_slice().try_into().map(u64::from_be_bytes).map_err(|_| StoreDown)?);
                ROUND_MS / 10
            }
            _ => ROUND_MS,
        };
        self.at = step.mono.plus(wait);
        Ok(purged)
    }

    /// When this wants a step, and which.
    pub(super) const fn deadline(&self) -> (Mono, super::Timer) {
        (self.at, super::Timer::Presence)
    }
}

/// A machine's latest presence that has not ended.
pub(super) fn current(txn: &Txn<'_>, now: Wall, seat: Seat) -> Result<Option<Arc<str>>, StoreDown> {
    let Some(row) = txn.get(PRESENCE, &seat_prefix(seat))? else { return Ok(None) };
    let row = txn.noting(PRESENCE, &seat_prefix(seat), PresenceRow::decode(&row));
    Ok(row.filter(|row| row.exp > now).map(|row| Arc::from(row.text)))
}

/// Whether a presence with this `seq` is above the stored one, if there is one.
pub(super) fn is_newer(txn: &Txn<'_>, seat: Seat, seq: u64) -> Result<bool, StoreDown> {
    let Some(row) = txn.get(PRESENCE, &seat_prefix(seat))? else { return Ok(true) };
    let before = txn.noting(PRESENCE, &seat_prefix(seat), PresenceRow::decode(&row));
    Ok(before.is_none_or(|before| seq > before.seq))
}

/// Keeps a presence as its machine's latest.
pub(super) fn keep(txn: &mut Txn<'_>, seat: Seat, presence: &PresenceRow<'_>) {
    txn.put(PRESENCE, &seat_prefix(seat), &presence.encode());
}

/// §7 Removal: a removed machine has no presence.
pub(super) fn forget(txn: &mut Txn<'_>, seat: Seat) {
    txn.delete(PRESENCE, &seat_prefix(seat));
}
