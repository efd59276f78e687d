//! Reading what is durable, through one cached read transaction.

use super::{Bytes, RedbStore, StoreFault, table};
use messaging_machines::store::{Base, Range, Row, StoreDown, Table};
use redb::{ReadOnlyTable, ReadTransaction, ReadableDatabase, TableError};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// A view of the last commit as of [`Reader::refresh`]. For one thread.
///
/// The view holds a redb read transaction, whose pages cannot be reused; so it is refreshed after every commit,
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
}

impl Reader {
    pub(super) const fn new(store: Arc<RedbStore>) -> Self {
        Self { cached: RefCell::new(None), fault: Cell::new(None), store }
    }

    /// Sees the last commit from now on.
    pub fn refresh(&self) {
        *self.cached.borrow_mut() = None;
    }

    /// Why a read failed last.
    #[must_use]
    pub fn fault(&self) -> Option<StoreFault> {
        self.fault.get()
    }

    #[cfg(test)]
    pub(crate) fn unsettled(&self) -> bool {
        self.store.unsettled()
    }

    fn with<T>(
        &self,
        name: Table,
        read: impl FnOnce(&ReadOnlyTable<Bytes, Bytes>) -> Result<T, StoreFault>,
        absent: T,
    ) -> Result<T, StoreDown> {
        self.try_with(name, read, absent).map_err(|fault| {
            self.fault.set(Some(fault));
            StoreDown
        })
    }

    fn try_with<T>(
        &self,
        name: Table,
        read: impl FnOnce(&ReadOnlyTable<Bytes, Bytes>) -> Result<T, StoreFault>,
        absent: T,
    ) -> Result<T, StoreFault> {
        let mut cached = self.cached.borrow_mut();
        let cached = match &mut *cached {
            Some(cached) => cached,
            empty => empty.insert(Cached { txn: self.store.db.begin_read()?, tables: BTreeMap::new() }),
        };
        if !cached.tables.contains_key(&name) {
            let opened = match cached.txn.open_table(table(name)) {
                Ok(table) => Some(table),
                Err(TableError::TableDoesNotExist(_)) => None,
                Err(error) => return Err(error.into()),
            };
            cached.tables.insert(name, opened);
        }
        match cached.tables.get(&name) {
            Some(Some(table)) => read(table),
            _ => Ok(absent),
        }
    }
}

impl Base for Reader {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreDown> {
        self.with(table, |table| Ok(table.get(key)?.map(|value| value.value().to_vec())), None)
    }

    fn range(&self, table: Table, range: Range<'_>) -> Result<Vec<Row>, StoreDown> {
        if is_empty(range.from, range.to) {
            return Ok(Vec::new());
        }
        let read = |table: &ReadOnlyTable<Bytes, Bytes>| {
            let rows = table.range::<&[u8]>((range.from, range.to))?;
            let row = |row: Result<(redb::AccessGuard<'_, Bytes>, redb::AccessGuard<'_, Bytes>), _>| {
                let (key, value) = row?;
                Ok((key.value().to_vec(), value.value().to_vec()))
            };
            if range.reverse {
                rows.rev().take(range.limit).map(row).collect()
            } else {
                rows.take(range.limit).map(row).collect()
            }
        };
        self.with(table, read, Vec::new())
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
