//! Sending again what is not acked (`messaging/1 §7`, "Redelivery").

use super::Deliveries;
use crate::machine::{Out, Step};
use crate::relay::io::Effect;
use crate::relay::queue;
use crate::store::{StoreDown, Txn};

/// Redeliveries of one step.
const BUDGET: usize = 128;

impl Deliveries {
    /// Sends again what is due. Each that was due is due later now, or gone.
    pub(in crate::relay) fn redeliver(
        &mut self,
        step: &Step,
        txn: &Txn<'_>,
        out: &mut Out<Effect>,
    ) -> Result<(), StoreDown> {
        for _ in 0..BUDGET {
            let Some(due) = self.due.first().copied().filter(|(at, ..)| *at <= step.mono) else { break };
            self.due.remove(&due);
            let (_, to, position, from, id) = due;
            let max = self.redeliver_max_ms;
            let Some(link) = self.links.get_mut(&to) else { continue };
            let Some(flight) = link.windows.get_mut(&from).and_then(|window| window.flights.get_mut(&id))
            else {
                continue;
            };
            // What has ended waits for the purge to take it out; a socket that took nothing since gets no more.
            let send = flight.exp > step.wall && !flight.acked && !link.pace.is_full();
            if send {
                flight.tries = flight.tries.saturating_add(1);
            }
            let next = step.mono.plus(backoff(self.redeliver_min_ms, max, flight.tries).max(1));
            flight.due = next;
            self.due.insert((next, to, position, from, id));
            if send && let Some(text) = queue::text(txn, to, from, position)? {
                link.send(text, out);
            }
        }
        Ok(())
    }
}

/// The wait after `tries` redeliveries: doubling from `min` to `max`.
pub(super) fn backoff(min: u64, max: u64, tries: u32) -> u64 {
    let doubled = 1_u64.checked_shl(tries).and_then(|factor| min.checked_mul(factor));
    doubled.unwrap_or(u64::MAX).min(max.max(min))
}

#[cfg(test)]
mod tests {
    use super::backoff;

    #[test]
    fn doubles_to_the_maximum() {
        let waits: Vec<u64> = (0..5).map(|tries| backoff(10_000, 60_000, tries)).collect();
        assert_eq!(waits, [10_000, 20_000, 40_000, 60_000, 60_000]);
        assert_eq!(backoff(10_000, 60_000, u32::MAX), 60_000);
        assert_eq!(backoff(5, 1, 3), 5, "a maximum under the minimum is the minimum");
    }
}
