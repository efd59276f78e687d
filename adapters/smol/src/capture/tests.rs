//! A capture's file: private, of bounded size, and never in the service's way.

use super::*;
use crate::store::{Location, Options, RedbStore, Schema};
use messaging_machines::capture::Reader as Records;
use messaging_machines::relay::{Config, schema};
use messaging_machines::store::{MemoryBase, Txn};
use std::os::unix::fs::PermissionsExt;

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o777
}

fn store(dir: &Path, rows: u32) -> Arc<RedbStore> {
    let options = Options { cache_bytes: 1 << 20, quick_repair: false, journal: None };
    let store = RedbStore::open(&Location::new(&dir.join("x.db")), Schema::CURRENT, options).unwrap();
    let (base, mut writes) = (MemoryBase::default(), Writes::new());
    let mut txn = Txn::new(&base, None, &mut writes);
    for row in 0..rows {
        txn.put(schema::COUNT, &row.to_be_bytes(), b"value");
    }
    store.commit(&writes).unwrap();
    Arc::new(store)
}

fn begin(capture: &mut Capture, store: &Arc<RedbStore>) {
    capture.built().note(Origin::Relay(Box::new(Config::new("ws://127.0.0.1:1"))));
    capture.begin(&store.reader());
}

fn records(path: &Path) -> Vec<Record> {
    let bytes = std::fs::read(path).unwrap();
    Records::new(&bytes).unwrap().map(|(_, record)| record.unwrap()).collect()
}

#[test]
fn the_store_is_in_it_whole_and_the_file_is_private_and_says_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let (path, log) = (dir.path().join("x.capture"), Log::kept());
    let mut capture = Capture::open(CaptureOptions::new(&path), &schema::TABLES, &log).unwrap();
    begin(&mut capture, &store(dir.path(), 2_500));
    assert_eq!(mode(&path), 0o600);
    assert!(std::fs::read(&path).unwrap().starts_with(b"messaging capture 1: SECRET"));
    assert_eq!(log.names(), ["capture.on"]);
    let keys: Vec<Vec<u8>> = records(&path)
        .into_iter()
        .filter_map(|record| match record {
            Record::Rows { table, rows } if table == schema::COUNT.0 => Some(rows),
            _ => None,
        })
        .flatten()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(keys, (0..2_500_u32).map(|key| key.to_be_bytes().to_vec()).collect::<Vec<_>>());
}

#[test]
fn a_file_that_is_full_is_kept_as_the_one_before_and_a_new_machine_begins_another() {
    let dir = tempfile::tempdir().unwrap();
    let (path, log) = (dir.path().join("x.capture"), Log::kept());
    let store = store(dir.path(), 1_000);
    let options = CaptureOptions { path: path.clone(), bytes: 200 };
    let mut capture = Capture::open(options.clone(), &schema::TABLES, &log).unwrap();
    begin(&mut capture, &store);
    assert!(
        !capture.full(),
        "the rows it begins with do not count, or a large store would begin anew for ever"
    );
    while !capture.full() {
        capture.done(true);
    }
    begin(&mut capture, &store);
    assert!(matches!(records(&path)[..], [Record::Begin { .. }, Record::Rows { .. }, Record::Rows { .. }]));
    let before = records(&dir.path().join("x.capture.1"));
    assert!(before.len() > 3 && matches!(before.last(), Some(Record::Done { durable: true })));
    assert_eq!(mode(&dir.path().join("x.capture.1")), 0o600);
    // Another process does not go on in a file past its size.
    drop(capture);
    let mut capture = Capture::open(options, &schema::TABLES, &log).unwrap();
    begin(&mut capture, &store);
    assert_eq!(records(&path).len(), 3);
}

#[test]
fn an_earlier_process_s_file_goes_on_after_its_torn_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.capture");
    let store = store(dir.path(), 1);
    for round in 1..=2_usize {
        let mut capture = Capture::open(CaptureOptions::new(&path), &schema::TABLES, &Log::kept()).unwrap();
        begin(&mut capture, &store);
        capture.done(true);
        drop(capture);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
        let read = Records::new(&bytes).unwrap().filter(|(_, record)| record.is_ok()).count();
        assert_eq!(read, 4 * round - (round - 1), "the torn record alone is lost");
    }
}

#[test]
fn what_is_no_private_capture_of_ours_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let open = |path: &Path| Capture::open(CaptureOptions::new(path), &schema::TABLES, &Log::kept());
    std::fs::write(&path, "a letter").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(open(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
    assert_eq!(std::fs::read(&path).unwrap(), b"a letter");
    std::fs::write(&path, TITLE).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o622)).unwrap();
    assert_eq!(open(&path).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(open(&link).is_err());
    assert!(open(dir.path()).is_err());
}

#[test]
fn a_capture_that_cannot_be_written_ends_and_says_so_once() {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::kept();
    let options = CaptureOptions::new(dir.path().join("x.capture"));
    let mut capture = Capture::open(options, &schema::TABLES, &log).unwrap();
    capture.file = Some(File::open(dir.path().join("x.capture")).unwrap());
    capture.done(true);
    capture.done(true);
    assert_eq!(log.names(), ["capture.on", "capture.failed"]);
    assert!(!capture.full());
}
