//! A page of the store that is damaged for good: whoever needs it is told so, and everybody else is served.

use super::client::{Client, Got, get};
use super::*;
use crate::store::{Options, RedbStore, Schema};
use messaging_machines::Writes;
use messaging_machines::store::MemoryBase;
use std::os::unix::fs::FileExt;

const ROWS: u64 = 1_200;
const PAGE: usize = 4_096;

/// A relay over a store in which the page of this row is none: since it was opened, as redb walks every page then in a
/// build with debug assertions. Its cache does not hold them all.
fn damaged(row: u64) -> World {
    let world = world(|options| {
        let store_options = Options { cache_bytes: 1 << 20, quick_repair: false, journal: None };
        let store = RedbStore::open(&Location::new(&options.db), Schema::CURRENT, store_options).unwrap();
        let (base, mut writes) = (MemoryBase::default(), Writes::new());
        let mut txn = Txn::new(&base, None, &mut writes);
        for number in 0..ROWS {
            let value = format!("{:3000}", format!("row {number} of them"));
            txn.put(T, &number.to_be_bytes(), value.as_bytes());
        }
        store.commit(&writes).unwrap();
        store.close().unwrap();
    });
    let db = world._dir.path().join("relay.db");
    let bytes = std::fs::read(&db).unwrap();
    let text = format!("row {row} of them");
    let at = bytes.windows(text.len()).enumerate().filter(|(_, window)| *window == text.as_bytes());
    let file = std::fs::OpenOptions::new().write(true).open(&db).unwrap();
    for (at, _) in at {
        // Neither a leaf nor a branch of the tree.
        file.write_all_at(&[9], (at / PAGE * PAGE) as u64).unwrap();
    }
    world
}

fn read(client: &mut Client, row: u64) -> String {
    client.say(&format!(r#"{{"t":"roster.sync","req":"r{row}","after":{row}}}"#));
    client.text()
}

fn events(world: &World, name: &str) -> usize {
    world.log.names().iter().filter(|event| *event == name).count()
}

#[test]
fn a_damaged_page_is_internal_for_who_needs_it_and_nothing_for_the_others() {
    let world = damaged(500);
    let mut asks = world.authenticated();
    let mut other = world.authenticated();
    assert_eq!(read(&mut asks, 1), r#"{"code":"not_found","id":"r1","t":"nack"}"#);
    for round in 0..10 {
        assert_eq!(read(&mut asks, 500), r#"{"code":"internal","id":"r500","t":"nack"}"#);
        // The next machine knows both.
        assert_eq!(
            (asks.text(), other.text()),
            (r#"{"n":100,"t":"ping"}"#.to_owned(), r#"{"n":100,"t":"ping"}"#.to_owned())
        );
        other.ping(STORE + round);
        assert_eq!(read(&mut other, 300), r#"{"code":"not_found","id":"r300","t":"nack"}"#);
        assert_eq!(get(world.relay.address, "/readyz").0, 200);
    }
    world.client();
    assert_eq!(
        (events(&world, "relay.internal"), events(&world, "store.failing")),
        (1, 0),
        "{:?}",
        world.log.lines()
    );
    world.relay.stop().unwrap();
}

#[test]
fn damage_that_is_asked_for_without_end_is_a_failing_store() {
    let world = damaged(500);
    let mut asks = world.authenticated();
    for _ in 0..100 {
        let mut answer = read(&mut asks, 500);
        while answer.contains("ping") {
            answer = asks.text();
        }
        assert_eq!(answer, r#"{"code":"internal","id":"r500","t":"nack"}"#);
    }
    assert!(events(&world, "store.failing") > 0);
    world.relay.stop().unwrap();
}

/// The relay reads for each connection that it takes over; one whose part of the store is damaged is told to come back.
#[test]
fn a_connection_that_cannot_be_taken_over_is_closed() {
    let world = damaged(50);
    let (mut asks, mut other) = (world.authenticated(), world.authenticated());
    assert_eq!(read(&mut asks, 50), r#"{"code":"internal","id":"r50","t":"nack"}"#);
    assert_eq!((asks.close(), other.close()), (Got::Close(1013), Got::Close(1013)));
    world.authenticated().ping(STORE);
    assert_eq!((get(world.relay.address, "/readyz").0, events(&world, "store.failing")), (200, 0));
    world.relay.stop().unwrap();
}
