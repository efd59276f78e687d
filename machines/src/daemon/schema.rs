//! The daemon's tables (`messaging/1 §8.8`). One list, so that a snapshot of it shows every change of the store.
//!
//! Keys are bytes in an order-preserving form: integers big-endian, ids and names as their text, parts of a
//! compound key separated by a zero byte where a part's length varies. A value starts with one version byte,
//! then JSON of the row's type, unless its table says otherwise.

use super::chats::{changes, channels, delivery, lines, purge, rooms, texts};
use super::consent::{holds, rows as consent};
use super::mail::{inbox, outbox};
use super::notices::rows as notices;
use super::sessions::rows as sessions;
use super::tasks::rows as tasks;
use crate::store::{Range, StoreDown, Table, Txn};
use serde::{Serialize, de::DeserializeOwned};
use std::ops::Bound;

/// The store's generation: another one is refused as `pre-reset`.
pub const GENERATION: u64 = 2;
/// This build's schema.
pub const SCHEMA: u64 = 1;
/// The lowest schema that reads what this build writes.
pub const MIN_READER: u64 = 1;

/// Facts about the store and this machine, one row each. Keys: the names below. Values: see each name.
pub const META: Table = Table("meta");
/// `META` row: [`GENERATION`], as 8 bytes, kept by the adapter that opens the store.
pub const META_GENERATION: &[u8] = b"generation";
/// `META` row: the schema of the newest daemon that opened the store, likewise.
pub const META_SCHEMA: &[u8] = b"schema";
/// `META` row: [`MIN_READER`], likewise.
pub const META_MIN_READER: &[u8] = b"min_reader";
/// `META` row: the machine this store belongs to, written once its keys are stored (`§8.9`).
pub const META_MACHINE: &[u8] = b"identity.machine";
/// `META` row: when the encryption key was last rotated, or the identity adopted; milliseconds.
pub const META_ROTATED: &[u8] = b"identity.rotatedAt";
/// `META` row: the roster's head, `{seq, hash}`; what the cached roster is checked against.
pub const META_HEAD: &[u8] = b"roster.head";
/// `META` row: the alarm about the keys that the person was told of, and since when it stands.
pub const META_ALARM: &[u8] = b"notices.alarm";
/// `META` row: the position of the first roster entry the person's device alerts have not looked at.
pub const META_DEVICES: &[u8] = b"notices.devices";

/// The roster's entries. Key: `seq` as 8 bytes. Value: version byte, then the entry's canonical text.
pub const ROSTER: Table = Table("roster");
/// Signed envelopes that prove a divergence or a head the relay withholds. Key: `d` or `a`, then the signer's
/// machine id. Value: [`super::evidence::Evidence`]. And entries that prove a fork. Key: `f`, then the position as 8
/// bytes. Value: [`super::evidence::ForkProof`].
pub const EVIDENCE: Table = Table("evidence");
/// What is under way towards a team. Key: empty. Value: [`super::team::Pending`].
pub const TEAM: Table = Table("team");

/// Every table. A role adds its own here.
pub const TABLES: &[Table] = &[
    META,
    ROSTER,
    EVIDENCE,
    TEAM,
    super::rows::COUNTERS,
    super::due::DUE,
    sessions::SESSION,
    sessions::NAME,
    sessions::MAILBOX,
    super::presence::rows::PRESENCE,
    outbox::OUTBOX,
    outbox::BY_ID,
    outbox::LOCAL,
    super::mail::sent::SENT,
    super::mail::idem::IDEM,
    super::mail::inbound::SEEN,
    super::mail::thread::THREAD,
    inbox::INBOX,
    inbox::UNREAD,
    inbox::BY_ID,
    inbox::MESSAGE,
    inbox::QUOTA,
    tasks::TASK,
    tasks::ORDER,
    tasks::HISTORY,
    tasks::ARTIFACT,
    consent::GRANT,
    consent::REVIEW,
    consent::SYNCED,
    holds::HELD,
    holds::BY_ID,
    holds::BODY,
    rooms::ROOM,
    rooms::ROOM_OF,
    channels::CHANNEL,
    channels::LOCAL,
    channels::ENDED,
    lines::LINE,
    lines::LINE_ID,
    lines::ORDER,
    lines::THREAD,
    lines::PERSON,
    lines::HELD,
    texts::TEXT,
    changes::CHANGE,
    delivery::COPY,
    delivery::OPEN,
    purge::GONE,
    notices::NOTICE,
    notices::BY_ID,
    notices::OPEN,
];

/// The version byte of a row.
pub const ROW: u8 = 1;

/// Reads a JSON row. A row that cannot be read counts as absent: a newer daemon may have written it
/// (`§8.8`, "When stores grow").
///
/// # Errors
/// [`StoreDown`].
pub fn get<T: DeserializeOwned>(txn: &Txn<'_>, table: Table, key: &[u8]) -> Result<Option<T>, StoreDown> {
    Ok(txn.get(table, key)?.and_then(|bytes| decode(&bytes)))
}

/// Writes a JSON row.
pub fn put<T: Serialize>(txn: &mut Txn<'_>, table: Table, key: &[u8], row: &T) {
    txn.put(table, key, &encode(row));
}

/// A row's bytes.
#[must_use]
pub fn encode<T: Serialize>(row: &T) -> Vec<u8> {
    let mut bytes = vec![ROW];
    // Rows are plain structs of strings and integers, which always serialise.
    if serde_json::to_writer(&mut bytes, row).is_err() {
        bytes.truncate(1);
    }
    bytes
}

/// A row from its bytes.
#[must_use]
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match bytes.split_first() {
        Some((&ROW, json)) => serde_json::from_slice(json).ok(),
        _ => None,
    }
}

/// Every row of a table in key order, read in bounded pieces.
///
/// # Errors
/// [`StoreDown`].
pub fn for_each(txn: &Txn<'_>, table: Table, mut visit: impl FnMut(&[u8], &[u8])) -> Result<(), StoreDown> {
    let mut last: Option<Vec<u8>> = None;
    loop {
        let from = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let rows = txn.range(table, Range { from, to: Bound::Unbounded, reverse: false, limit: 1_000 })?;
        for (key, value) in &rows {
            visit(key, value);
        }
        match rows.into_iter().next_back() {
            Some((key, _)) => last = Some(key),
            None => return Ok(()),
        }
    }
}
