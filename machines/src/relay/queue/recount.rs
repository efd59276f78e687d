//! Counting again what a damaged row of `relay.count` held. Reads every small row once.

use crate::relay::schema::{
    ENVELOPE, ORDER, OrderRow, PRESENCE, Position, QueueCounts, SEAT, SEEN, SWEEP, Seat, SeenRow, TEAM,
    TeamCounts, order_of, seen_of,
};
use crate::store::{Range, StoreDown, Table, Txn};
use messaging_proto::time::Wall;
use std::ops::Bound;

/// Rows read at once.
const PAGE: usize = 1_024;

/// The totals of the queue. The next position is past every one that is still known of, and the purge begins anew.
pub(in crate::relay) fn queue(txn: &Txn<'_>) -> Result<QueueCounts, StoreDown> {
    let mut counts = QueueCounts { purged: Wall(0), ..QueueCounts::default() };
    let used = |position: Position, next: &mut u64| *next = (*next).max(position.0.saturating_add(1));
    each(txn, ORDER, |key, row| {
        counts.rows += 1;
        counts.bytes += OrderRow::decode(row).map_or(0, |order| u64::from(order.size));
        if let Some((_, _, position)) = order_of(key) {
            used(position, &mut counts.next);
        }
    })?;
    each(txn, SEEN, |_, row| {
        if let Some(seen) = SeenRow::decode(row) {
            used(seen.position, &mut counts.next);
        }
    })?;
    let all = Range { from: Bound::Unbounded, to: Bound::Unbounded, reverse: true, limit: 1 };
    for (key, _) in txn.range(ENVELOPE, all)? {
        if let Ok(position) = key.try_into() {
            used(Position(u64::from_be_bytes(position)), &mut counts.next);
        }
    }
    Ok(counts)
}

/// The teams, and a seat past every one that any row still names.
pub(in crate::relay) fn teams(txn: &Txn<'_>) -> Result<TeamCounts, StoreDown> {
    let mut counts = TeamCounts::default();
    each(txn, TEAM, |_, _| counts.teams += 1)?;
    let mut used = |seat: Seat| counts.next_seat = counts.next_seat.max(seat.0.saturating_add(1));
    each(txn, SEAT, |_, row| {
        if let Some(seat) = Seat::decode(row) {
            used(seat);
        }
    })?;
    each(txn, ORDER, |key, _| {
        if let Some((to, from, _)) = order_of(key) {
            used(to);
            used(from);
        }
    })?;
    each(txn, SEEN, |key, row| {
        used(seen_of(key).map_or(Seat(0), |(from, _)| from));
        used(SeenRow::decode(row).map_or(Seat(0), |seen| seen.to));
    })?;
    for table in [PRESENCE, SWEEP] {
        each(txn, table, |key, _| {
            used(key.try_into().map_or(Seat(0), |seat| Seat(u64::from_be_bytes(seat))))
        })?;
    }
    Ok(counts)
}

fn each(txn: &Txn<'_>, table: Table, mut see: impl FnMut(&[u8], &[u8])) -> Result<(), StoreDown> {
    let mut last: Option<Vec<u8>> = None;
    loop {
        let from = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let rows = txn.range(table, Range { from, to: Bound::Unbounded, reverse: false, limit: PAGE })?;
        rows.iter().for_each(|(key, row)| see(key, row));
        match rows.into_iter().last() {
            Some((key, _)) => last = Some(key),
            None => return Ok(()),
        }
    }
}
