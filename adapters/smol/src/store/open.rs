//! Opening a store: whether it is one of ours, and of which generation (`messaging/1 §8.8`).

use super::held::Held;
use super::journal::{self, Journal};
use super::layers::{Checkpoint, Inner};
use super::paced::Paced;
use super::{META, RedbStore, StoreFault, library, table};
use messaging_machines::store::{Table, Writes};
use redb::{Builder, Database, DatabaseError, ReadableDatabase, TableHandle, backends::FileBackend};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// How every redb file begins.
const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";
const GENERATION: &[u8] = b"generation";
const SCHEMA: &[u8] = b"schema";
const MIN_READER: &[u8] = b"min_reader";

/// What a store says of its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Stores of another generation are refused.
    pub generation: u64,
    /// The shape this program writes.
    pub schema: u64,
    /// The lowest schema that can read what this program writes.
    pub min_reader: u64,
}

impl Schema {
    /// The shape of this release, of the daemon and the relay alike (contract ipc §11.6).
    pub const CURRENT: Self = Self { generation: 2, schema: 1, min_reader: 1 };
}

/// Choices of one store.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of page cache.
    pub cache_bytes: usize,
    /// Save the allocator state with each commit: two syncs instead of one, and no repair walk after a crash.
    pub quick_repair: bool,
    /// Commit to a journal beside the file (`<name>.journal-0` and `-1`), whose rows are in these tables.
    pub journal: Option<&'static [Table]>,
}

/// Where a store is.
#[derive(Clone, Debug)]
pub struct Location {
    path: PathBuf,
    #[cfg(test)]
    faults: Option<super::fault::Faults>,
}

impl Location {
    /// The file at `path`.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            #[cfg(test)]
            faults: None,
        }
    }

    #[cfg(test)]
    pub(crate) fn with_faults(path: &Path, faults: super::fault::Faults) -> Self {
        Self { path: path.to_owned(), faults: Some(faults) }
    }

    /// Where.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn create(&self, builder: &Builder, file: File) -> Result<Database, DatabaseError> {
        let file = FileBackend::new(file)?;
        #[cfg(test)]
        if let Some(faults) = &self.faults {
            return builder.create_with_backend(Paced::new(faults.over(file)));
        }
        builder.create_with_backend(Paced::new(file))
    }

    /// Where the journal's files are.
    pub(super) fn journal_paths(&self) -> [PathBuf; 2] {
        [".journal-0", ".journal-1"].map(|suffix| {
            let mut path = self.path.clone().into_os_string();
            path.push(suffix);
            path.into()
        })
    }

    /// Opens the journal's files, making them where there are none.
    fn journal(&self) -> std::io::Result<[journal::File; 2]> {
        let [one, two] = self.journal_paths();
        Ok([self.journal_file(&one)?, self.journal_file(&two)?])
    }

    fn journal_file(&self, path: &Path) -> std::io::Result<journal::File> {
        let (file, new) = open_file(path)?;
        if new {
            crate::files::sync_folder(path)?;
        }
        let file = FileBackend::new(file).map_err(|_| std::io::Error::other("busy"))?;
        #[cfg(test)]
        if let Some(faults) = &self.faults {
            return Ok(Box::new(faults.over(file)));
        }
        Ok(Box::new(file))
    }
}

/// Why a store is not ours to open; nothing in it was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It records no generation, or another one: start over with a new one.
    PreReset,
    /// A newer program wrote it: upgrade, and keep it.
    Newer,
}

impl Refusal {
    /// `pre-reset` or `newer`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreReset => "pre-reset",
            Self::Newer => "newer",
        }
    }
}

/// Why a store did not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It is not ours to open: exit 78.
    #[error("store_refused: {}", .0.as_str())]
    Refused(Refusal),
    /// Another process has it.
    #[error("another process has the store open")]
    Busy,
    /// Nothing heals it by trying again: it is damaged, or its file is gone or another. Its data was left as it is.
    #[error("the store is lost: {0}")]
    Lost(StoreFault),
    /// It could not be read or written.
    #[error("the store could not be opened: {0}")]
    Fault(#[from] StoreFault),
}

impl From<DatabaseError> for OpenError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => Self::Busy,
            // A file format of a redb that this program no longer reads.
            DatabaseError::UpgradeRequired(_) => Self::Refused(Refusal::PreReset),
            error => Self::Fault(error.into()),
        }
    }
}

/// What a guarded store is held to besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    None,
    /// Checked when opened, and its file must stay where it is.
    File,
    /// The same, of a store that was there before.
    Same,
}

impl Guard {
    /// Opens the database, and checks all of it when it is guarded.
    fn open(
        self,
        mut builder: Builder,
        create: impl FnOnce(&Builder) -> Result<Database, DatabaseError>,
        new: bool,
    ) -> Result<Database, DatabaseError> {
        // The walk after a crash is such a check, too.
        let walked = Arc::new(AtomicBool::new(false));
        let noted = Arc::clone(&walked);
        builder.set_repair_callback(move |_| noted.store(true, Ordering::Relaxed));
        let mut db = create(&builder)?;
        if self != Self::None && !new && !walked.load(Ordering::Relaxed) {
            db.check_integrity()?;
        }
        Ok(db)
    }

    /// Damage is not healed by opening again.
    fn judge(self, error: OpenError) -> OpenError {
        match error {
            OpenError::Fault(fault) if self != Self::None && fault.0 == "corrupted" => OpenError::Lost(fault),
            error => error,
        }
    }
}

/// A file's device and number.
pub(super) type FileId = (u64, u64);

pub(super) fn file_id(path: &Path) -> Option<FileId> {
    path.symlink_metadata().ok().map(|meta| (meta.dev(), meta.ino()))
}

impl RedbStore {
    /// As [`RedbStore::open`], for a store that people move, copy and delete: everything in it is checked, and a commit
    /// fails when the file is no longer the one at this path.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::Lost`] for a damaged one, which is left as it is.
    pub fn open_guarded(location: &Location, schema: Schema, options: Options) -> Result<Self, OpenError> {
        Self::open_as(location, schema, options, Guard::File)
    }

    /// As [`RedbStore::open_guarded`], for a store that was open before: none is made.
    ///
    /// # Errors
    /// As [`RedbStore::open_guarded`]; [`OpenError::Lost`] when it is gone, too.
    pub fn reopen_guarded(location: &Location, schema: Schema, options: Options) -> Result<Self, OpenError> {
        Self::open_as(location, schema, options, Guard::Same)
    }

    /// Opens the store at `location`, or makes a new one (0600) when there is none.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(location: &Location, schema: Schema, options: Options) -> Result<Self, OpenError> {
        let store = Self::open_as(location, schema, options, Guard::None)?;
        if store.pending.swap(false, Ordering::Relaxed) {
            store.checkpoint.start(&store.inner, store.commits());
        }
        Ok(store)
    }

    /// As [`RedbStore::open`], for a store that failed: it is read until [`RedbStore::probe`] succeeds, and until then
    /// nothing goes from its journal into redb, which would fail on a full disk and end the reading.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn reopen(location: &Location, schema: Schema, options: Options) -> Result<Self, OpenError> {
        Self::open_as(location, schema, options, Guard::None)
    }

    fn open_as(
        location: &Location,
        schema: Schema,
        options: Options,
        guard: Guard,
    ) -> Result<Self, OpenError> {
        if guard == Guard::Same && file_id(location.path()).is_none() {
            return Err(OpenError::Lost(StoreFault("not_found")));
        }
        let (mut file, new) = open_file(location.path()).map_err(io_fault)?;
        if !new && is_foreign(&mut file).map_err(io_fault)? {
            return Err(OpenError::Refused(Refusal::PreReset));
        }
        let mut builder = Builder::new();
        builder.set_cache_size(options.cache_bytes);
        let (db, fresh, mut commits) = library::opening(|| {
            if !new {
                // §8.8 Opening: a store that is refused is not changed.
                let copy = FileBackend::new(file.try_clone().map_err(io_fault)?)?;
                check(&builder.create_with_backend(Held::new(copy).map_err(io_fault)?)?, schema)?;
            }
            let db = guard.open(builder, |builder| location.create(builder, file), new)?;
            let fresh = check(&db, schema)?;
            let commits = Self::read_commits(&db)?;
            Ok((db, fresh, commits))
        })
        .map_err(|error| guard.judge(error))?;
        if new {
            crate::files::sync_folder(location.path()).map_err(io_fault)?;
        }
        let inner = Arc::new(Inner::new(db));
        if fresh {
            let records =
                [(GENERATION, schema.generation), (SCHEMA, schema.schema), (MIN_READER, schema.min_reader)];
            let records = records.map(|(key, value)| (key, value.to_be_bytes()));
            let mut rows: Vec<_> =
                records.iter().map(|(key, value)| (META, *key, Some(value.as_slice()))).collect();
            rows.sort();
            commits = commits.wrapping_add(1);
            inner.write(rows.into_iter(), commits, options.quick_repair)?;
        }
        let (mut journal, mut left, mut watched) = (None, Writes::new(), Vec::new());
        if guard != Guard::None || options.journal.is_some() {
            watched.push(location.path().to_owned());
        }
        if let Some(tables) = options.journal {
            watched.extend(location.journal_paths());
            let (opened, found) = Journal::open(location.journal().map_err(io_fault)?, commits, tables)?;
            (journal, left, commits) = (Some(Mutex::new(opened)), found.writes, found.last);
        }
        let store = Self {
            checkpoint: Checkpoint::default(),
            inner,
            journal,
            path: location.path().to_owned(),
            watched: watched.into_iter().filter_map(|path| file_id(&path).map(|file| (path, file))).collect(),
            quick_repair: options.quick_repair,
            commits: AtomicU64::new(commits),
            // Both files are in use until this is done, so the journal goes on where it was.
            pending: AtomicBool::new(!left.is_empty()),
        };
        store.inner.layers_mut().active = left;
        Ok(store)
    }
}

/// Checks the records of a store (`§8.8`, "Opening"); whether it is a new one.
pub(super) fn check(db: &Database, ours: Schema) -> Result<bool, OpenError> {
    let txn = db.begin_read().map_err(StoreFault::from)?;
    let mut tables = txn.list_tables().map_err(StoreFault::from)?;
    if tables.next().is_none() {
        return Ok(true);
    }
    drop(tables);
    let has_meta = txn.list_tables().map_err(StoreFault::from)?.any(|table| table.name() == META.0);
    if !has_meta {
        return Err(OpenError::Refused(Refusal::PreReset));
    }
    let meta = txn.open_table(table(META)).map_err(StoreFault::from)?;
    let record = |key: &[u8]| -> Result<Option<u64>, StoreFault> {
        Ok(meta.get(key)?.and_then(|row| row.value().try_into().ok()).map(u64::from_be_bytes))
    };
    if record(GENERATION)? != Some(ours.generation) {
        return Err(OpenError::Refused(Refusal::PreReset));
    }
    match record(MIN_READER)? {
        Some(min_reader) if min_reader <= ours.schema => Ok(false),
        _ => Err(OpenError::Refused(Refusal::Newer)),
    }
}

/// Opens the file for reading and writing, making it 0600 when it is not there; whether it was made.
pub(super) fn open_file(path: &Path) -> std::io::Result<(File, bool)> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let private = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(path, flags | OFlags::CREATE | OFlags::EXCL, private) {
        Ok(file) => {
            // The umask can have taken bits away.
            rustix::fs::fchmod(&file, private)?;
            Ok((File::from(file), true))
        }
        Err(rustix::io::Errno::EXIST) => {
            Ok((File::from(rustix::fs::open(path, flags, Mode::empty())?), false))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a file holds something that redb did not write. An empty one, or one that a crash left full of zeros
/// before its first commit, is as good as none.
pub(super) fn is_foreign(file: &mut File) -> std::io::Result<bool> {
    let mut start = Vec::new();
    file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start)?;
    file.rewind()?;
    Ok(!start.iter().all(|byte| *byte == 0) && start != MAGIC)
}

pub(super) fn io_fault(error: std::io::Error) -> OpenError {
    OpenError::Fault(StoreFault::from(redb::StorageError::Io(error)))
}
