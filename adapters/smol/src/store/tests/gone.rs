//! Files that are deleted, moved or replaced under an open store: nothing is acknowledged from them, and what was
//! acknowledged before is kept.

use super::*;

/// What happens to a file.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Deleted,
    Moved,
    Replaced,
}

impl Fate {
    fn meet(self, path: &Path) {
        let aside = path.with_extension("aside");
        match self {
            Self::Deleted => std::fs::remove_file(path).unwrap(),
            Self::Moved => std::fs::rename(path, aside).unwrap(),
            Self::Replaced => {
                std::fs::copy(path, &aside).unwrap();
                std::fs::rename(aside, path).unwrap();
            }
        }
    }
}

fn numbered(n: u8) -> Writes {
    writes(&[(A, &[n], Some(&[n])), (B, b"last", Some(&[n]))])
}

#[test]
fn what_was_acknowledged_from_a_journal_survives_its_files() {
    for fate in [Fate::Deleted, Fate::Moved, Fate::Replaced] {
        // The file in use, the other one, and both; some rows in redb already, or none.
        for (files, settled) in [(0..1, 0), (0..1, 3), (1..2, 3), (0..2, 3), (0..2, 0)] {
            let dir = tempfile::tempdir().unwrap();
            let location = Location::new(&dir.path().join("x.db"));
            let store = open_with(&location, JOURNAL);
            for n in 1..=5 {
                store.commit(&numbered(n)).unwrap();
                if n == settled {
                    store.settle().unwrap();
                    store.checkpoint.wait();
                }
            }
            location.journal_paths()[files.clone()].iter().for_each(|path| fate.meet(path));
            let what = format!("{fate:?} {files:?} {settled}");
            assert_eq!(store.commit(&numbered(6)), Err(StoreFault("gone")), "{what}");
            // The handle is of no more use.
            assert_eq!(store.commit(&numbered(7)), Err(StoreFault("gone")), "{what}");
            drop(store);
            let again = RedbStore::reopen(&location, Schema::CURRENT, JOURNAL).unwrap();
            again.probe().unwrap();
            let store = Arc::new(again);
            for n in [1, 2, 3, 4, 5, 7_u8] {
                let kept = (n <= 5).then(|| vec![n]);
                assert_eq!(store.reader().get(A, &[n]).unwrap(), kept, "{what}: {n}");
            }
            // Of the one that failed nothing is known: it is in the other file, or nowhere.
            let last = store.reader().get(A, &[6]).unwrap().map_or(5, |_| 6);
            assert_eq!(store.reader().get(B, b"last").unwrap(), Some(vec![last]), "{what}");
            store.commit(&numbered(8)).unwrap();
            drop(store);
            assert_eq!(open_with(&location, JOURNAL).reader().get(A, &[8]).unwrap(), Some(vec![8]), "{what}");
        }
    }
}

#[test]
fn nothing_is_acknowledged_into_a_file_that_is_not_there() {
    for options in [JOURNAL, Options { quick_repair: true, ..JOURNAL }] {
        for fate in [Fate::Deleted, Fate::Moved, Fate::Replaced] {
            let dir = tempfile::tempdir().unwrap();
            let location = Location::new(&dir.path().join("x.db"));
            let store = open_with(&location, options);
            store.commit(&numbered(1)).unwrap();
            fate.meet(location.path());
            assert_eq!(store.commit(&numbered(2)), Err(StoreFault("gone")), "{fate:?}");
            assert_eq!(store.probe(), Err(StoreFault("gone")), "{fate:?}");
        }
    }
}
