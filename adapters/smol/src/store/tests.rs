//! The store on real files, failures included.

mod gone;
mod refused;

use super::fault::{Failure, Faults};
use super::*;
use messaging_machines::store::{Base, MemoryBase, Range, Txn};
use std::ops::Bound;
use std::os::unix::fs::MetadataExt;

const A: Table = Table("a");
const B: Table = Table("b");
const OPTIONS: Options = Options { cache_bytes: 1 << 20, quick_repair: false, journal: None };
const JOURNAL: Options = Options { journal: Some(&[META, A, B]), ..OPTIONS };

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
    open_with(location, OPTIONS)
}

fn open_with(location: &Location, options: Options) -> Arc<RedbStore> {
    Arc::new(RedbStore::open(location, Schema::CURRENT, options).unwrap())
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
    ranges_agree(OPTIONS);
    ranges_agree(JOURNAL);
}

fn ranges_agree(options: Options) {
    let dir = tempfile::tempdir().unwrap();
    let store = open_with(&Location::new(&dir.path().join("x.db")), options);
    let mut memory = MemoryBase::default();
    let keys: Vec<Vec<u8>> = (0..40u8).map(|n| vec![n % 7, n, 0xff]).collect();
    // Some rows in redb, some changed and some deleted above it.
    for (round, kept) in [(1, 40), (2, 20), (3, 10)] {
        let value = [round; 2];
        let change = |n: usize| if n % 3 == 2 { None } else { Some(&value[..]) };
        let picked = keys.iter().enumerate().filter(|(n, _)| n * 7 % 40 < kept);
        let rows: Vec<_> = picked.map(|(n, key)| (A, key.as_slice(), change(n + kept))).collect();
        let batch = writes(&rows);
        memory.apply(&batch);
        store.commit(&batch).unwrap();
        if round == 1 {
            store.settle().unwrap();
        }
    }
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
    for options in [OPTIONS, JOURNAL] {
        let dir = tempfile::tempdir().unwrap();
        let location = Location::new(&dir.path().join("x.db"));
        let store = open_with(&location, options);
        let before = store.commits();
        store.commit(&writes(&[(A, b"k", Some(b"1"))])).unwrap();
        assert!(matches!(RedbStore::open(&location, Schema::CURRENT, options), Err(OpenError::Busy)));
        drop(store);
        let store = open_with(&location, options);
        assert_eq!(store.commits(), before + 1);
        assert_eq!(store.reader().get(A, b"k").unwrap(), Some(b"1".to_vec()));
        Arc::into_inner(store).unwrap().close().unwrap();
        // All of it is in the one file then.
        let store = open(&location);
        assert_eq!((store.commits(), store.journal_bytes()), (before + 1, 0));
        assert_eq!(store.reader().get(A, b"k").unwrap(), Some(b"1".to_vec()));
    }
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
    let twice = Options { quick_repair: true, ..OPTIONS };
    for (options, failure, there) in [
        (OPTIONS, Failure::Phantom, true),
        (OPTIONS, Failure::Lost, false),
        (JOURNAL, Failure::Phantom, true),
        (JOURNAL, Failure::Lost, false),
        // The first of two syncs: the commit slot is not flipped yet.
        (twice, Failure::Phantom, false),
        (twice, Failure::Lost, false),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let location = Location::with_faults(&dir.path().join("x.db"), faults.clone());
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
    a_full_disk_heals(OPTIONS);
    a_full_disk_heals(JOURNAL);
}

fn a_full_disk_heals(options: Options) {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let location = Location::with_faults(&dir.path().join("x.db"), faults.clone());
    let store = open_with(&location, options);
    store.commit(&writes(&[(A, b"k", Some(b"1"))])).unwrap();
    faults.set_full(true);
    assert_eq!(store.commit(&writes(&[(A, b"k", Some(&[7; 4096]))])), Err(StoreFault("disk_full")));
    drop(store);
    // While it is full, opening or probing fails; nothing that was durable is lost by trying.
    match RedbStore::open(&location, Schema::CURRENT, options) {
        Ok(store) => assert!(store.probe().is_err()),
        Err(error) => assert_eq!(error, OpenError::Fault(StoreFault("disk_full"))),
    }
    faults.set_full(false);
    let store = open_with(&location, options);
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

/// What a crash now would leave, opened.
fn after_a_crash(store: &RedbStore, to: &Path) -> Arc<RedbStore> {
    std::fs::create_dir(to).unwrap();
    for name in ["x.db", "x.db.journal-0", "x.db.journal-1"] {
        std::fs::copy(store.path().with_file_name(name), to.join(name)).unwrap();
    }
    open_with(&Location::new(&to.join("x.db")), JOURNAL)
}

#[test]
fn a_crash_loses_nothing_committed_whatever_the_journal_and_the_checkpoints_did() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let location = Location::with_faults(&dir.path().join("x.db"), faults.clone());
    let (mut store, mut model) = (open_with(&location, JOURNAL), MemoryBase::default());
    let all = Range { from: Bound::Unbounded, to: Bound::Unbounded, reverse: false, limit: usize::MAX };
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let check = |store: &Arc<RedbStore>, model: &MemoryBase, round: u8| {
        let reader = store.reader();
        for table in [A, B] {
            assert_eq!(reader.range(table, all).unwrap(), model.range(table, all).unwrap(), "{round}");
        }
    };
    for round in 0..150_u8 {
        let mut batch = Writes::new();
        for _ in 0..=random(5) {
            let key = vec![u8::try_from(random(40)).unwrap()];
            let value = vec![round; usize::try_from(random(2_000)).unwrap()];
            let table = if random(2) == 0 { A } else { B };
            batch.write(table, key, (random(3) > 0).then_some(value));
        }
        model.apply(&batch);
        store.commit(&batch).unwrap();
        match random(8) {
            0 => store.settle().unwrap(),
            1 => {
                store.checkpoint.wait();
                store.settle().unwrap();
                store.checkpoint.wait();
                assert!(!store.unsettled());
            }
            2 => {
                store.checkpoint.wait();
                let crashed = after_a_crash(&store, &dir.path().join(format!("crash{round}")));
                assert_eq!(crashed.commits(), store.commits());
                check(&crashed, &model, round);
                // Its own checkpoint runs now, and it may crash again.
                crashed.checkpoint.wait();
                check(&after_a_crash(&crashed, &dir.path().join(format!("again{round}"))), &model, round);
            }
            3 => {
                // A checkpoint that fails leaves the journal as it was.
                store.checkpoint.wait();
                let commits = store.commits();
                let failure = if random(2) == 0 { Failure::Lost } else { Failure::Phantom };
                faults.fail_sync(u32::try_from(random(2)).unwrap() + 1, failure);
                store.settle().unwrap();
                store.checkpoint.wait();
                check(&store, &model, round);
                if store.settle().is_err() {
                    assert!(store.commit(&batch).is_err());
                }
                faults.heal();
                drop(store);
                store = open_with(&location, JOURNAL);
                assert_eq!(store.commits(), commits);
            }
            4 => {
                Arc::into_inner(store).unwrap().close().unwrap();
                store = open_with(&location, JOURNAL);
            }
            _ => {}
        }
        check(&store, &model, round);
    }
}

#[test]
fn a_long_journal_goes_into_redb_while_commits_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let location = Location::new(&dir.path().join("x.db"));
    let store = open_with(&location, JOURNAL);
    let value = vec![7; 256 << 10];
    let row = |n: u64| n.to_be_bytes();
    let rows = (CHECKPOINT_BYTES / value.len() * 10) as u64;
    for n in 0..rows {
        let mut batch = Writes::new();
        batch.write(A, row(n).to_vec(), Some(value.clone()));
        if n >= 4 {
            batch.write(A, row(n - 4).to_vec(), None);
        }
        store.commit(&batch).unwrap();
    }
    let journal = store.journal_bytes();
    assert!(journal < 5 * BEHIND_BYTES as u64, "{journal}");
    let left = store
        .reader()
        .range(A, Range { from: Bound::Unbounded, to: Bound::Unbounded, reverse: false, limit: 100 });
    assert_eq!(left.unwrap().len(), 4);
    store.checkpoint.wait();
    store.settle().unwrap();
    store.checkpoint.wait();
    let kept = store.inner.layers().active.is_empty();
    assert!(kept && !store.unsettled());
    drop(store);
    let store = open_with(&location, JOURNAL);
    assert_eq!(store.reader().get(A, &row(rows - 1)).unwrap(), Some(value));
}

/// Deletions are hardly any journal, but each is a row in memory.
#[test]
fn many_rows_go_into_redb_however_short_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_with(&Location::new(&dir.path().join("x.db")), JOURNAL);
    let each = CHECKPOINT_ROWS / 64;
    for batch in 0..4 * 64 {
        let mut writes = Writes::new();
        (0..each).for_each(|n| writes.write(A, ((batch * each + n) as u64).to_be_bytes().to_vec(), None));
        store.commit(&writes).unwrap();
        assert!(store.inner.layers().active.rows() < BEHIND_ROWS, "{batch}");
    }
    assert!(store.journal_bytes() < BEHIND_BYTES as u64);
    // Four times what a checkpoint begins at: at least one was waited for.
    assert!(store.inner.layers().generation > 0);
}

/// Every page that a store uses, found by flipping a byte in each.
#[test]
fn a_guarded_store_finds_damage_and_leaves_it_alone() {
    let dir = tempfile::tempdir().unwrap();
    let location = Location::new(&dir.path().join("x.db"));
    let open = || RedbStore::open_guarded(&location, Schema::CURRENT, OPTIONS);
    let rows: Vec<_> = (0..40_u32).map(|n| (n.to_be_bytes(), vec![n as u8; 900])).collect();
    let store = open().unwrap();
    for (key, value) in &rows {
        store.commit(&writes(&[(A, key, Some(value))])).unwrap();
    }
    drop(store);
    let good = std::fs::read(location.path()).unwrap();
    let whole = |store: RedbStore| {
        let all = Range { from: Bound::Unbounded, to: Bound::Unbounded, reverse: false, limit: 100 };
        Arc::new(store).reader().range(A, all).unwrap()
    };
    let wanted: Vec<_> = rows.iter().map(|(key, value)| (key.to_vec(), value.clone())).collect();
    let (mut found, mut unused) = (0, 0);
    for at in (0..good.len()).step_by(1_021) {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        std::fs::write(location.path(), &bad).unwrap();
        match open() {
            Ok(store) => {
                assert_eq!(whole(store), wanted, "byte {at}");
                unused += 1;
            }
            Err(OpenError::Lost(StoreFault("corrupted")) | OpenError::Refused(Refusal::PreReset)) => {
                // All but redb's own first page is as it was: the damage is there to be looked at, and found again.
                let left = std::fs::read(location.path()).unwrap();
                assert!(left[4_096..] == bad[4_096..], "byte {at}: changed");
                assert!(open().is_err(), "byte {at}: opened the second time");
                found += 1;
            }
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
    assert!(found > 10 && unused > 10, "{found} {unused}");
    for len in [0, 64, 100, 4_095, 4_096, good.len() - 4_096] {
        std::fs::write(location.path(), &good[..len]).unwrap();
        match open() {
            Ok(_) => assert_eq!(len, 0, "an empty file is as good as none"),
            Err(error) => assert_eq!(error, OpenError::Lost(StoreFault("corrupted")), "{len} bytes"),
        }
    }
}

#[test]
fn a_guarded_store_must_stay_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let location = Location::new(&dir.path().join("x.db"));
    let store = RedbStore::open_guarded(&location, Schema::CURRENT, OPTIONS).unwrap();
    store.commit(&writes(&[(A, b"k", Some(b"1"))])).unwrap();
    let aside = dir.path().join("aside");
    std::fs::rename(location.path(), &aside).unwrap();
    let gone = Err(StoreFault("gone"));
    assert_eq!(store.commit(&writes(&[(A, b"k", Some(b"2"))])), gone);
    assert_eq!(store.probe(), gone);
    drop(store);
    let again = || RedbStore::reopen_guarded(&location, Schema::CURRENT, OPTIONS);
    assert_eq!(again().err(), Some(OpenError::Lost(StoreFault("not_found"))));
    assert!(!location.path().exists(), "none was made");
    std::fs::rename(&aside, location.path()).unwrap();
    let store = again().unwrap();
    assert_eq!(Arc::new(store).reader().get(A, b"k").unwrap(), Some(b"1".to_vec()));
}
