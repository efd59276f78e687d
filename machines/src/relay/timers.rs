//! What time alone brings about.

use super::connection::Late;
use super::io::{Count, Effect};
use super::{Relay, Turn, close, held};
use crate::store::StoreDown;
use messaging_proto::Code;
use std::collections::BTreeSet;

impl Relay {
    /// The store takes writes again: what was acked meanwhile is deleted, and the purge comes by at once.
    pub(super) fn recovered(&mut self, turn: &mut Turn<'_, '_>) -> Result<(), StoreDown> {
        let parts = held(&mut self.parts)?;
        parts.queue.purge_now(turn.step);
        let mut links = BTreeSet::new();
        for (to, from, id) in self.deliveries.held_acks() {
            if let Some(flight) = self.deliveries.acked(to, from, id) {
                parts.queue.delete(turn.txn, to, from, flight.position, flight.size);
                links.insert(to);
            }
        }
        links.into_iter().try_for_each(|to| self.deliveries.pump(turn.step, turn.txn, to, turn.out))
    }

    /// Does what is due, a bounded part of it. Each part looks at the clock itself, so a spurious timer does nothing.
    pub(super) fn timer(&mut self, turn: &mut Turn<'_, '_>) -> Result<(), StoreDown> {
        if self.stopping {
            return Ok(());
        }
        for (conn, late) in self.connections.late(turn.step.mono) {
            match late {
                Late::Hello => self.refuse_connection(turn, conn, Code::Expired, close::AUTH)?,
                Late::Silent => self.drop_connection(turn, conn, close::PROTOCOL),
            }
        }
        self.deliveries.redeliver(turn.step, turn.txn, turn.out)?;
        self.deliveries.work(turn.step, turn.txn, turn.out)?;
        if self.failing {
            return Ok(());
        }
        self.purge(turn)?;
        let parts = held(&mut self.parts)?;
        parts.queue.sweep(turn.step, turn.txn)?;
        let presences = parts.presences.purge(turn.step, turn.txn)?;
        turn.count_purged("presence", presences);
        Ok(())
    }

    /// Drops envelopes that have ended and forgets ids, if it is time, a bounded part of them.
    pub(super) fn purge(&mut self, turn: &mut Turn<'_, '_>) -> Result<(), StoreDown> {
        let purged = held(&mut self.parts)?.queue.purge(turn.step, turn.txn)?;
        for gone in &purged.dropped {
            // The window of what has ended has room again.
            self.deliveries.release(gone.to, gone.from, gone.id);
            self.deliveries.pump(turn.step, turn.txn, gone.to, turn.out)?;
        }
        turn.count_purged("queue", purged.dropped.len() as u64);
        turn.count_purged("seen", purged.seen);
        Ok(())
    }
}

impl Turn<'_, '_> {
    fn count_purged(&mut self, table: &'static str, rows: u64) {
        if rows > 0 {
            self.out.push(Effect::Count(Count::Purged(table, rows)));
        }
    }
}
