//! Reading what is durable: the journal's rows over one cached read transaction of redb.

use super::layers::Layers;
use super::{Bytes, RedbStore, StoreFault, library, table};
use messaging_machines::store::{Base, Range, Row, StoreDown, Table, Writes};
use redb::{ReadOnlyTable, ReadTransaction, ReadableDatabase, TableError};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

/// A view of the last commit as of [`Reader::refresh`]. For one thread.
///
/// The view holds a redb read transaction, whose pages cannot be reused; so it is refreshed after every commit to redb,
/// and at most one generation of pages waits for it.
pub struct Reader {
    cached: RefCell<Option<Cached>>,
    fault: Cell<Option<StoreFault>>,
    store: Arc<RedbStore>,
}

struct Cached {
    txn: ReadTransaction,
    /// Nothing for a table that no commit wrote yet.
    tables: BTreeMap<Table, Option<ReadOnlyTable<Bytes, Bytes>>>,
    /// What was not in redb, nor in the newest layer, when the transaction began.
    frozen: Option<Arc<Writes>>,
    generation: u64,
}

impl Cached {
    fn table(&mut self, name: Table) -> Result<Option<&ReadOnlyTable<Bytes, Bytes>>, StoreFault> {
        if !self.tables.contains_key(&name) {
            let opened = match self.txn.open_table(table(name)) {
                Ok(table) => Some(table),
                Err(TableError::TableDoesNotExist(_)) => None,
                Err(error) => return Err(error.into()),
            };
            self.tables.insert(name, opened);
        }
        Ok(self.tables.get(&name).and_then(Option::as_ref))
    }
}

impl Reader {
    pub(super) const fn new(store: Arc<RedbStore>) -> Self {
        Self { cached: RefCell::new(None), fault: Cell::new(None), store }
    }

    /// Sees the last commit from now on.
    pub fn refresh(&self) {
        // What a journal holds is seen at once, and a checkpoint is noticed.
        if self.store.journal.is_none() {
            *self.cached.borrow_mut() = None;
        }
    }

    /// Why a read failed last.
    #[must_use]
    pub fn fault(&self) -> Option<StoreFault> {
        self.fault.get()
    }

    #[cfg(test)]
    pub(crate) fn unsettled(&self) -> bool {
        self.store.unsettled() || self.store.inner.layers().frozen.is_some()
    }

    fn noted<T>(&self, read: impl FnOnce() -> Result<T, StoreFault>) -> Result<T, StoreDown> {
        library::reading(read).map_err(|fault| {
            self.fault.set(Some(fault));
            StoreDown
        })
    }

    /// The read transaction that belongs to these layers.
    fn pinned<'a>(
        &self,
        cached: &'a mut Option<Cached>,
        layers: &Layers,
    ) -> Result<&'a mut Cached, StoreFault> {
        if cached.as_ref().is_some_and(|cached| cached.generation != layers.generation) {
            *cached = None;
        }
        Ok(match cached {
            Some(cached) => cached,
            empty => empty.insert(Cached {
                txn: self.store.inner.db.begin_read()?,
                tables: BTreeMap::new(),
                frozen: layers.frozen.clone(),
                generation: layers.generation,
            }),
        })
    }

    fn try_get(&self, name: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFault> {
        let layers = self.store.inner.layers();
        if let Some(value) = layers.active.get(name, key) {
            return Ok(value.map(<[u8]>::to_vec));
        }
        let mut cached = self.cached.borrow_mut();
        let cached = self.pinned(&mut cached, &layers)?;
        drop(layers);
        if let Some(value) = cached.frozen.as_ref().and_then(|frozen| frozen.get(name, key)) {
            return Ok(value.map(<[u8]>::to_vec));
        }
        let Some(table) = cached.table(name)? else { return Ok(None) };
        Ok(table.get(key)?.map(|value| value.value().to_vec()))
    }

    fn try_range(&self, name: Table, range: Range<'_>) -> Result<Vec<Row>, StoreFault> {
        let layers = self.store.inner.layers();
        let mut cached = self.cached.borrow_mut();
        let cached = self.pinned(&mut cached, &layers)?;
        let frozen = cached.frozen.clone();
        let base = match cached.table(name)? {
            Some(table) => Some(table.range::<&[u8]>((range.from, range.to))?),
            None => None,
        };
        let base = base.into_iter().flatten().map(|row| {
            let (key, value) = row?;
            Ok((Cow::Owned(key.value().to_vec()), Some(Cow::Owned(value.value().to_vec()))))
        });
        let active = layers.active.within(name, &range).map(borrowed);
        let frozen = frozen.iter().flat_map(|frozen| frozen.within(name, &range)).map(borrowed);
        if range.reverse {
            let below = Overlay::new(frozen.rev(), base.rev(), true);
            there(Overlay::new(active.rev(), below, true), range.limit)
        } else {
            let below = Overlay::new(frozen, base, false);
            there(Overlay::new(active, below, false), range.limit)
        }
    }
}

type Layered<'a> = Result<(Cow<'a, [u8]>, Option<Cow<'a, [u8]>>), StoreFault>;

#[allow(clippy::unnecessary_wraps)]
fn borrowed<'a>((key, value): (&'a [u8], Option<&'a [u8]>)) -> Layered<'a> {
    Ok((Cow::Borrowed(key), value.map(Cow::Borrowed)))
}

/// Up to `limit` rows that are not deleted.
fn there<'a>(rows: impl Iterator<Item = Layered<'a>>, limit: usize) -> Result<Vec<Row>, StoreFault> {
    rows.filter_map(|row| match row {
        Ok((key, value)) => Some(Ok((key.into_owned(), value?.into_owned()))),
        Err(fault) => Some(Err(fault)),
    })
    .take(limit)
    .collect()
}

/// Two sorted layers read as one: a row of the upper hides that of the lower.
struct Overlay<U: Iterator, L: Iterator> {
    upper: Peekable<U>,
    lower: Peekable<L>,
    reverse: bool,
}

impl<U: Iterator, L: Iterator> Overlay<U, L> {
    fn new(upper: U, lower: L, reverse: bool) -> Self {
        Self { upper: upper.peekable(), lower: lower.peekable(), reverse }
    }
}

impl<'a, U, L> Iterator for Overlay<U, L>
where
    U: Iterator<Item = Layered<'a>>,
    L: Iterator<Item = Layered<'a>>,
{
    type Item = Layered<'a>;

    fn next(&mut self) -> Option<Layered<'a>> {
        let order = match (self.upper.peek(), self.lower.peek()) {
            (Some(Ok((upper, _))), Some(Ok((lower, _)))) => {
                if self.reverse {
                    lower.cmp(upper)
                } else {
                    upper.cmp(lower)
                }
            }
            // Only memory is above, which does not fail; an error from below comes out at once.
            (None, _) | (_, Some(Err(_))) => Ordering::Greater,
            _ => Ordering::Less,
        };
        match order {
            Ordering::Less => self.upper.next(),
            Ordering::Greater => self.lower.next(),
            Ordering::Equal => {
                self.lower.next();
                self.upper.next()
            }
        }
    }
}

impl Base for Reader {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreDown> {
        self.noted(|| self.try_get(table, key))
    }

    fn range(&self, table: Table, range: Range<'_>) -> Result<Vec<Row>, StoreDown> {
        if is_empty(range.from, range.to) {
            return Ok(Vec::new());
        }
        self.noted(|| self.try_range(table, range))
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

/// redb panics on a range that ends before it begins.
fn is_empty(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Excluded(from) | Bound::Included(from), Bound::Excluded(to) | Bound::Included(to)) => {
            from >= to
        }
        _ => false,
    }
}
