//! A capture reads back, also torn at any byte and damaged in the middle.

use super::*;
use crate::store::{MemoryBase, Table, Txn};

fn records() -> Vec<Record> {
    let step = Step::new(Mono(5), Wall(7), [9; 32]);
    let (base, mut writes) = (MemoryBase::default(), Writes::new());
    Txn::new(&base, None, &mut writes).put(Table("t"), b"key", b"value");
    let (rows, digest) = digest(&writes);
    vec![
        Record::Begin {
            release: "1".to_owned(),
            origin: Origin::Relay(Box::new(relay::Config::new("ws://127.0.0.1:1"))),
        },
        Record::Rows { table: "t".to_owned(), rows: vec![(vec![], MARKER.to_vec()), (vec![1], vec![2, 3])] },
        event(&step, &"words"),
        effects(true, &["a", "b"]),
        Record::Batch { rows, digest },
        Record::Done { durable: true },
        Record::Lost,
        Record::End,
    ]
}

fn file(records: &[Record]) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(TITLE.as_bytes().to_vec());
    for record in records {
        write(record, &mut bytes);
    }
    bytes
}

fn shown(record: &Record) -> String {
    format!("{record:?}")
}

#[test]
fn every_record_reads_back() {
    let (records, bytes) = (records(), file(&records()));
    let read: Vec<Record> = Reader::new(&bytes).unwrap().map(|(_, record)| record.unwrap()).collect();
    assert_eq!(read.iter().map(shown).collect::<Vec<_>>(), records.iter().map(shown).collect::<Vec<_>>());
    assert_eq!(Reader::new(b"{}").unwrap_err(), NoCapture);
}

#[test]
fn a_file_cut_at_any_byte_gives_every_whole_record_and_says_what_was_torn() {
    let bytes = file(&records());
    let starts: Vec<usize> = Reader::new(&bytes).unwrap().map(|(at, _)| at).collect();
    for end in TITLE.len()..bytes.len() {
        let read: Vec<_> = Reader::new(&bytes[..end]).unwrap().collect();
        let whole = read.iter().filter(|(_, record)| record.is_ok()).count();
        let ends = starts.iter().skip(1).filter(|start| **start <= end).count();
        assert_eq!(whole, ends, "cut at {end}");
        let torn = read.iter().find_map(|(_, record)| record.as_ref().err());
        match starts.contains(&end) {
            true => assert_eq!(torn, None),
            false => assert!(torn.is_some_and(|damage| damage.last), "cut at {end}"),
        }
    }
}

#[test]
fn what_follows_damage_is_found_again() {
    let whole = file(&records());
    let starts: Vec<usize> = Reader::new(&whole).unwrap().map(|(at, _)| at).collect();
    for place in starts[2]..starts[3] {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x40;
        let read: Vec<_> = Reader::new(&bytes).unwrap().map(|(_, record)| record).collect();
        let damage = read[2].as_ref().unwrap_err();
        assert_eq!((damage.at, damage.bytes, damage.last), (starts[2], starts[3] - starts[2], false));
        assert_eq!(read.iter().filter(|record| record.is_ok()).count(), records().len() - 1);
    }
}
