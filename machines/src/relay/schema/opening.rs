//! Whether a store is this relay's to open (`messaging/1 §8.8`).

use super::META;
use crate::store::{StoreDown, Txn};

/// The generation this relay reads and writes. A store of another one is refused.
pub const GENERATION: u64 = 2;
/// The schema this relay writes.
pub const SCHEMA: u64 = 1;
/// The lowest schema that reads what this relay writes.
pub const MIN_READER: u64 = 1;

/// Key in [`META`].
pub const KEY_GENERATION: &[u8] = b"generation";
/// Key in [`META`].
pub const KEY_SCHEMA: &[u8] = b"schema";
/// Key in [`META`].
pub const KEY_MIN_READER: &[u8] = b"min_reader";

/// A store that may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// It has no tables: it gets the baseline and its records.
    New,
    /// It is one of ours.
    Known,
}

/// Why a store is not opened. Nothing in it is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It records no generation, or another one: move it aside and start over.
    #[error("the store is of another generation")]
    PreReset,
    /// A newer relay wrote it: upgrade, and keep it.
    #[error("the store needs a newer relay")]
    Newer,
}

impl Refused {
    /// The `reason` of `relay.store_refused`.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::PreReset => "pre-reset",
            Self::Newer => "newer",
        }
    }
}

/// Decides from whether the store has any table, and from its records in [`META`] as they are stored.
///
/// # Errors
/// [`Refused`]. A record that is missing beside the right generation, or is no number, counts as newer: the
/// store is kept.
pub fn decide(
    has_tables: bool,
    generation: Option<&[u8]>,
    min_reader: Option<&[u8]>,
) -> Result<Opening, Refused> {
    if !has_tables {
        return Ok(Opening::New);
    }
    if generation.and_then(number) != Some(GENERATION) {
        return Err(Refused::PreReset);
    }
    match min_reader.and_then(number) {
        Some(min_reader) if min_reader <= SCHEMA => Ok(Opening::Known),
        _ => Err(Refused::Newer),
    }
}

fn number(row: &[u8]) -> Option<u64> {
    row.try_into().ok().map(u64::from_be_bytes)
}

/// Writes the records of a new store when they are not there. An adapter that keeps them itself did so before.
pub(in crate::relay) fn record(txn: &mut Txn<'_>) -> Result<(), StoreDown> {
    if txn.get(META, KEY_GENERATION)?.is_none() {
        for (key, value) in [(KEY_GENERATION, GENERATION), (KEY_SCHEMA, SCHEMA), (KEY_MIN_READER, MIN_READER)]
        {
            txn.put(META, key, &value.to_be_bytes());
        }
    }
    Ok(())
}
