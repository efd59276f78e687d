//! Sending what waits, at the pace each recipient takes it (`messaging/1 §7`, "Delivery").
//!
//! Nothing here is durable: a new link starts from the queue. Each link has a window per sender; what a window
//! holds is sent again until it is acked, ends, or the link closes.

mod link;
mod pace;
mod pump;
mod redeliver;

pub(super) use link::Flight;

use super::Timer;
use super::io::{ConnId, Effect};
use super::limits::Limits;
use super::schema::{IdKey, Position, Seat};
use crate::machine::{Out, Step};
use link::{Link, Window};
use messaging_proto::frame::RelayFrame;
use messaging_proto::time::{Mono, Wall};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// When a delivery is sent again, and which. What is due in the same millisecond keeps the queue's order: the
/// recipient puts off a burst as it came, and takes it again in that order.
type Due = (Mono, Seat, Position, Seat, IdKey);

pub(super) struct Deliveries {
    window: usize,
    redeliver_min_ms: u64,
    redeliver_max_ms: u64,
    links: BTreeMap<Seat, Link>,
    due: BTreeSet<Due>,
    /// Links that stopped only because the step had sent enough.
    work: BTreeSet<Seat>,
    work_at: Mono,
    /// Which of them went on last.
    work_turn: Seat,
}

/// An envelope that was just stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer<'a> {
    pub(super) to: Seat,
    pub(super) from: Seat,
    pub(super) id: IdKey,
    pub(super) position: Position,
    pub(super) exp: Wall,
    pub(super) text: &'a Arc<str>,
}

impl Deliveries {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            window: usize::try_from(limits.delivery_window).unwrap_or(usize::MAX),
            redeliver_min_ms: limits.redeliver_min_ms,
            redeliver_max_ms: limits.redeliver_max_ms,
            links: BTreeMap::new(),
            due: BTreeSet::new(),
            work: BTreeSet::new(),
            work_at: Mono(0),
            work_turn: Seat(0),
        }
    }

    /// Begins a link: first the presences of these seats, then what these senders have waiting. The caller pumps.
    pub(super) fn open(&mut self, seat: Seat, conn: ConnId, snapshot: VecDeque<Seat>, backlog: Vec<Seat>) {
        self.close(seat);
        self.links.insert(seat, Link::new(conn, snapshot, backlog));
    }

    /// Ends a link. What it held stays in the queue.
    pub(super) fn close(&mut self, seat: Seat) {
        self.work.remove(&seat);
        let Some(link) = self.links.remove(&seat) else { return };
        for (from, window) in &link.windows {
            for (id, flight) in &window.flights {
                self.due.remove(&(flight.due, seat, flight.position, *from, *id));
            }
        }
    }

    /// Delivers an envelope at once when nothing of its sender is before it and there is room; else it comes in
    /// its turn.
    pub(super) fn offer(&mut self, step: &Step, offer: &Offer<'_>, out: &mut Out<Effect>) {
        let Offer { to, from, id, position, exp, text } = *offer;
        let (window_size, wait) = (self.window, self.redeliver_min_ms);
        let Some(link) = self.links.get_mut(&to) else { return };
        let free = link.snapshot.is_empty() && !link.pace.is_full();
        let window = link.windows.entry(from).or_default();
        if window.behind || !free || window.flights.len() >= window_size {
            window.behind = true;
            if window.flights.len() < window_size {
                link.ready.insert(from);
            }
            return;
        }
        window.next = Position(position.0 + 1);
        let flight = Flight {
            position,
            size: u32::try_from(text.len()).unwrap_or(u32::MAX),
            exp,
            tries: 0,
            due: step.mono.plus(wait),
            acked: false,
        };
        self.due.insert((flight.due, to, flight.position, from, id));
        window.flights.insert(id, flight);
        link.first_delivery(Arc::clone(text), out);
    }

    /// Takes a delivery out of its window because the recipient acked it, if it is on its way to `to`. The caller
    /// deletes it and pumps.
    pub(super) fn acked(&mut self, to: Seat, from: Seat, id: IdKey) -> Option<Flight> {
        self.release(to, from, id)
    }

    /// Keeps an ack whose deletion has to wait: the store takes no writes. It is not sent again meanwhile, and its window
    /// moves when it is deleted.
    pub(super) fn hold_ack(&mut self, to: Seat, from: Seat, id: IdKey) {
        let window = self.links.get_mut(&to).and_then(|link| link.windows.get_mut(&from));
        if let Some(flight) = window.and_then(|window| window.flights.get_mut(&id)) {
            flight.acked = true;
        }
    }

    /// The deliveries whose acks were kept.
    pub(super) fn held_acks(&self) -> Vec<(Seat, Seat, IdKey)> {
        let mut held = Vec::new();
        for (to, link) in &self.links {
            for (from, window) in &link.windows {
                let acked = window.flights.iter().filter(|(_, flight)| flight.acked);
                held.extend(acked.map(|(id, _)| (*to, *from, *id)));
            }
        }
        held
    }

    /// Takes a delivery out of its window because it left the queue. The caller pumps.
    pub(super) fn release(&mut self, to: Seat, from: Seat, id: IdKey) -> Option<Flight> {
        let link = self.links.get_mut(&to)?;
        let window = link.windows.get_mut(&from)?;
        let flight = window.flights.remove(&id)?;
        self.due.remove(&(flight.due, to, flight.position, from, id));
        if window.behind {
            link.ready.insert(from);
        } else if window.flights.is_empty() {
            link.windows.remove(&from);
        }
        Some(flight)
    }

    /// An envelope is lost: its row does not read.
    pub(super) fn lose(&mut self, to: Seat, from: Seat, position: Position) {
        let window = self.links.get(&to).and_then(|link| link.windows.get(&from));
        let flight =
            window.and_then(|window| window.flights.iter().find(|(_, one)| one.position == position));
        if let Some(id) = flight.map(|(id, _)| *id) {
            self.release(to, from, id);
        }
    }

    /// Nothing of a removed sender is delivered any more, on any link.
    pub(super) fn forget_sender(&mut self, from: Seat) {
        for (to, link) in &mut self.links {
            link.ready.remove(&from);
            let Some(window) = link.windows.remove(&from) else { continue };
            for (id, flight) in &window.flights {
                self.due.remove(&(flight.due, *to, flight.position, from, *id));
            }
        }
    }

    /// Uses a credit of the link's first deliveries for an ack (`§7`, "Rate limits").
    pub(super) fn spend_credit(&mut self, seat: Seat) -> bool {
        let Some(link) = self.links.get_mut(&seat) else { return false };
        let paid = link.credits > 0;
        link.credits -= u64::from(paid);
        paid
    }

    /// Sends a live presence on a link.
    pub(super) fn present(&mut self, seat: Seat, text: &Arc<str>, out: &mut Out<Effect>) {
        if let Some(link) = self.links.get_mut(&seat) {
            link.send(Arc::clone(text), out);
        }
    }

    /// Everything before the latest mark left for the link's socket. The caller pumps.
    pub(super) fn drained(&mut self, seat: Seat, out: &mut Out<Effect>) {
        if let Some(link) = self.links.get_mut(&seat) {
            link.pace.drained();
            link.mark(out);
        }
    }

    /// When this wants a step, and which.
    pub(super) fn deadline(&self) -> Option<(Mono, Timer)> {
        let due = self.due.first().map(|(at, ..)| (*at, Timer::Redeliver));
        let work = (!self.work.is_empty()).then_some((self.work_at, Timer::Work));
        due.into_iter().chain(work).min_by_key(|(at, _)| *at)
    }
}

fn deliver(conn: ConnId, env: Arc<str>) -> Effect {
    Effect::Send { conn, frame: RelayFrame::Deliver { env } }
}

impl Default for Window {
    fn default() -> Self {
        Self { flights: BTreeMap::new(), next: Position(0), behind: false }
    }
}
