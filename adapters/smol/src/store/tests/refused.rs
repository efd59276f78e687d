//! Stores that are not opened: what that leaves of them, and what the operator is told.

use super::*;
use crate::log::{Level, Log};
use std::process::Command;

/// `§8.8` Opening: a refused store is not changed by a byte, however it was left, and no file is made beside it.
#[test]
fn a_refused_store_is_not_changed() {
    let twice = Options { quick_repair: true, ..OPTIONS };
    for (options, closed) in
        [(OPTIONS, true), (OPTIONS, false), (twice, false), (JOURNAL, true), (JOURNAL, false)]
    {
        let dir = tempfile::tempdir().unwrap();
        let location = Location::new(&dir.path().join("x.db"));
        let store = open_with(&location, options);
        for n in 0..200_u8 {
            store.commit(&writes(&[(A, &[n], Some(&[n; 3_000]))])).unwrap();
        }
        let crash = dir.path().join("crash");
        std::fs::create_dir(&crash).unwrap();
        let left = Location::new(&crash.join("x.db"));
        if closed {
            Arc::into_inner(store).unwrap().close().unwrap();
            std::fs::copy(location.path(), left.path()).unwrap();
        } else {
            for file in std::fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
                if file.file_type().unwrap().is_file() {
                    std::fs::copy(file.path(), crash.join(file.file_name())).unwrap();
                }
            }
        }
        let state = || -> Vec<_> {
            let files = std::fs::read_dir(&crash).unwrap().map(|file| file.unwrap().path());
            let mut files: Vec<_> = files
                .map(|path| {
                    let meta = std::fs::metadata(&path).unwrap();
                    (
                        path.clone(),
                        std::fs::read(&path).unwrap(),
                        meta.mtime(),
                        meta.mtime_nsec(),
                        meta.mode(),
                    )
                })
                .collect();
            files.sort();
            files
        };
        let before = state();
        let other = Schema { generation: 3, ..Schema::CURRENT };
        let older = Schema { schema: 0, ..Schema::CURRENT };
        for (schema, reason) in [(other, Refusal::PreReset), (older, Refusal::Newer)] {
            match RedbStore::open(&left, schema, options) {
                Err(OpenError::Refused(refused)) => assert_eq!(refused, reason),
                other => panic!("{other:?}"),
            }
            assert!(state() == before, "{options:?} {closed} {reason:?}");
        }
        let store = open_with(&left, options);
        assert_eq!(store.reader().get(A, &[199]).unwrap(), Some(vec![199; 3_000]));
    }
}

/// Set in the process that opens a damaged store.
const CHILD: &str = "MESSAGING_TEST_DAMAGED";

/// Not a test of its own: what the other test runs in a process of its own.
#[test]
fn child() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    crate::process::exit_on_panic("relay.fatal", &Log::stderr(Level::Info));
    let fault =
        match RedbStore::open(&Location::new(Path::new(&path)), Schema::CURRENT, JOURNAL).map(Arc::new) {
            Ok(store) => {
                let reader = store.reader();
                let all =
                    Range { from: Bound::Unbounded, to: Bound::Unbounded, reverse: false, limit: usize::MAX };
                let failed = [A, B].into_iter().any(|table| reader.range(table, all).is_err());
                failed.then(|| reader.fault().unwrap())
            }
            Err(OpenError::Fault(fault)) => Some(fault),
            // A page without a word of whose it is.
            Err(OpenError::Refused(_)) => None,
            Err(other) => panic!("{other:?}"),
        };
    if let Some(fault) = fault {
        crate::process::complain(&format!("relay: the database: {fault}"));
        std::process::exit(1);
    }
    // Nothing is written, nor closed.
    std::process::exit(0);
}

/// A damaged page is a file that cannot be opened or read, and no bug to report: at the start, and at a read.
#[test]
fn a_damaged_page_is_told_as_a_corrupted_file() {
    let dir = tempfile::tempdir().unwrap();
    let location = Location::new(&dir.path().join("x.db"));
    let store = open_with(&location, JOURNAL);
    for n in 0..12_u8 {
        store.commit(&writes(&[(A, &[n], Some(&[n; 900])), (B, &[n], Some(b"small"))])).unwrap();
    }
    Arc::into_inner(store).unwrap().close().unwrap();
    let whole = std::fs::read(location.path()).unwrap();
    let used = |page: &usize| whole[page * 4096..][..4096].iter().any(|byte| *byte != 0);
    let mut corrupted = 0;
    for page in (1..whole.len() / 4096).filter(used) {
        let mut bytes = whole.clone();
        bytes[page * 4096] ^= 0x20;
        std::fs::write(location.path(), &bytes).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["store::tests::refused::child", "--exact", "--nocapture"])
            .env(CHILD, location.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stderr);
        match child.status.code() {
            Some(0) => {}
            Some(1) => {
                assert!(text.contains("the database: corrupted"), "{page}: {text}");
                corrupted += 1;
            }
            other => panic!("{page}: {other:?} {text}"),
        }
    }
    assert!(corrupted > 0);
}
