//! What becomes of rows that are there and do not read: a bit flipped on the disk.
//!
//! The store answers, so nothing stops for it. Whoever meets such a row notes it in the step's transaction and goes on
//! as if it were not there; at the end of the step it is cleared away here, counted and logged.
//!
//! | Row | What it means |
//! |---|---|
//! | `relay.envelope`, `relay.order` | that envelope is lost: both its rows go. Its id stays taken. Named by its order |
//! | `relay.seen` | its envelope waits still, and an identical resend is stored a second time: recipients know ids |
//! | `relay.expiry` | its envelope is found by `relay.seen` |
//! | `relay.presence` | that machine has none until its next |
//! | `relay.sweep` | what the removed machine had waiting for others ends at its own time |
//! | `relay.count` | counted again at the start |
//! | `relay.team`, `relay.roster` | the team cannot be served: `internal`, until a backup is restored. The row stays |
//! | `relay.seat` | the same for that one member |

use super::io::{Effect, Log};
use super::schema::{
    COUNT, ENVELOPE, EnvelopeRow, ORDER, OrderRow, PRESENCE, PresenceRow, SEEN, SWEEP, SeenRow, SweepRow,
    envelope_key, order_of,
};
use super::{Relay, Turn, held};
use crate::store::{StoreDown, Table};
use std::collections::BTreeMap;

impl Relay {
    /// Clears away, counts and logs the damaged rows that this step met.
    pub(super) fn clear_damage(&mut self, turn: &mut Turn<'_, '_>) -> Result<(), StoreDown> {
        let mut found: BTreeMap<Table, (u64, u64)> = BTreeMap::new();
        if self.failing {
            // Nothing can be cleared away: it is met again.
            return Ok(());
        }
        for (table, key) in turn.txn.take_damaged() {
            let lost = match table {
                ENVELOPE | ORDER => match self.clear_envelope(turn, &key)? {
                    true => 1,
                    // Met twice in one step.
                    false => continue,
                },
                SEEN | PRESENCE | SWEEP => {
                    let Some(row) = turn.txn.get(table, &key)? else { continue };
                    let reads = match table {
                        SEEN => SeenRow::decode(&row).is_some(),
                        PRESENCE => PresenceRow::decode(&row).is_some(),
                        _ => SweepRow::decode(&row).is_some(),
                    };
                    // This step may have written it anew.
                    if !reads {
                        turn.txn.delete(table, &key);
                    }
                    0
                }
                _ => 0,
            };
            let counts = found.entry(table).or_default();
            *counts = (counts.0 + 1, counts.1 + lost);
        }
        for (table, (rows, lost)) in found {
            let table = table.0.strip_prefix(SCOPE).unwrap_or(COUNT.0);
            turn.out.push(Effect::Log(Log::Damaged { table, rows, lost }));
        }
        Ok(())
    }

    /// Drops an envelope whose text or order is damaged; whether it was still there.
    fn clear_envelope(&mut self, turn: &mut Turn<'_, '_>, key: &[u8]) -> Result<bool, StoreDown> {
        let Some((to, from, position)) = order_of(key) else { return Ok(false) };
        let queue = &mut held(&mut self.parts)?.queue;
        let Some(order) = turn.txn.get(ORDER, key)? else { return Ok(false) };
        let text = turn.txn.get(ENVELOPE, &envelope_key(position))?;
        let order = OrderRow::decode(&order);
        let read = text.as_deref().and_then(EnvelopeRow::decode);
        if order.is_some() && read.is_some() {
            return Ok(false);
        }
        let size =
            order.map(|order| order.size).or_else(|| Some(u32::try_from(read?.text.len()).unwrap_or(0)));
        queue.delete(turn.txn, to, from, position, size.unwrap_or(0));
        self.deliveries.lose(to, from, position);
        Ok(true)
    }
}

/// How the names of the relay's tables begin.
const SCOPE: &str = "relay.";
