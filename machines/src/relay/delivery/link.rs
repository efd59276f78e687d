//! One recipient's link.

use super::deliver;
use super::pace::Pace;
use crate::machine::Out;
use crate::relay::io::{ConnId, Effect};
use crate::relay::schema::{IdKey, Position, Seat};
use messaging_proto::time::{Mono, Wall};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A delivery that is not acked yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) struct Flight {
    pub(in crate::relay) position: Position,
    pub(in crate::relay) size: u32,
    pub(super) exp: Wall,
    /// Redeliveries so far.
    pub(super) tries: u32,
    /// When it is sent again.
    pub(super) due: Mono,
    /// It is acked, and its row could not be deleted yet.
    pub(super) acked: bool,
}

/// What one sender has on its way to one recipient.
///
/// Everything of that sender that waits and is not in `flights` is at `next` or later; `behind` says that there
/// may be something.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) flights: BTreeMap<IdKey, Flight>,
    pub(super) next: Position,
    pub(super) behind: bool,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) conn: ConnId,
    /// First deliveries that have not paid for an ack yet.
    pub(super) credits: u64,
    /// Members whose presence this link was not told yet. They come before any delivery.
    pub(super) snapshot: VecDeque<Seat>,
    pub(super) windows: BTreeMap<Seat, Window>,
    /// Senders that are behind and have room. Served in turn.
    pub(super) ready: BTreeSet<Seat>,
    /// Whose turn was last.
    pub(super) turn: Seat,
    pub(super) pace: Pace,
}

impl Link {
    pub(super) fn new(conn: ConnId, snapshot: VecDeque<Seat>, backlog: Vec<Seat>) -> Self {
        let behind = |from: &Seat| (*from, Window { behind: true, ..Window::default() });
        Self {
            conn,
            credits: 0,
            snapshot,
            windows: backlog.iter().map(behind).collect(),
            ready: backlog.into_iter().collect(),
            turn: Seat(0),
            pace: Pace::default(),
        }
    }

    /// Sends an envelope and notes its size.
    pub(super) fn send(&mut self, env: Arc<str>, out: &mut Out<Effect>) {
        self.pace.sent(env.len());
        out.push(deliver(self.conn, env));
        self.mark(out);
    }

    /// Asks to be told when the socket has taken what was sent, when that is worth knowing.
    pub(super) fn mark(&mut self, out: &mut Out<Effect>) {
        if self.pace.mark() {
            out.push(Effect::Mark { conn: self.conn });
        }
    }

    /// As [`Self::send`], for an envelope that goes out on this link for the first time.
    pub(super) fn first_delivery(&mut self, env: Arc<str>, out: &mut Out<Effect>) {
        // §7 Rate limits: each first delivery pays for one ack.
        self.credits += 1;
        self.send(env, out);
    }

    /// The next sender that is behind and has room, in turn.
    pub(super) fn next_ready(&mut self) -> Option<Seat> {
        let after = (std::ops::Bound::Excluded(self.turn), std::ops::Bound::Unbounded);
        let next = self.ready.range(after).next().or_else(|| self.ready.first()).copied()?;
        self.turn = next;
        Some(next)
    }
}
