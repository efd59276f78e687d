//! The durable store: one redb file, one redb table of bytes per machine [`Table`].
//!
//! A commit is one redb write transaction. redb's handle is dead after any I/O error until the file is opened
//! again, and a commit that failed may be there then; so every commit also counts up a row, and after reopening
//! [`RedbStore::commits`] says whether the failed one took effect.
//!
//! # One sync or two
//!
//! redb can save its allocator's state with a commit ("quick repair"): two syncs instead of one, and after a crash no
//! walk over the file. Measured here, a commit of one row takes twice as long with it, one of 256 rows about as long,
//! and the walk costs about 5 ms a MiB. So commits under load take one sync, a moment without load settles the file
//! with one that saves the state ([`RedbStore::settle`]), and closing does the same. What two-phase commit defends
//! against besides (a writer who controls data, page order and the moment of a crash at once) a client of ours cannot
//! arrange; rows carry what they need to be checked, and envelopes are signed.

#[cfg(test)]
pub(crate) mod fault;
mod open;
mod reader;
#[cfg(test)]
mod tests;

pub use open::{Location, OpenError, Options, Refusal, Schema};
pub use reader::Reader;

use messaging_machines::store::{Table, Writes};
use redb::{
    CommitError, Database, DatabaseError, ReadableDatabase, StorageError, TableDefinition, TableError,
    TransactionError,
};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The adapter's own rows: the store's records, the commit counter and the write probe.
pub const META: Table = Table("meta");
const COMMITS: &[u8] = b"commits";
const WRITE_PROBE: &[u8] = b"write_probe";

/// A failed operation, by a fixed name that may be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreFault(pub &'static str);

impl StoreFault {
    /// Whether the disk, or the owner's share of it, was full.
    #[must_use]
    pub fn is_full(self) -> bool {
        self.0 == "disk_full"
    }
}

impl From<StorageError> for StoreFault {
    fn from(error: StorageError) -> Self {
        Self(match error {
            StorageError::Corrupted(_) => "corrupted",
            StorageError::ValueTooLarge(_) => "value_too_large",
            StorageError::Io(error) => match error.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "disk_full",
                ErrorKind::FileTooLarge => "file_too_large",
                ErrorKind::ReadOnlyFilesystem => "read_only",
                ErrorKind::NotFound => "not_found",
                ErrorKind::PermissionDenied => "permission",
                _ => "io",
            },
            StorageError::PreviousIo => "previous_io",
            StorageError::DatabaseClosed => "closed",
            StorageError::LockPoisoned(_) => "lock_poisoned",
            _ => "storage",
        })
    }
}

impl From<TransactionError> for StoreFault {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::Storage(error) => error.into(),
            _ => Self("transaction"),
        }
    }
}

impl From<TableError> for StoreFault {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Storage(error) => error.into(),
            _ => Self("table"),
        }
    }
}

impl From<CommitError> for StoreFault {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Storage(error) => error.into(),
            _ => Self("poisoned"),
        }
    }
}

impl From<DatabaseError> for StoreFault {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Storage(error) => error.into(),
            DatabaseError::DatabaseAlreadyOpen => Self("already_open"),
            _ => Self("database"),
        }
    }
}

/// An open store.
pub struct RedbStore {
    db: Database,
    path: PathBuf,
    quick_repair: bool,
    commits: AtomicU64,
    unsettled: AtomicBool,
}

type Bytes = &'static [u8];

const fn table(table: Table) -> TableDefinition<'static, Bytes, Bytes> {
    TableDefinition::new(table.0)
}

impl RedbStore {
    /// How many batches are durable in this file, counted since it was made.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Acquire)
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's length in bytes; 0 when it cannot be told.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |meta| meta.len())
    }

    /// A view of what is durable.
    #[must_use]
    pub fn reader(self: &Arc<Self>) -> Reader {
        Reader::new(Arc::clone(self))
    }

    /// Makes a batch durable: all of it when this returns, synced.
    ///
    /// # Errors
    /// When redb failed. Whether the batch is durable is then unknown, and this handle is of no more use: open the
    /// file again and compare [`RedbStore::commits`].
    pub fn commit(&self, writes: &Writes) -> Result<(), StoreFault> {
        self.write(writes.iter(), self.quick_repair)
    }

    /// Saves the allocator's state with a small commit, so that a crash from now until the next commit needs no walk
    /// over the file. For moments without load: it costs two syncs.
    ///
    /// # Errors
    /// When redb failed.
    pub fn settle(&self) -> Result<(), StoreFault> {
        self.touch(true)
    }

    /// Whether a crash now would need a walk over the file.
    #[must_use]
    pub fn unsettled(&self) -> bool {
        self.unsettled.load(Ordering::Relaxed)
    }

    /// Commits a small change, to learn whether the store takes writes (`§7`, "Store failures"). A commit that
    /// changed nothing would succeed on a full disk.
    ///
    /// # Errors
    /// When redb failed.
    pub fn probe(&self) -> Result<(), StoreFault> {
        self.touch(self.quick_repair)
    }

    fn touch(&self, quick_repair: bool) -> Result<(), StoreFault> {
        let value = self.commits().wrapping_add(1).to_be_bytes();
        self.write(std::iter::once((META, WRITE_PROBE, Some(value.as_slice()))), quick_repair)
    }

    fn write<'a>(
        &self,
        rows: impl Iterator<Item = (Table, &'a [u8], Option<&'a [u8]>)>,
        quick_repair: bool,
    ) -> Result<(), StoreFault> {
        let number = self.commits().wrapping_add(1);
        let mut txn = self.db.begin_write()?;
        txn.set_quick_repair(quick_repair);
        let mut rows = rows.peekable();
        while let Some((current, _, _)) = rows.peek().copied() {
            let mut open = txn.open_table(table(current))?;
            while let Some((_, key, value)) = rows.next_if(|(table, _, _)| *table == current) {
                match value {
                    Some(value) => drop(open.insert(key, value)?),
                    None => drop(open.remove(key)?),
                }
            }
        }
        txn.open_table(table(META))?.insert(COMMITS, number.to_be_bytes().as_slice())?;
        txn.commit()?;
        self.commits.store(number, Ordering::Release);
        self.unsettled.store(!quick_repair, Ordering::Relaxed);
        Ok(())
    }

    fn read_commits(db: &Database) -> Result<u64, StoreFault> {
        let txn = db.begin_read()?;
        let meta = match txn.open_table(table(META)) {
            Ok(meta) => meta,
            Err(TableError::TableDoesNotExist(_)) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        let row = meta.get(COMMITS)?;
        Ok(row.and_then(|row| row.value().try_into().ok()).map_or(0, u64::from_be_bytes))
    }

    /// Closes the file, so that the next open needs no repair.
    ///
    /// # Errors
    /// When that could not be written; what was committed is durable all the same.
    pub fn close(self) -> Result<(), StoreFault> {
        Ok(self.db.close()?)
    }
}

impl std::fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedbStore").field("commits", &self.commits()).finish_non_exhaustive()
    }
}
