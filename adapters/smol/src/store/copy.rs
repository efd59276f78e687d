//! A copy of a store as of one moment, while writes go on: one read transaction, every table, into a file of its own.

use super::{Bytes, RedbStore, StoreFault};
use redb::backends::FileBackend;
use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};
use std::path::Path;

/// Rows of one commit of the copy.
const ROWS: usize = 10_000;
/// Bytes of page cache of the copy.
const CACHE_BYTES: usize = 8 << 20;

impl RedbStore {
    /// Copies what is durable now into a new file at `path`, 0600. The file holds the whole of it, or is of no use.
    /// `go_on` is asked now and then.
    ///
    /// # Errors
    /// When redb or the file failed, or `go_on` said no.
    pub fn copy_to(&self, path: &Path, go_on: impl Fn() -> bool) -> Result<(), StoreFault> {
        let from = self.inner.db.begin_read()?;
        let io = |error: std::io::Error| StoreFault::from(redb::StorageError::Io(error));
        let (file, new) = super::open::open_file(path).map_err(io)?;
        if !new {
            return Err(StoreFault("exists"));
        }
        let mut builder = Builder::new();
        builder.set_cache_size(CACHE_BYTES);
        let to = builder.create_with_backend(FileBackend::new(file)?)?;
        for handle in from.list_tables()? {
            let definition = TableDefinition::<Bytes, Bytes>::new(handle.name());
            let table = from.open_table(definition)?;
            let mut rows = table.iter()?.peekable();
            loop {
                if !go_on() {
                    return Err(StoreFault("cancelled"));
                }
                let txn = to.begin_write()?;
                {
                    let mut open = txn.open_table(definition)?;
                    for row in rows.by_ref().take(ROWS) {
                        let (key, value) = row?;
                        open.insert(key.value(), value.value())?;
                    }
                }
                txn.commit()?;
                if rows.peek().is_none() {
                    break;
                }
            }
        }
        Ok(Database::close(to)?)
    }
}

#[cfg(test)]
mod tests {
    use crate::store::{Location, Options, RedbStore, Schema};
    use messaging_machines::store::{Base, MemoryBase, Table, Txn, Writes};
    use std::sync::Arc;

    const A: Table = Table("a");
    const B: Table = Table("b");
    const OPTIONS: Options = Options { cache_bytes: 1 << 20, quick_repair: false, journal: None };

    fn write(store: &RedbStore, rows: impl Iterator<Item = (Table, u64)>) {
        let mut writes = Writes::new();
        let base = MemoryBase::default();
        let mut txn = Txn::new(&base, None, &mut writes);
        rows.for_each(|(table, number)| txn.put(table, &number.to_be_bytes(), b"value"));
        store.commit(&writes).unwrap();
    }

    #[test]
    fn a_copy_is_of_one_moment_and_opens_as_a_store() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let store = RedbStore::open(&Location::new(&path), Schema::CURRENT, OPTIONS).unwrap();
        write(&store, (0..25_000).map(|number| (A, number)));
        write(&store, [(B, 1)].into_iter());
        let copy = dir.path().join("copy");
        let asked = std::cell::Cell::new(0);
        let commits = store.commits();
        // Writes go on while it is made.
        store
            .copy_to(&copy, || {
                asked.set(asked.get() + 1);
                write(&store, [(A, 90_000 + asked.get()), (B, 90_000 + asked.get())].into_iter());
                true
            })
            .unwrap();
        assert!(asked.get() >= 4);
        let copied = Arc::new(RedbStore::open(&Location::new(&copy), Schema::CURRENT, OPTIONS).unwrap());
        assert_eq!(copied.commits(), commits);
        let reader = copied.reader();
        let count = |table| {
            reader.range(
                table,
                messaging_machines::store::Range {
                    from: std::ops::Bound::Unbounded,
                    to: std::ops::Bound::Unbounded,
                    reverse: false,
                    limit: usize::MAX,
                },
            )
        };
        assert_eq!((count(A).unwrap().len(), count(B).unwrap().len()), (25_000, 1));
        // A copy that is given up says so, and nothing is written over.
        assert_eq!(store.copy_to(&dir.path().join("other"), || false).unwrap_err().0, "cancelled");
        assert_eq!(store.copy_to(&copy, || true).unwrap_err().0, "exists");
    }
}
