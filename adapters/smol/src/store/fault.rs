//! A redb file that fails on demand: what a commit's failure really leaves behind.

use super::locks::file_locks;
use redb::StorageBackend;
use redb::backends::FileBackend;
use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex};

/// What a failing sync leaves in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Everything written reached the disk all the same: a phantom commit.
    Phantom,
    /// Nothing since the last sync reached the disk: a lost commit.
    Lost,
}

/// Switches over every backend made by [`Faults::over`], across reopenings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Which sync from now fails, and how.
    sync: Option<(u32, Failure)>,
    /// No write and no growth succeeds.
    full: bool,
    syncs: u64,
}

#[derive(Debug)]
enum Undo {
    Bytes(u64, Vec<u8>),
    Len(u64),
}

impl Faults {
    /// Fails the `nth` sync from now (1 is the next).
    pub(crate) fn fail_sync(&self, nth: u32, failure: Failure) {
        self.0.lock().unwrap().sync = Some((nth, failure));
    }

    /// No sync fails any more.
    pub(crate) fn heal(&self) {
        self.0.lock().unwrap().sync = None;
    }

    /// A full disk, or not any more.
    pub(crate) fn set_full(&self, full: bool) {
        self.0.lock().unwrap().full = full;
    }

    /// How many syncs succeeded.
    pub(crate) fn syncs(&self) -> u64 {
        self.0.lock().unwrap().syncs
    }

    pub(super) fn over(&self, file: FileBackend) -> FaultBackend {
        FaultBackend { file, faults: self.clone(), undo: Mutex::default() }
    }
}

#[derive(Debug)]
pub(crate) struct FaultBackend {
    file: FileBackend,
    faults: Faults,
    /// What writes since the last sync covered, newest last: offset and old bytes.
    undo: Mutex<Vec<Undo>>,
}

impl FaultBackend {
    fn full(&self) -> Result<(), Error> {
        if self.faults.0.lock().unwrap().full { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl StorageBackend for FaultBackend {
    fn len(&self) -> Result<u64, Error> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        self.full()?;
        let old = self.file.len()?;
        self.undo.lock().unwrap().push(Undo::Len(old));
        self.file.set_len(len)
    }

    fn sync_data(&self) -> Result<(), Error> {
        let mut state = self.faults.0.lock().unwrap();
        if let Some((nth, failure)) = state.sync {
            state.sync = (nth > 1).then_some((nth - 1, failure));
            if nth == 1 {
                if failure == Failure::Lost {
                    for undo in self.undo.lock().unwrap().drain(..).rev() {
                        match undo {
                            Undo::Bytes(offset, bytes) => self.file.write(offset, &bytes)?,
                            Undo::Len(len) => self.file.set_len(len)?,
                        }
                    }
                }
                return Err(Error::other("injected"));
            }
        }
        self.undo.lock().unwrap().clear();
        state.syncs += 1;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.full()?;
        // A journal grows by writing.
        let (end, len) = (offset + data.len() as u64, self.file.len()?);
        if end > len {
            self.undo.lock().unwrap().push(Undo::Len(len));
        }
        let mut old = vec![0; usize::try_from(end.min(len).saturating_sub(offset)).unwrap()];
        self.file.read(offset, &mut old)?;
        self.undo.lock().unwrap().push(Undo::Bytes(offset, old));
        self.file.write(offset, data)
    }

    file_locks!();
}
