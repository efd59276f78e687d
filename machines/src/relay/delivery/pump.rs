//! Filling windows from the queue.

use super::link::Link;
use super::{Deliveries, Due, Flight};
use crate::machine::{Out, Step};
use crate::relay::io::Effect;
use crate::relay::presence;
use crate::relay::queue;
use crate::relay::schema::{Position, Seat};
use crate::store::{StoreDown, Txn};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;

/// Envelopes one link is sent in one step.
const BUDGET: usize = 128;
/// Links that go on in one step.
const LINKS: usize = 8;
/// Envelopes of one sender before the next sender's turn.
const TURN: usize = 16;

impl Deliveries {
    /// Sends what a link may be sent now.
    pub(in crate::relay) fn pump(
        &mut self,
        step: &Step,
        txn: &Txn<'_>,
        seat: Seat,
        out: &mut Out<Effect>,
    ) -> Result<(), StoreDown> {
        let Some(link) = self.links.get_mut(&seat) else { return Ok(()) };
        if link.snapshot.is_empty() && link.ready.is_empty() {
            return Ok(());
        }
        let mut left = BUDGET;
        while left > 0 && !link.pace.is_full() {
            // §7 Connecting: the presences first, then the queue.
            if let Some(member) = link.snapshot.pop_front() {
                left -= 1;
                if link.snapshot.is_empty() {
                    // An idle link keeps no room for the team it once greeted.
                    link.snapshot = VecDeque::new();
                }
                if let Some(text) = presence::current(txn, step.wall, member)? {
                    link.send(text, out);
                }
                continue;
            }
            let Some(from) = link.next_ready() else { break };
            let fill = Fill { window: self.window, wait_ms: self.redeliver_min_ms, to: seat, from };
            left -= fill.run(step, txn, link, left, &mut self.due, out)?.min(left);
        }
        // A full pace goes on when its mark is reached.
        let unfinished = !link.snapshot.is_empty() || !link.ready.is_empty();
        if unfinished && !link.pace.is_full() {
            if self.work.is_empty() {
                // Later than this step, since a step may find nothing to say: members without a presence. Not put
                // off by a link that joins the others.
                self.work_at = step.mono.plus(1);
            }
            self.work.insert(seat);
        } else {
            self.work.remove(&seat);
        }
        Ok(())
    }

    /// Goes on with some of the links that had stopped for the length of their step, each in turn.
    pub(in crate::relay) fn work(
        &mut self,
        step: &Step,
        txn: &Txn<'_>,
        out: &mut Out<Effect>,
    ) -> Result<(), StoreDown> {
        if self.work_at > step.mono {
            return Ok(());
        }
        for _ in 0..self.work.len().min(LINKS) {
            let after = (Bound::Excluded(self.work_turn), Bound::Unbounded);
            let Some(seat) = self.work.range(after).next().or_else(|| self.work.first()).copied() else {
                break;
            };
            self.work_turn = seat;
            self.pump(step, txn, seat, out)?;
        }
        // The others go on in a step of their own.
        self.work_at = step.mono.plus(1);
        Ok(())
    }
}

/// One sender's turn.
struct Fill {
    window: usize,
    wait_ms: u64,
    to: Seat,
    from: Seat,
}

impl Fill {
    /// Sends the next envelopes of a sender in queue order; how many rows it cost.
    fn run(
        &self,
        step: &Step,
        txn: &Txn<'_>,
        link: &mut Link,
        left: usize,
        due: &mut BTreeSet<Due>,
        out: &mut Out<Effect>,
    ) -> Result<usize, StoreDown> {
        let Self { window: size, wait_ms, to, from } = *self;
        let Some(mut window) = link.windows.remove(&from) else {
            link.ready.remove(&from);
            return Ok(0);
        };
        // §7 Window: at most so many unacked deliveries of one sender.
        let room = size.saturating_sub(window.flights.len());
        let limit = room.min(TURN).min(left);
        let rows = queue::after(txn, to, from, window.next, limit)?;
        let mut behind = rows.len() == limit;
        let mut cost = 1;
        for (position, order) in rows {
            if link.pace.is_full() {
                behind = true;
                break;
            }
            cost += 1;
            window.next = Position(position.0 + 1);
            let Some(order) = order else { continue };
            // §7: what has ended is not delivered, even before the purge comes by.
            if order.exp <= step.wall {
                continue;
            }
            let Some(text) = queue::text(txn, to, from, position)? else { continue };
            let flight = Flight {
                position,
                size: order.size,
                exp: order.exp,
                tries: 0,
                due: step.mono.plus(wait_ms),
                acked: false,
            };
            due.insert((flight.due, to, position, from, order.id));
            window.flights.insert(order.id, flight);
            link.first_delivery(text, out);
        }
        window.behind = behind;
        if !behind || window.flights.len() >= size {
            link.ready.remove(&from);
        }
        if behind || !window.flights.is_empty() {
            link.windows.insert(from, window);
        }
        Ok(cost)
    }
}
