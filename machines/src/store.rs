//! The store a machine sees: ordered tables of bytes, read through the open batch.
//!
//! A [`Txn`] layers three things, newest first: the writes of the open batch, the writes of the batch being
//! committed, and the durable [`Base`]. A machine cannot tell them apart, and cannot skip the layers.

use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The store did not answer. Only ever passed on with `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store did not answer")]
pub struct StoreDown;

/// A table: its name in the store, declared once in a role's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Table(pub &'static str);

/// Key and value of one row.
pub type Row = (Vec<u8>, Vec<u8>);

/// Which rows a scan visits.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// The lower bound of the key.
    pub from: Bound<&'a [u8]>,
    /// The upper bound of the key.
    pub to: Bound<&'a [u8]>,
    /// Largest key first.
    pub reverse: bool,
    /// At most this many rows.
    pub limit: usize,
}

/// Durable rows: what the last successful commit left.
pub trait Base {
    /// One row's value.
    ///
    /// # Errors
    /// [`StoreDown`] when the store did not answer.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreDown>;

    /// Rows in key order.
    ///
    /// # Errors
    /// [`StoreDown`] when the store did not answer.
    fn range(&self, table: Table, range: Range<'_>) -> Result<Vec<Row>, StoreDown>;
}

/// The written rows of a table by key; no value is a deletion. Slices, since a store may hold many: a third less than vectors.
type Written = BTreeMap<Box<[u8]>, Option<Box<[u8]>>>;

/// The writes of one batch: the last one to a row counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    rows: BTreeMap<Table, Written>,
    bytes: usize,
}

impl Writes {
    /// No writes.
    #[must_use]
    pub const fn new() -> Self {
        Self { rows: BTreeMap::new(), bytes: 0 }
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Roughly how many bytes the batch holds.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many rows were written.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.values().map(BTreeMap::len).sum()
    }

    /// Every written row by table and key; no value is a deletion.
    pub fn iter(&self) -> impl Iterator<Item = (Table, &[u8], Option<&[u8]>)> {
        self.rows
            .iter()
            .flat_map(|(table, rows)| rows.iter().map(move |(key, value)| (*table, &**key, value.as_deref())))
    }

    fn set(&mut self, table: Table, key: &[u8], value: Option<&[u8]>) {
        self.write(table, key.to_vec(), value.map(<[u8]>::to_vec));
    }

    /// Writes a row, or deletes it.
    pub fn write(&mut self, table: Table, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len);
        self.rows.entry(table).or_default().insert(key.into(), value.map(Vec::into));
    }

    /// Takes the writes of a later batch: they count where both wrote.
    pub fn absorb(&mut self, later: Self) {
        self.bytes += later.bytes;
        for (table, rows) in later.rows {
            self.rows.entry(table).or_default().extend(rows);
        }
    }

    /// What was written to a row: `Some(None)` is a deletion.
    #[must_use]
    pub fn get(&self, table: Table, key: &[u8]) -> Option<Option<&[u8]>> {
        self.rows.get(&table)?.get(key).map(Option::as_deref)
    }

    /// The written rows in a range, in key order; `limit` and `reverse` are the caller's.
    pub fn within<'a>(
        &'a self,
        table: Table,
        range: &Range<'_>,
    ) -> impl DoubleEndedIterator<Item = (&'a [u8], Option<&'a [u8]>)> + use<'a> {
        let bounds = (range.from, range.to);
        self.rows
            .get(&table)
            .filter(|_| !is_empty(range.from, range.to))
            .map(|rows| rows.range::<[u8], _>(bounds))
            .into_iter()
            .flatten()
            .map(|(key, value)| (&**key, value.as_deref()))
    }
}

/// The store through the open batch.
pub struct Txn<'a> {
    base: &'a dyn Base,
    committing: Option<&'a Writes>,
    open: &'a mut Writes,
    damaged: RefCell<Vec<(Table, Vec<u8>)>>,
}

impl<'a> Txn<'a> {
    /// A view of `base` under the batch being committed, if any, and the open one.
    pub fn new(base: &'a dyn Base, committing: Option<&'a Writes>, open: &'a mut Writes) -> Self {
        Self { base, committing, open, damaged: RefCell::default() }
    }

    /// Notes a row that is there and does not read. The store answered: everything else goes on.
    pub fn damaged(&self, table: Table, key: &[u8]) {
        self.damaged.borrow_mut().push((table, key.to_vec()));
    }

    /// What a row read as: noted as damaged when that is nothing.
    pub fn noting<T>(&self, table: Table, key: &[u8], value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.damaged(table, key);
        }
        value
    }

    /// The rows noted so far, for the machine to report and to clear away.
    #[must_use]
    pub fn take_damaged(&self) -> Vec<(Table, Vec<u8>)> {
        self.damaged.take()
    }

    /// One row's value.
    ///
    /// # Errors
    /// [`StoreDown`] when the store did not answer.
    pub fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreDown> {
        for layer in std::iter::once(&*self.open).chain(self.committing) {
            if let Some(value) = layer.get(table, key) {
                return Ok(value.map(<[u8]>::to_vec));
            }
        }
        self.base.get(table, key)
    }

    /// Writes a row.
    pub fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.open.set(table, key, Some(value));
    }

    /// Deletes a row.
    pub fn delete(&mut self, table: Table, key: &[u8]) {
        self.open.set(table, key, None);
    }

    /// Rows in key order, at most `range.limit`.
    ///
    /// # Errors
    /// [`StoreDown`] when the store did not answer.
    pub fn range(&self, table: Table, range: Range<'_>) -> Result<Vec<Row>, StoreDown> {
        let mut changed: BTreeMap<&[u8], Option<&[u8]>> = BTreeMap::new();
        if let Some(writes) = self.committing {
            changed.extend(writes.within(table, &range));
        }
        changed.extend(self.open.within(table, &range));
        if changed.is_empty() {
            return self.base.range(table, range);
        }
        // Deleted rows hide as many base rows, so that many more are asked for. Written ones hide none: they take the
        // place of theirs.
        let hidden = changed.values().filter(|value| value.is_none()).count();
        let wanted = range.limit.saturating_add(hidden);
        let mut base = self.base.range(table, Range { limit: wanted, ..range })?.into_iter().peekable();
        let mut rows = Vec::new();
        let mut merge = |key: &[u8], value: Option<&[u8]>| {
            // Base rows up to this one come first; one of the same key is no more.
            while rows.len() < range.limit
                && let Some((before, _)) = base.peek()
                && (if range.reverse { before.as_slice() >= key } else { before.as_slice() <= key })
            {
                rows.extend(base.next().filter(|(before, _)| before != key));
            }
            let more = rows.len() < range.limit;
            if let (true, Some(value)) = (more, value) {
                rows.push((key.to_vec(), value.to_vec()));
            }
            more
        };
        let _ = if range.reverse {
            changed.iter().rev().all(|(key, value)| merge(key, *value))
        } else {
            changed.iter().all(|(key, value)| merge(key, *value))
        };
        rows.extend(base.take(range.limit.saturating_sub(rows.len())));
        Ok(rows)
    }

    /// Rows whose key begins with `prefix`, in key order, at most `limit`.
    ///
    /// # Errors
    /// [`StoreDown`] when the store did not answer.
    pub fn prefix(&self, table: Table, prefix: &[u8], limit: usize) -> Result<Vec<Row>, StoreDown> {
        let end = prefix_end(prefix);
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.range(table, Range { from: Bound::Included(prefix), to, reverse: false, limit })
    }

    /// Rows whose key begins with `prefix`, largest key first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreDown`] when the store did not answer.
    pub fn prefix_rev(&self, table: Table, prefix: &[u8], limit: usize) -> Result<Vec<Row>, StoreDown> {
        let end = prefix_end(prefix);
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.range(table, Range { from: Bound::Included(prefix), to, reverse: true, limit })
    }

    /// Whether the open batch holds writes.
    #[must_use]
    pub fn wrote(&self) -> bool {
        !self.open.is_empty()
    }
}

/// The smallest key after every key with this prefix; nothing when there is none.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

fn is_empty(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from), Bound::Excluded(to))
        | (Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => from >= to,
        _ => false,
    }
}

/// Rows in memory: a [`Base`] for tests and simulations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryBase {
    rows: BTreeMap<Table, BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl MemoryBase {
    /// Applies a batch: all of it.
    pub fn apply(&mut self, writes: &Writes) {
        for (table, key, value) in writes.iter() {
            let rows = self.rows.entry(table).or_default();
            match value {
                Some(value) => {
                    rows.insert(key.to_vec(), value.to_vec());
                }
                None => {
                    rows.remove(key);
                }
            }
        }
    }

    /// Every row, by table and key.
    pub fn iter(&self) -> impl Iterator<Item = (Table, &[u8], &[u8])> {
        self.rows.iter().flat_map(|(table, rows)| {
            rows.iter().map(move |(key, value)| (*table, key.as_slice(), value.as_slice()))
        })
    }
}

impl Base for MemoryBase {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreDown> {
        Ok(self.rows.get(&table).and_then(|rows| rows.get(key)).cloned())
    }

    fn range(&self, table: Table, range: Range<'_>) -> Result<Vec<Row>, StoreDown> {
        if is_empty(range.from, range.to) {
            return Ok(Vec::new());
        }
        let bounds = (range.from.map(<[u8]>::to_vec), range.to.map(<[u8]>::to_vec));
        let rows = self.rows.get(&table).into_iter().flat_map(|rows| rows.range(bounds.clone()));
        let copy = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        Ok(if range.reverse {
            rows.rev().take(range.limit).map(copy).collect()
        } else {
            rows.take(range.limit).map(copy).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const T: Table = Table("t");

    fn write() -> impl Strategy<Value = (Vec<u8>, Option<Vec<u8>>)> {
        (prop::collection::vec(0_u8..4, 0..3), prop::option::of(prop::collection::vec(any::<u8>(), 0..3)))
    }

    fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
        let key = || prop::collection::vec(0_u8..4, 0..3);
        prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded),]
    }

    proptest! {
        /// A machine cannot tell the three layers from one map.
        #[test]
        fn layers_read_as_one_map(
            base in prop::collection::vec(write(), 0..30),
            committing in prop::collection::vec(write(), 0..12),
            open in prop::collection::vec(write(), 0..12),
            from in bound(),
            to in bound(),
            reverse: bool,
            limit in 0_usize..12,
        ) {
            let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            let mut layers = [Writes::new(), Writes::new(), Writes::new()];
            for (layer, writes) in layers.iter_mut().zip([base, committing, open]) {
                for (key, value) in writes {
                    layer.set(T, &key, value.as_deref());
                    match value {
                        Some(value) => { model.insert(key, value); }
                        None => { model.remove(&key); }
                    }
                }
            }
            let [base, committing, mut open] = layers;
            let mut memory = MemoryBase::default();
            memory.apply(&base);
            let txn = Txn::new(&memory, Some(&committing), &mut open);
            for first in 0..4 {
                for key in [vec![], vec![first], vec![first, 1]] {
                    prop_assert_eq!(txn.get(T, &key).unwrap(), model.get(&key).cloned());
                }
            }
            let range = Range { from: as_slice(&from), to: as_slice(&to), reverse, limit };
            let inside = |key: &Vec<u8>| {
                let above = match &from { Bound::Unbounded => true, Bound::Included(from) => key >= from, Bound::Excluded(from) => key > from };
                let below = match &to { Bound::Unbounded => true, Bound::Included(to) => key <= to, Bound::Excluded(to) => key < to };
                above && below
            };
            let mut expected: Vec<Row> = model.into_iter().filter(|(key, _)| inside(key)).collect();
            if reverse { expected.reverse(); }
            expected.truncate(limit);
            prop_assert_eq!(txn.range(T, range).unwrap(), expected);
        }
    }

    fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
        match bound {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(key) => Bound::Included(key),
            Bound::Excluded(key) => Bound::Excluded(key),
        }
    }

    #[test]
    fn a_prefix_ends_where_the_next_begins() {
        assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_end(&[1, 255]), Some(vec![2]));
        assert_eq!(prefix_end(&[255]), None);
        assert_eq!(prefix_end(b""), None);
    }
}
