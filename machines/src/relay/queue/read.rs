//! Reading the queue.

use crate::relay::schema::{
    COUNT, COUNT_QUEUE, ENVELOPE, EnvelopeRow, ORDER, OrderRow, Position, QueueCounts, Seat, envelope_key,
    order_key, order_of, pair_prefix,
};
use crate::store::{Base, Range, StoreDown, Txn, prefix_end};
use messaging_proto::time::Wall;
use std::ops::Bound;
use std::sync::Arc;

/// What `from` has waiting for `to`, from a position on, in queue order. Nothing is known of a damaged one.
pub(in crate::relay) fn after(
    txn: &Txn<'_>,
    to: Seat,
    from: Seat,
    next: Position,
    limit: usize,
) -> Result<Vec<(Position, Option<OrderRow>)>, StoreDown> {
    let end = prefix_end(&pair_prefix(to, from));
    let range = Range {
        from: Bound::Included(&order_key(to, from, next)),
        to: end.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
        reverse: false,
        limit,
    };
    let read = |(key, row): &(Vec<u8>, Vec<u8>)| {
        let order = txn.noting(ORDER, key, OrderRow::decode(row));
        Some((order_of(key)?.2, order))
    };
    Ok(txn.range(ORDER, range)?.iter().filter_map(read).collect())
}

/// The canonical text of a waiting envelope. Nothing when it does not read: nobody is sent what nobody wrote.
pub(in crate::relay) fn text(
    txn: &Txn<'_>,
    to: Seat,
    from: Seat,
    position: Position,
) -> Result<Option<Arc<str>>, StoreDown> {
    let row = txn.get(ENVELOPE, &envelope_key(position))?;
    let text = row.as_deref().and_then(EnvelopeRow::decode).map(|row| Arc::from(row.text));
    if text.is_none() {
        txn.damaged(ENVELOPE, &order_key(to, from, position));
    }
    Ok(text)
}

/// What the metrics say of the whole queue (`messaging/1 §7`, "Metrics"), expired rows that are not purged yet
/// included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// `relay_queue_rows`.
    pub rows: u64,
    /// `relay_queue_bytes`.
    pub bytes: u64,
    /// `relay_queue_oldest_age_seconds`, in milliseconds; 0 when the queue is empty.
    pub oldest_age_ms: u64,
}

/// Reads the gauges from what is durable. Two rows, for an adapter to call at each scrape.
///
/// # Errors
/// [`StoreDown`] when the store did not answer.
pub fn gauges(base: &dyn Base, now: Wall) -> Result<Gauges, StoreDown> {
    let counts = match base.get(COUNT, COUNT_QUEUE)? {
        Some(row) => QueueCounts::decode(&row).unwrap_or_default(),
        None => QueueCounts::default(),
    };
    let all = Range { from: Bound::Unbounded, to: Bound::Unbounded, reverse: false, limit: 1 };
    let oldest = base.range(ENVELOPE, all)?;
    let oldest_age_ms = match oldest.first() {
        Some((_, row)) => EnvelopeRow::decode(row).map_or(0, |row| now.0.saturating_sub(row.at.0)),
        None => 0,
    };
    Ok(Gauges { rows: counts.rows, bytes: counts.bytes, oldest_age_ms })
}
