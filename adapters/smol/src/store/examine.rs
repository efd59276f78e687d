//! Looking at a store without touching it: for `messaging doctor`, while no daemon has it.

use super::held::Held;
use super::library;
use super::open::{OpenError, Schema, check, io_fault, is_foreign};
use redb::{Builder, StorageBackend};
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

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
    let held = Held::new(Unlocked(file)).map_err(io_fault)?;
    // Nobody else runs here, so nobody misses the hook that would print what `library` makes an answer of.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let fresh = library::opening(|| {
        let mut db = Builder::new().set_cache_size(CACHE_BYTES).create_with_backend(held)?;
        db.check_integrity()?;
        check(&db, Schema::CURRENT)
    });
    std::panic::set_hook(hook);
    fresh.map(|fresh| !fresh)
}

/// A file that is read, and not kept from anybody meanwhile.
#[derive(Debug)]
struct Unlocked(File);

impl StorageBackend for Unlocked {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.0.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.0.read_exact_at(out, offset)
    }

    // What stands behind glass is never asked to change.
    fn set_len(&self, _: u64) -> Result<(), Error> {
        Err(ErrorKind::PermissionDenied.into())
    }

    fn sync_data(&self) -> Result<(), Error> {
        Ok(())
    }

    fn write(&self, _: u64, _: &[u8]) -> Result<(), Error> {
        Err(ErrorKind::PermissionDenied.into())
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
}
