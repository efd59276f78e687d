//! What happens to rows by the calendar: expiry, retention, purges.
//!
//! Table `due`: `at` (ms, wall) ‖ kind ‖ the key of the row it is about → nothing. A sweep takes the earliest
//! rows, at most [`STEP`] a time, so that no backlog makes one long step. Work that is no longer wanted when its
//! time comes is found so by whoever owns the row; nothing here is ever cancelled.

use super::rows::{self, Key};
use crate::store::{Range, StoreDown, Table, Txn};
use messaging_proto::time::{Mono, Wall};
use std::ops::Bound;

/// The calendar.
pub(crate) const DUE: Table = Table("due");

/// The most rows one sweep takes.
pub(crate) const STEP: usize = 128;

/// How long a wait for the wall clock lasts at most before it is looked at again, in milliseconds: the wall clock
/// may jump while the timers, which count another clock, sleep.
const LOOK_AGAIN_MS: u64 = 60_000;

/// Days, in milliseconds.
pub(crate) const fn days(days: u64) -> u64 {
    days.saturating_mul(86_400_000)
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A sent envelope's lifetime is over: `sent` id.
    Envelope = 1,
    /// A dedupe row may go: `seen` key.
    Seen = 2,
    /// An idempotency row may go: `idem` key.
    Idempotency = 3,
    /// A held request ended unanswered: `held` number.
    Held = 4,
    /// A sent record's retention is over: `sent` id.
    Sent = 5,
    /// An inbox item's retention may be over: mailbox ‖ number.
    Inbox = 6,
    /// An interrupted task may be idle for too long: task id ‖ role.
    TaskIdle = 7,
    /// A terminal task's retention may be over: task id ‖ role.
    Task = 8,
    /// A kept session's 24 hours are over: session key.
    Session = 9,
    /// A mailbox nobody can reach any more is emptied: mailbox.
    Mailbox = 10,
    /// A line's retention may be over: its number.
    Line = 11,
    /// A channel's end may be forgotten: channel id.
    ChannelEnded = 12,
    /// A notice's retention may be over: notice number.
    Notice = 13,
    /// Trust the person gave may end soon: the trusted person.
    Trust = 14,
}

impl Kind {
    const ALL: [Self; 14] = [
        Self::Envelope,
        Self::Seen,
        Self::Idempotency,
        Self::Held,
        Self::Sent,
        Self::Inbox,
        Self::TaskIdle,
        Self::Task,
        Self::Session,
        Self::Mailbox,
        Self::Line,
        Self::ChannelEnded,
        Self::Notice,
        Self::Trust,
    ];

    fn read(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Notes that `kind` is due at `at` for the row with this key.
pub(crate) fn at(txn: &mut Txn<'_>, at: Wall, kind: Kind, key: &Key) {
    let mut due = Key::new().num(at.0).bytes(&[kind as u8]).as_slice().to_vec();
    due.extend(key.as_slice());
    txn.put(DUE, &due, &[1]);
}

/// Takes what is due at `now`, earliest first, at most [`STEP`] rows. They are gone from the calendar.
pub(crate) fn take(txn: &mut Txn<'_>, now: Wall) -> Result<Vec<(Kind, Vec<u8>)>, StoreDown> {
    let end = Key::new().num(now.0.saturating_add(1));
    let range =
        Range { from: Bound::Unbounded, to: Bound::Excluded(end.as_slice()), reverse: false, limit: STEP };
    let rows = txn.range(DUE, range)?;
    Ok(rows
        .into_iter()
        .filter_map(|(key, _)| {
            txn.delete(DUE, &key);
            let kind = Kind::read(*key.get(8)?)?;
            Some((kind, key[9..].to_vec()))
        })
        .collect())
}

/// When the earliest row is due.
pub(crate) fn next(txn: &Txn<'_>) -> Result<Option<Wall>, StoreDown> {
    let rows = txn.prefix(DUE, rows::Key::new().as_slice(), 1)?;
    Ok(rows.first().and_then(|(key, _)| key.first_chunk::<8>()).map(|at| Wall(u64::from_be_bytes(*at))))
}

/// When to look at the calendar again, on the clock of timers: at least a millisecond from now.
pub(crate) fn deadline(next: Option<Wall>, now: Wall, mono: Mono) -> Mono {
    let wait = next.map_or(LOOK_AGAIN_MS, |at| at.0.saturating_sub(now.0));
    mono.plus(wait.clamp(1, LOOK_AGAIN_MS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{MemoryBase, Writes};

    #[test]
    fn takes_in_order_and_in_bounded_steps() {
        let base = MemoryBase::default();
        let mut writes = Writes::new();
        let mut txn = Txn::new(&base, None, &mut writes);
        for index in 0..(STEP as u64 + 5) {
            at(&mut txn, Wall(1_000 + index), Kind::Sent, &Key::new().num(index));
        }
        at(&mut txn, Wall(999), Kind::Held, &Key::new().text("x"));
        assert_eq!(take(&mut txn, Wall(998)).unwrap(), []);
        assert_eq!(next(&txn).unwrap(), Some(Wall(999)));
        let first = take(&mut txn, Wall(u64::MAX)).unwrap();
        assert_eq!(first.len(), STEP);
        assert_eq!(first[0], (Kind::Held, b"x\0".to_vec()));
        assert_eq!(take(&mut txn, Wall(u64::MAX)).unwrap().len(), 6);
        assert_eq!(next(&txn).unwrap(), None);
    }

    #[test]
    fn a_far_deadline_is_looked_at_again() {
        assert_eq!(deadline(None, Wall(5), Mono(10)), Mono(60_010));
        assert_eq!(deadline(Some(Wall(6)), Wall(5), Mono(10)), Mono(11));
        assert_eq!(deadline(Some(Wall(1)), Wall(5), Mono(10)), Mono(11));
        assert_eq!(deadline(Some(Wall(9_000_000)), Wall(5), Mono(10)), Mono(60_010));
    }
}
