//! Deleting what a removed machine has waiting (`messaging/1 §7`, "Removal"): its own queue, and its envelopes to
//! everybody else. Nobody sees them from the moment of the removal; the rows go in bounded steps.

use super::Queue;
use crate::machine::Step;
use crate::relay::schema::{
    ORDER, OrderRow, SEAT, SWEEP, Seat, SweepRow, order_of, pair_prefix, seat_key, seat_prefix,
};
use crate::store::{Range, StoreDown, Txn, prefix_end};
use messaging_proto::hash::RealmId;
use messaging_proto::key::MachineId;
use std::ops::Bound;

/// Envelopes deleted in one step.
const BUDGET: usize = 256;
/// Recipients looked at in one step.
const MACHINES: usize = 256;

impl Queue {
    /// Begins the removal of a machine that is no member any more, with a first step of it.
    pub(in crate::relay) fn remove(
        &mut self,
        step: &Step,
        txn: &mut Txn<'_>,
        team: &RealmId,
        seat: Seat,
    ) -> Result<(), StoreDown> {
        let row = SweepRow { team: *team, done: MachineId([0; 32]) };
        txn.put(SWEEP, &seat_prefix(seat), &row.encode());
        self.sweeping.insert(seat);
        self.sweep_at = Some(step.mono);
        self.sweep(step, txn)
    }

    /// Deletes some more, if there is anything to sweep.
    pub(in crate::relay) fn sweep(&mut self, step: &Step, txn: &mut Txn<'_>) -> Result<(), StoreDown> {
        if self.sweep_at.is_none_or(|at| at > step.mono) {
            return Ok(());
        }
        if let Some(seat) = self.sweeping.first().copied()
            && self.sweep_one(txn, seat)?
        {
            self.sweeping.remove(&seat);
            self.depths.remove(&seat);
            txn.delete(SWEEP, &seat_prefix(seat));
        }
        self.sweep_at = (!self.sweeping.is_empty()).then(|| step.mono.plus(1));
        Ok(())
    }

    /// One step for one machine; whether it is finished.
    fn sweep_one(&mut self, txn: &mut Txn<'_>, seat: Seat) -> Result<bool, StoreDown> {
        let Some(row) = txn.get(SWEEP, &seat_prefix(seat))? else { return Ok(true) };
        let mut left = BUDGET;
        if !self.clear(txn, &seat_prefix(seat), &mut left)? {
            return Ok(false);
        }
        let row = txn.noting(SWEEP, &seat_prefix(seat), SweepRow::decode(&row));
        let Some(mut row) = row else { return Ok(true) };
        let team = prefix_end(row.team.as_bytes());
        let start = seat_key(&row.team, &row.done);
        let range = Range {
            from: Bound::Excluded(&start),
            to: team.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
            reverse: false,
            limit: MACHINES,
        };
        let others = txn.range(SEAT, range)?;
        for (key, other) in &others {
            if let Some(other) = Seat::decode(other)
                && !self.clear(txn, &pair_prefix(other, seat), &mut left)?
            {
                txn.put(SWEEP, &seat_prefix(seat), &row.encode());
                return Ok(false);
            }
            row.done = key.get(32..).and_then(|id| id.try_into().ok()).map(MachineId).ok_or(StoreDown)?;
        }
        txn.put(SWEEP, &seat_prefix(seat), &row.encode());
        Ok(others.len() < MACHINES)
    }

    /// Deletes up to `left` envelopes under this prefix of the order; whether none is left.
    fn clear(&mut self, txn: &mut Txn<'_>, prefix: &[u8], left: &mut usize) -> Result<bool, StoreDown> {
        let rows = txn.prefix(ORDER, prefix, *left)?;
        let enough = rows.len() < *left;
        *left -= rows.len();
        for (key, row) in rows {
            let Some((to, from, position)) = order_of(&key) else { continue };
            let size = OrderRow::decode(&row).map_or(0, |order| order.size);
            self.delete(txn, to, from, position, size);
        }
        Ok(enough)
    }
}
