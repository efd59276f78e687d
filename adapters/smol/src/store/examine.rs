//! Looking at a store without touching it: for `messaging doctor`, while no daemon has it.

use super::StoreFault;
use super::open::{OpenError, Schema, check, io_fault, is_foreign};
use redb::{Builder, StorageBackend};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is written is kept in pieces of this many bytes.
const BLOCK: u64 = 4096;
const CACHE_BYTES: usize = 16 << 20;

/// Whether there is a store at `path` that a daemon of this release could open; false when there is none, or one without
/// any row. Every page is read; repairs after a crash are made in memory, and nothing is written.
///
/// # Errors
/// [`OpenError`] with what is wrong with it.
pub fn examine(path: &Path) -> Result<bool, OpenError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(io_fault(error)),
    };
    if is_foreign(&mut file).map_err(io_fault)? {
        return Err(OpenError::Refused(super::Refusal::PreReset));
    }
    let overlay = Overlay::over(file).map_err(io_fault)?;
    // redb panics on some of what it finds in a damaged file. Nobody else runs here, so nobody misses the hook.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let looked = catch_unwind(AssertUnwindSafe(|| {
        let mut db = Builder::new().set_cache_size(CACHE_BYTES).create_with_backend(overlay)?;
        db.check_integrity()?;
        check(&db, Schema::CURRENT)
    }));
    std::panic::set_hook(hook);
    looked.unwrap_or(Err(OpenError::Fault(StoreFault("corrupted")))).map(|fresh| !fresh)
}

/// A file whose changes stay in memory.
#[derive(Debug)]
struct Overlay {
    file: File,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    len: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl Overlay {
    fn over(file: File) -> std::io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file, state: Mutex::new(State { len, blocks: BTreeMap::new() }) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of a block, as they are on the disk; zeros past its end.
    fn below(&self, block: u64) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; BLOCK as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], block * BLOCK + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
    }
}

/// The parts of `len` bytes from `offset` on, each with its block, its start there and its length.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + len as u64;
    let mut at = offset;
    std::iter::from_fn(move || {
        let (block, start) = (at / BLOCK, at % BLOCK);
        let length = (BLOCK - start).min(end - at);
        at += length;
        (length > 0).then_some((block, start as usize, length as usize))
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.state().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let state = self.state();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > state.len) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let mut done = 0;
        for (block, start, length) in parts(offset, out.len()) {
            let part = &mut out[done..done + length];
            match state.blocks.get(&block) {
                Some(bytes) => part.copy_from_slice(&bytes[start..start + length]),
                None => part.copy_from_slice(&self.below(block)?[start..start + length]),
            }
            done += length;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        self.state().len = len;
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let mut state = self.state();
        let mut done = 0;
        for (block, start, length) in parts(offset, data.len()) {
            let mut bytes = match state.blocks.remove(&block) {
                Some(bytes) => bytes,
                None => self.below(block)?,
            };
            bytes[start..start + length].copy_from_slice(&data[done..done + length]);
            state.blocks.insert(block, bytes);
            done += length;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Location, Options, RedbStore, Refusal};
    use messaging_machines::store::{MemoryBase, Table, Txn, Writes};

    const OPTIONS: Options = Options { cache_bytes: 1 << 20, quick_repair: false, journal: None };

    #[test]
    fn a_look_says_what_a_start_would_and_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        assert_eq!(examine(&path), Ok(false));
        assert!(!path.exists(), "none was made");
        for (min_reader, found) in [(1, Ok(true)), (2, Err(OpenError::Refused(Refusal::Newer)))] {
            let schema = Schema { schema: min_reader, min_reader, ..Schema::CURRENT };
            let store = RedbStore::open(&Location::new(&path), schema, OPTIONS).unwrap();
            let (base, mut writes) = (MemoryBase::default(), Writes::new());
            let mut txn = Txn::new(&base, None, &mut writes);
            for n in 0..50_u8 {
                txn.put(Table("a"), &[n], &vec![n; 3000]);
            }
            store.commit(&writes).unwrap();
            // As a process leaves it that was killed.
            let killed = std::fs::read(&path).unwrap();
            drop(store);
            for bytes in [killed, std::fs::read(&path).unwrap()] {
                std::fs::write(&path, &bytes).unwrap();
                assert_eq!(examine(&path), found);
                assert!(std::fs::read(&path).unwrap() == bytes, "changed");
            }
            let whole = std::fs::read(&path).unwrap();
            std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
            assert!(matches!(examine(&path), Err(OpenError::Fault(_))));
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn parts_cover_what_was_asked_for() {
        assert_eq!(parts(4090, 10).collect::<Vec<_>>(), [(0, 4090, 6), (1, 0, 4)]);
        assert_eq!(parts(8192, 4096).collect::<Vec<_>>(), [(2, 0, 4096)]);
        assert_eq!(parts(5, 0).count(), 0);
    }
}
