//! The store on real files, failures included.

use super::fault::{Failure, Faults};
use super::*;
use messaging_machines::store::{Base, MemoryBase, Range, Txn};
use std::ops::Bound;
use std::os::unix::fs::MetadataExt;

const A: Table = Table("a");
const B: Table = Table("b");
const OPTIONS: Options = Options { cache_bytes: 1 << 20, quick_repair: false };

type Change<'a> = (Table, &'a [u8], Option<&'a [u8]>);

fn writes(rows: &[Change<'_>]) -> Writes {
    let (base, mut open) = (MemoryBase::default(), Writes::new());
    let mut txn = Txn::new(&base, None, &mut open);
    for (table, key, value) in rows {
        match value {
            Some(value) => txn.put(*table, key, value),
            None => txn.delete(*table, key),
        }
    }
    open
}

fn open(location: &Location) -> Arc<RedbStore> {
    Arc::new(RedbStore::open(location, Schema::CURRENT, OPTIONS).unwrap())
}

#[test]
fn reads_see_the_last_commit_after_a_refresh() {
    let dir = tempfile::tempdir().unwrap();
    let location = Location::new(&dir.path().join("x.db"));
    let store = open(&location);
    assert_eq!(std::fs::metadata(location.path()).unwrap().mode() & 0o777, 0o600);
    let reader = store.reader();
    assert_eq!(reader.get(A, b"k").unwrap(), None, "a table nobody wrote");
    store.commit(&writes(&[(A, b"k", Some(b"1")), (B, b"k", Some(b"2"))])).unwrap();
    assert_eq!(reader.get(A, b"k").unwrap(), None);
    reader.refresh();
    assert_eq!(reader.get(A, b"k").unwrap(), Some(b"1".to_vec()));
    store.commit(&writes(&[(A, b"k", None)])).unwrap();
    reader.refresh();
    assert_eq!((reader.get(A, b"k").unwrap(), reader.get(B, b"k").unwrap()), (None, Some(b"2".to_vec())));
}

#[test]
fn ranges_agree_with_the_memory_base() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&Location::new(&dir.path().join("x.db")));
    let mut memory = MemoryBase::default();
    let keys: Vec<Vec<u8>> = (0..40u8).map(|n| vec![n % 7, n, 0xff]).collect();
    let rows: Vec<_> = keys.iter().map(|key| (A, key.as_slice(), Some(&key[..1]))).collect();
    let batch = writes(&rows);
    memory.apply(&batch);
    store.commit(&batch).unwrap();
    let reader = store.reader();
    let bounds = |key: &'static [u8]| [Bound::Included(key), Bound::Excluded(key), Bound::Unbounded];
    for from in bounds(&[2]).into_iter().chain(bounds(&[5, 12, 0xff])) {
        for to in bounds(&[2, 9, 0xff]).into_iter().chain(bounds(&[6])) {
            for (reverse, limit) in [(false, 100), (true, 100), (false, 3), (true, 3), (true, 0)] {
                let range = Range { from, to, reverse, limit };
                assert_eq!(reader.range(A, range).unwrap(), memory.range(A, range).unwrap(), "{range:?}");
            }
        }
    }
}

#[test]
fn what_is_committed_survives_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let location = Location::new(&dir.path().join("x.db"));
    let store = open(&location);
    let before = store.commits();
    store.commit(&writes(&[(A, b"k", Some(b"1"))])).unwrap();
    assert!(matches!(RedbStore::open(&location, Schema::CURRENT, OPTIONS), Err(OpenError::Busy)));
    drop(store);
    let store = open(&location);
    assert_eq!(store.commits(), before + 1);
    assert_eq!(store.reader().get(A, b"k").unwrap(), Some(b"1".to_vec()));
}

#[test]
fn foreign_stores_are_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let location = Location::new(&dir.path().join("x.db"));
    std::fs::write(location.path(), b"SQLite format 3\0 and more").unwrap();
    let refused = |schema| match RedbStore::open(&location, schema, OPTIONS) {
        Err(OpenError::Refused(reason)) => reason.as_str(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(Schema::CURRENT), "pre-reset");
    assert_eq!(std::fs::read(location.path()).unwrap(), b"SQLite format 3\0 and more");
    std::fs::write(location.path(), b"").unwrap();
    drop(open(&location));
    assert_eq!(refused(Schema { generation: 3, ..Schema::CURRENT }), "pre-reset");
    assert_eq!(refused(Schema { schema: 0, ..Schema::CURRENT }), "newer");
    drop(open(&location));
}

#[test]
fn a_store_of_another_program_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let location = Location::new(&dir.path().join("x.db"));
    let db = redb::Database::create(location.path()).unwrap();
    let txn = db.begin_write().unwrap();
    txn.open_table(table(A)).unwrap();
    txn.commit().unwrap();
    drop(db);
    let refused = RedbStore::open(&location, Schema::CURRENT, OPTIONS);
    assert!(matches!(refused, Err(OpenError::Refused(Refusal::PreReset))));
}

#[test]
fn a_failed_commit_is_there_or_not_and_the_counter_tells() {
    for (quick_repair, failure, there) in [
        (false, Failure::Phantom, true),
        (false, Failure::Lost, false),
        // The first of two syncs: the commit slot is not flipped yet.
        (true, Failure::Phantom, false),
        (true, Failure::Lost, false),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let location = Location::with_faults(&dir.path().join("x.db"), faults.clone());
        let options = Options { quick_repair, ..OPTIONS };
        let store = RedbStore::open(&location, Schema::CURRENT, options).unwrap();
        store.commit(&writes(&[(A, b"k", Some(b"1"))])).unwrap();
        let before = store.commits();
        faults.fail_sync(1, failure);
        store.commit(&writes(&[(A, b"k", Some(b"2"))])).unwrap_err();
        assert_eq!(store.commit(&writes(&[(A, b"x", Some(b"3"))])), Err(StoreFault("previous_io")));
        drop(store);
        let store = Arc::new(RedbStore::open(&location, Schema::CURRENT, options).unwrap());
        let value = store.reader().get(A, b"k").unwrap();
        assert_eq!(value.as_deref(), Some(if there { b"2".as_slice() } else { b"1" }), "{failure:?}");
        assert_eq!(store.commits() > before, there, "the counter agrees");
        store.probe().unwrap();
    }
}

#[test]
fn a_full_disk_heals_by_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let location = Location::with_faults(&dir.path().join("x.db"), faults.clone());
    let store = open(&location);
    store.commit(&writes(&[(A, b"k", Some(b"1"))])).unwrap();
    faults.set_full(true);
    assert_eq!(store.commit(&writes(&[(A, b"k", Some(&[7; 4096]))])), Err(StoreFault("disk_full")));
    drop(store);
    // While it is full, opening or probing fails; nothing that was durable is lost by trying.
    match RedbStore::open(&location, Schema::CURRENT, OPTIONS) {
        Ok(store) => assert!(store.probe().is_err()),
        Err(error) => assert_eq!(error, OpenError::Fault(StoreFault("disk_full"))),
    }
    faults.set_full(false);
    let store = open(&location);
    store.probe().unwrap();
    assert_eq!(store.reader().get(A, b"k").unwrap(), Some(b"1".to_vec()));
}

#[test]
fn a_settled_file_needs_no_repair_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let location = Location::new(&dir.path().join("x.db"));
    let store = open(&location);
    let repairs = |name: &str| {
        // What a crash now would leave.
        let copy = dir.path().join(name);
        std::fs::copy(location.path(), &copy).unwrap();
        let count = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&count);
        let mut builder = redb::Builder::new();
        builder.set_repair_callback(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        drop(builder.open(&copy).unwrap());
        count.load(Ordering::Relaxed)
    };
    store.commit(&writes(&[(A, b"k", Some(b"1"))])).unwrap();
    assert!(store.unsettled());
    assert!(repairs("one") > 0);
    store.settle().unwrap();
    assert!(!store.unsettled());
    assert_eq!(repairs("two"), 0);
    store.commit(&writes(&[(A, b"k", Some(b"2"))])).unwrap();
    assert!(store.unsettled());
    assert_eq!(store.reader().get(A, b"k").unwrap(), Some(b"2".to_vec()));
}
