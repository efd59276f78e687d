//! The numbers of chat changes, and `conv` events (`messaging/1 §6.8`, "Order and read state"; `§8.2`, "`conv`
//! events", "Resuming").
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `chat_change` | number of a line's latest change | the line's seq |
//!
//! One counter numbers every filed line, every later change of one, and every channel deleted here.

use super::lines::{self, Row};
use crate::daemon::ctx::{Ctx, obj};
use crate::daemon::io::IpcId;
use crate::daemon::rows::{self, Key};
use crate::store::{Range, StoreDown, Table, Txn};
use messaging_proto::address::RoomRef;
use messaging_proto::json::Value;
use messaging_proto::name::PersonId;
use messaging_proto::ulid::Ulid;
use std::ops::Bound;

pub(crate) const CHANGE: Table = Table("chat_change");

/// The most lines one subscription replays.
const REPLAY: usize = 500;
/// The counter of changes.
const COUNTER: &str = "chat";
/// The number of the latest channel deleted here.
const DELETED: &str = "chat_deleted";

/// The next number.
pub(super) fn next(txn: &mut Txn<'_>) -> Result<u64, StoreDown> {
    rows::next(txn, COUNTER)
}

/// The newest number.
pub(super) fn newest(txn: &Txn<'_>) -> Result<u64, StoreDown> {
    rows::counted(txn, COUNTER)
}

/// Notes a line's latest change.
pub(super) fn record(txn: &mut Txn<'_>, change: u64, seq: u64) {
    rows::put(txn, CHANGE, &Key::new().num(change), &seq);
}

/// A line's change is no longer its latest, or the line is gone.
pub(super) fn forget(txn: &mut Txn<'_>, change: u64) {
    rows::delete(txn, CHANGE, &Key::new().num(change));
}

/// What a `conv` event says.
pub(super) struct Told<'a> {
    conversation: &'a RoomRef,
    id: Option<&'a Ulid>,
    person: &'a PersonId,
    change: &'static str,
    seq: u64,
}

impl<'a> Told<'a> {
    /// The latest change of a line.
    pub(super) const fn of_line(seq: u64, row: &'a Row) -> Self {
        let line = &row.line;
        let change = match (row.changed == seq, line.notice) {
            (true, false) => "line",
            (true, true) => "channel",
            // Only the state of a line this machine's person wrote ever changes.
            (false, _) => "state",
        };
        Self { conversation: &line.room, id: Some(&line.id), person: &line.person, change, seq: row.changed }
    }

    fn to_value(&self) -> Value {
        obj([
            ("type", Value::text("conv")),
            ("conversation", Value::text(self.conversation.to_string())),
            ("id", self.id.map_or(Value::Null, |id| Value::text(id.as_str()))),
            ("person", Value::text(self.person.as_str())),
            ("change", Value::text(self.change)),
            ("seq", Value::int(self.seq)),
        ])
    }
}

/// Raises a `conv` event.
pub(super) fn tell(cx: &mut Ctx<'_, '_>, told: &Told<'_>) {
    cx.event_conv(&told.to_value());
}

/// A channel was deleted here, by what `person` did.
pub(super) fn deleted(
    cx: &mut Ctx<'_, '_>,
    conversation: &RoomRef,
    person: &PersonId,
) -> Result<(), StoreDown> {
    let seq = next(cx.txn)?;
    rows::put(cx.txn, rows::COUNTERS, &Key::new().text(DELETED), &seq);
    tell(cx, &Told { conversation, id: None, person, change: "deleted", seq });
    Ok(())
}

/// `conv.subscribe`: what changed after `since`, when that can be told, then live events.
pub(super) fn subscribe(cx: &mut Ctx<'_, '_>, conn: IpcId, since: Option<u64>) -> Result<Value, StoreDown> {
    let seq = newest(cx.txn)?;
    let missed = match since {
        None => Some(Vec::new()),
        Some(since) => missed(cx.txn, since, seq)?,
    };
    for (seq, row) in missed.iter().flatten() {
        cx.event_to(conn, &Told::of_line(*seq, row).to_value());
    }
    cx.facts.conns.subscribe_conv(conn);
    Ok(obj([("seq", Value::int(seq)), ("gap", Value::Bool(missed.is_none()))]))
}

/// The lines that changed after `since`, the oldest change first; nothing when they are not all that changed.
fn missed(txn: &Txn<'_>, since: u64, newest: u64) -> Result<Option<Vec<(u64, Row)>>, StoreDown> {
    if since > newest || rows::counted(txn, DELETED)? > since {
        return Ok(None);
    }
    let from = Key::new().num(since);
    let range = Range {
        from: Bound::Excluded(from.as_slice()),
        to: Bound::Unbounded,
        reverse: false,
        limit: REPLAY + 1,
    };
    let changed = rows::readable::<u64>(txn.range(CHANGE, range)?);
    if changed.len() > REPLAY {
        return Ok(None);
    }
    let mut missed = Vec::new();
    for (_, seq) in changed {
        missed.extend(lines::get(txn, seq)?.map(|row| (seq, row)));
    }
    Ok(Some(missed))
}
