//! How the daemon's rows are written: keys that sort as their parts do, values with a version.
//!
//! A key is a sequence of parts. A text part ends in a zero byte and holds none, so that no key is the prefix
//! of another part's text (`a` never matches `a-b`), and rows sort by text, then by the next part. Numbers are
//! eight big-endian bytes. Values are those of [`schema`](super::schema).

pub(crate) use super::schema::{decode, encode};
use crate::store::{Row, StoreDown, Table, Txn};
use serde::{Serialize, de::DeserializeOwned};

/// A row key under construction.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(Vec<u8>);

impl Key {
    /// The key without parts: the prefix of every key.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a text. A zero byte in it would end it early; none of the grammars in use allows one, and one that
    /// came anyhow is written as two bytes that sort right after.
    pub(crate) fn text(mut self, text: &str) -> Self {
        for byte in text.bytes() {
            match byte {
                0 => self.0.extend([1, 1]),
                1 => self.0.extend([1, 2]),
                byte => self.0.push(byte),
            }
        }
        self.0.push(0);
        self
    }

    /// Adds a number.
    pub(crate) fn num(mut self, number: u64) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    /// Adds bytes of a fixed length.
    pub(crate) fn bytes<const N: usize>(mut self, bytes: &[u8; N]) -> Self {
        self.0.extend(bytes);
        self
    }

    /// The key's bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

/// The number in the last eight bytes of a key.
pub(crate) fn last_num(key: &[u8]) -> u64 {
    key.last_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// The text part that starts at `from` in a key, and where the next part starts.
pub(crate) fn text_at(key: &[u8], from: usize) -> Option<(String, usize)> {
    let rest = key.get(from..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    let mut text = Vec::with_capacity(end);
    let mut bytes = rest[..end].iter();
    while let Some(byte) = bytes.next() {
        text.push(if *byte == 1 { bytes.next().map_or(1, |escaped| escaped - 1) } else { *byte });
    }
    String::from_utf8(text).ok().map(|text| (text, from + end + 1))
}

/// One row's value. A row this release cannot read counts as absent.
pub(crate) fn get<T: DeserializeOwned>(
    txn: &Txn<'_>,
    table: Table,
    key: &Key,
) -> Result<Option<T>, StoreDown> {
    Ok(txn.get(table, key.as_slice())?.as_deref().and_then(decode))
}

/// Whether a row is there.
pub(crate) fn has(txn: &Txn<'_>, table: Table, key: &Key) -> Result<bool, StoreDown> {
    Ok(txn.get(table, key.as_slice())?.is_some())
}

/// Writes a row.
pub(crate) fn put<T: Serialize>(txn: &mut Txn<'_>, table: Table, key: &Key, value: &T) {
    txn.put(table, key.as_slice(), &encode(value));
}

/// Writes a row that is only its key.
pub(crate) fn mark(txn: &mut Txn<'_>, table: Table, key: &Key) {
    txn.put(table, key.as_slice(), &encode(&true));
}

/// Deletes a row.
pub(crate) fn delete(txn: &mut Txn<'_>, table: Table, key: &Key) {
    txn.delete(table, key.as_slice());
}

/// The rows under `prefix` in key order, at most `limit`, those this release can read.
pub(crate) fn list<T: DeserializeOwned>(
    txn: &Txn<'_>,
    table: Table,
    prefix: &Key,
    limit: usize,
) -> Result<Vec<(Vec<u8>, T)>, StoreDown> {
    Ok(readable(txn.prefix(table, prefix.as_slice(), limit)?))
}

/// The rows among these that this release can read.
pub(crate) fn readable<T: DeserializeOwned>(rows: Vec<Row>) -> Vec<(Vec<u8>, T)> {
    rows.into_iter().filter_map(|(key, value)| decode(&value).map(|value| (key, value))).collect()
}

/// Takes the next number of a counter that never gives one twice, from 1.
pub(crate) fn next(txn: &mut Txn<'_>, counter: &str) -> Result<u64, StoreDown> {
    let key = Key::new().text(counter);
    let number = get::<u64>(txn, COUNTERS, &key)?.unwrap_or(0) + 1;
    put(txn, COUNTERS, &key, &number);
    Ok(number)
}

/// As [`next`], but at least `floor`.
pub(crate) fn next_at_least(txn: &mut Txn<'_>, counter: &str, floor: u64) -> Result<u64, StoreDown> {
    let key = Key::new().text(counter);
    let number = (get::<u64>(txn, COUNTERS, &key)?.unwrap_or(0) + 1).max(floor);
    put(txn, COUNTERS, &key, &number);
    Ok(number)
}

/// Adds to a count of rows. Never below zero.
pub(crate) fn count(txn: &mut Txn<'_>, name: &str, by: i64) -> Result<(), StoreDown> {
    let key = Key::new().text(name);
    let now = get::<u64>(txn, COUNTERS, &key)?.unwrap_or(0).saturating_add_signed(by);
    put(txn, COUNTERS, &key, &now);
    Ok(())
}

/// A count of rows.
pub(crate) fn counted(txn: &Txn<'_>, name: &str) -> Result<u64, StoreDown> {
    Ok(get(txn, COUNTERS, &Key::new().text(name))?.unwrap_or(0))
}

/// The counters: name → the last number given, or a count.
pub(crate) const COUNTERS: Table = Table("counter");

#[cfg(test)]
mod tests {
    use super::*;

    /// Report 9: names that are prefixes of each other never share rows, and rows sort as their parts do.
    #[test]
    fn report_09_prefix_names_do_not_mix() {
        let names = ["a", "a-b", "a.b", "ab", "a_b"];
        for one in names {
            for other in names {
                let row = Key::new().text(other).num(7);
                let prefix = Key::new().text(one);
                assert_eq!(row.as_slice().starts_with(prefix.as_slice()), one == other, "{one} {other}");
            }
        }
        assert!(Key::new().text("a").num(9) < Key::new().text("a-b").num(1));
        assert!(Key::new().num(255) < Key::new().num(256));
    }

    #[test]
    fn texts_read_back() {
        for text in ["", "a", "\u{0}\u{1}\u{2}", "é"] {
            let key = Key::new().text(text).num(5);
            let (back, at) = text_at(key.as_slice(), 0).unwrap();
            assert_eq!(back, text);
            assert_eq!(last_num(&key.as_slice()[at..]), 5);
        }
    }
}
