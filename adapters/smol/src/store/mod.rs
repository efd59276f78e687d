//! The durable store: one redb file, one redb table of bytes per machine [`Table`].
//!
//! A commit is one redb write transaction. redb's handle is dead after any I/O error until the file is opened
//! again, and a commit that failed may be there then; so every commit also counts up a row, and after reopening
//! [`RedbStore::commits`] says whether the failed one took effect.
//!
//! # The journal
//!
//! With a journal ([`Options::journal`], the relay) a commit appends one record to a file of its own and syncs that:
//! one write in one place, where redb writes every page on the way to every changed row. What the journal holds is
//! kept in memory above redb, where [`Reader`] finds it. When it is [`CHECKPOINT_BYTES`] long, or [`CHECKPOINT_ROWS`] are
//! in memory, or the store has nothing to do, a thread puts it into redb in one transaction while commits go on. So a row that comes and goes
//! within a checkpoint costs redb next to nothing, and those that stay share the pages they change with thousands of
//! others. Opening reads what a crash left in the journal. The counter row tells which records redb has already.
//!
//! # One sync or two
//!
//! redb can save its allocator's state with a commit ("quick repair"): two syncs instead of one, and after a crash no
//! walk over the file. Measured here, a commit of one row takes twice as long with it, one of 256 rows about as long,
//! and the walk costs about 5 ms a MiB. So checkpoints, which are rare, take two. Without a journal, commits under load
//! take one sync, a moment without load settles the file with one that saves the state ([`RedbStore::settle`]), and
//! closing does the same. What two-phase commit defends
//! against besides (a writer who controls data, page order and the moment of a crash at once) a client of ours cannot
//! arrange; rows carry what they need to be checked, and envelopes are signed.

mod copy;
mod examine;
#[cfg(test)]
pub(crate) mod fault;
mod held;
mod journal;
mod layers;
pub(crate) mod library;
mod locks;
mod open;
mod paced;
mod reader;
#[cfg(test)]
mod tests;

pub use examine::examine;
pub use open::{Location, OpenError, Options, Refusal, Schema};
pub use reader::Reader;

use journal::Journal;
use layers::{Checkpoint, Inner};
use messaging_machines::store::{Table, Writes};
use redb::{
    CommitError, Database, DatabaseError, ReadableDatabase, StorageError, TableDefinition, TableError,
    TransactionError,
};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The adapter's own rows: the store's records, the commit counter and the write probe.
pub const META: Table = Table("meta");
const COMMITS: &[u8] = b"commits";
const WRITE_PROBE: &[u8] = b"write_probe";
/// Bytes in the journal at which a checkpoint begins. The more, the more rows share the pages that change; the journal's rows
/// are in memory until then, and a start reads them.
pub const CHECKPOINT_BYTES: usize = 32 << 20;
/// Rows in memory at which a checkpoint begins. A deleted row is a few bytes of journal and takes a hundred and more of memory.
pub const CHECKPOINT_ROWS: usize = 64 << 10;
/// Bytes in the journal at which commits wait for the checkpoint before.
const BEHIND_BYTES: usize = 2 * CHECKPOINT_BYTES;
/// Rows in memory at which commits wait for the checkpoint before.
const BEHIND_ROWS: usize = 2 * CHECKPOINT_ROWS;

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

    /// Whether a file could not grow: a full disk, or one that has the size it may have.
    #[must_use]
    pub fn cannot_grow(self) -> bool {
        self.is_full() || self.0 == "file_too_large"
    }

    /// Whether what is on the disk is not what was written there: reading it again would not help.
    #[must_use]
    pub fn is_damage(self) -> bool {
        self.0 == "corrupted"
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
                // The file ends before what it says it holds.
                ErrorKind::UnexpectedEof => "corrupted",
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
    // Before `inner`: a checkpoint under way is waited for, so that the file is free when this is gone.
    checkpoint: Checkpoint,
    inner: Arc<Inner>,
    journal: Option<Mutex<Journal>>,
    path: PathBuf,
    /// Which files must stay where they are: what is written into a deleted one is gone with this process.
    watched: Vec<(PathBuf, open::FileId)>,
    quick_repair: bool,
    commits: AtomicU64,
    /// What the journal held goes into redb at the next probe.
    pending: AtomicBool,
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

    /// Bytes of the journal's files; 0 without one.
    #[must_use]
    pub fn journal_bytes(&self) -> u64 {
        self.journal().map_or(0, |journal| journal.bytes())
    }

    fn journal(&self) -> Option<MutexGuard<'_, Journal>> {
        self.journal.as_ref().map(|journal| journal.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A view of what is durable.
    #[must_use]
    pub fn reader(self: &Arc<Self>) -> Reader {
        Reader::new(Arc::clone(self))
    }

    /// Makes a batch durable, and readable: all of it when this returns, synced.
    ///
    /// # Errors
    /// When that failed. Whether the batch is durable is then unknown, and this handle is of no more use: open the
    /// file again and compare [`RedbStore::commits`].
    pub fn commit(&self, writes: &Writes) -> Result<(), StoreFault> {
        self.log(writes)?;
        self.absorb(|| writes.clone());
        Ok(())
    }

    /// The slow half of [`RedbStore::commit`], for a thread of its own: makes a batch durable. With a journal it is
    /// readable after [`RedbStore::absorb`] only, which must come before the next batch.
    ///
    /// # Errors
    /// As [`RedbStore::commit`].
    pub fn log(&self, writes: &Writes) -> Result<(), StoreFault> {
        if let Some(fault) = self.inner.fault() {
            return Err(fault);
        }
        let number = self.commits().wrapping_add(1);
        if self.journal.is_none() {
            self.check_files()?;
            self.inner.write(writes.iter(), number, self.quick_repair)?;
        }
        if let Some(mut journal) = self.journal() {
            journal.append(number, writes).inspect_err(|_| self.inner.fail(StoreFault("previous_io")))?;
            drop(journal);
            // After the sync, so that nothing is acknowledged from a file that was deleted meanwhile.
            self.check_files().inspect_err(|_| self.rescue())?;
        }
        self.commits.store(number, Ordering::Release);
        Ok(())
    }

    /// Makes the batch of the last [`RedbStore::log`] readable.
    pub fn absorb(&self, writes: impl FnOnce() -> Writes) {
        if self.journal.is_none() {
            return;
        }
        let due = {
            let mut layers = self.inner.layers_mut();
            layers.active.absorb(writes());
            let (bytes, rows) = match layers.frozen {
                Some(_) => (BEHIND_BYTES, BEHIND_ROWS),
                None => (CHECKPOINT_BYTES, CHECKPOINT_ROWS),
            };
            layers.active.bytes() >= bytes || layers.active.rows() >= rows
        };
        if due {
            self.start_checkpoint();
        }
    }

    /// Puts what the journal holds into redb, on a thread of its own.
    fn start_checkpoint(&self) {
        self.checkpoint.wait();
        if self.inner.fault().is_none()
            && let Some(mut journal) = self.journal()
        {
            journal.rotate();
            self.checkpoint.start(&self.inner, self.commits());
        }
    }

    /// Saves the allocator's state with a small commit, or begins a checkpoint, so that a crash from then until the
    /// next commit needs no walk over the file. For moments without load: it costs two syncs.
    ///
    /// # Errors
    /// When redb failed, now or in a checkpoint before.
    pub fn settle(&self) -> Result<(), StoreFault> {
        if self.journal.is_none() {
            return self.touch(true);
        }
        if let Some(fault) = self.inner.fault() {
            return Err(fault);
        }
        if self.unsettled() {
            self.start_checkpoint();
        }
        Ok(())
    }

    /// Whether [`RedbStore::settle`] has something to do.
    #[must_use]
    pub fn unsettled(&self) -> bool {
        if self.journal.is_none() {
            return self.inner.unsettled.load(Ordering::Relaxed);
        }
        let layers = self.inner.layers();
        self.inner.fault().is_some() || (layers.frozen.is_none() && !layers.active.is_empty())
    }

    /// Commits a small change, to learn whether the store takes writes (`§7`, "Store failures"). A commit that
    /// changed nothing would succeed on a full disk.
    ///
    /// # Errors
    /// When that failed, or a checkpoint since the store was opened.
    pub fn probe(&self) -> Result<(), StoreFault> {
        if self.pending.swap(false, Ordering::Relaxed) {
            self.checkpoint.start(&self.inner, self.commits());
        }
        self.checkpoint.wait();
        match self.inner.fault() {
            Some(fault) => Err(fault),
            None => self.touch(self.quick_repair),
        }
    }

    /// What is written into a deleted file is gone with this process: nothing may be acknowledged from it.
    fn check_files(&self) -> Result<(), StoreFault> {
        if self.watched.iter().all(|(path, file)| open::file_id(path) == Some(*file)) {
            return Ok(());
        }
        let gone = StoreFault("gone");
        self.inner.fail(gone);
        Err(gone)
    }

    /// Puts what was acknowledged from a journal that is gone now into redb, out of memory: everything up to the last
    /// commit that succeeded. The store is opened again after this.
    fn rescue(&self) {
        self.checkpoint.wait();
        let layers = self.inner.layers();
        let (commits, mut rows) = (self.commits(), Writes::new());
        // A checkpoint that failed leaves its rows behind.
        rows.absorb(layers.frozen.as_deref().cloned().unwrap_or_default());
        rows.absorb(layers.active.clone());
        drop(layers);
        // Where redb fails as well, its file has what the last checkpoint put there.
        let _ = self.inner.write(rows.iter(), commits, true);
    }

    fn touch(&self, quick_repair: bool) -> Result<(), StoreFault> {
        let number = self.commits().wrapping_add(1);
        let value = number.to_be_bytes();
        if self.journal.is_some() {
            let mut writes = Writes::new();
            writes.write(META, WRITE_PROBE.to_vec(), Some(value.to_vec()));
            return self.commit(&writes);
        }
        self.check_files()?;
        let row = (META, WRITE_PROBE, Some(value.as_slice()));
        self.inner.write(std::iter::once(row), number, quick_repair)?;
        self.commits.store(number, Ordering::Release);
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

    /// Closes the file, so that the next open needs no repair. With a journal, everything is in the one file then.
    ///
    /// # Errors
    /// When that could not be written; what was committed is durable all the same.
    pub fn close(self) -> Result<(), StoreFault> {
        let Self { checkpoint, inner, journal, commits, .. } = self;
        drop(checkpoint);
        let Some(inner) = Arc::into_inner(inner) else { return Ok(()) };
        if let Some(fault) = inner.fault() {
            return Err(fault);
        }
        if let Some(journal) = journal {
            if !inner.layers().active.is_empty() {
                inner.write(inner.layers().active.iter(), commits.into_inner(), true)?;
            }
            journal.into_inner().unwrap_or_else(PoisonError::into_inner).clear();
        }
        Ok(inner.db.close()?)
    }
}

impl std::fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedbStore").field("commits", &self.commits()).finish_non_exhaustive()
    }
}
