//! A store that fails under open connections (`§7`, "Store failures").

use super::client::{Client, Got, get};
use super::*;
use crate::store::fault::Failure;
use std::time::{Duration, Instant};

fn wait_ready(world: &World) {
    let start = Instant::now();
    while get(world.relay.address, "/readyz").0 != 200 {
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", world.log.lines());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_failed_sync_refuses_its_frames_and_keeps_the_sockets() {
    for failure in [Failure::Phantom, Failure::Lost] {
        let world = world(|_| {});
        let mut idle = world.authenticated();
        let mut client = world.authenticated();
        let mut stranger = world.client();
        client.ping(STORE);
        world.faults.fail_sync(1, failure);
        client.say(r#"{"t":"roster.sync","req":"r1","after":-1}"#);
        assert_eq!(client.text(), r#"{"code":"internal","id":"r1","t":"nack"}"#, "{failure:?}");
        assert_eq!(stranger.close(), Got::Close(1013), "before hello there is nothing to keep");
        assert_eq!(get(world.relay.address, "/healthz").0, 200);
        let (code, answer) = get(world.relay.address, "/readyz");
        assert!(code == 503 && answer.ends_with(r#"{"ok":false,"why":["store_failing"]}"#), "{answer}");
        // Meanwhile a new machine knows both connections, and what is durable.
        let rows = 1 + u8::from(failure == Failure::Phantom);
        assert_eq!(idle.text(), format!(r#"{{"n":{rows},"t":"ping"}}"#));
        assert_eq!(client.text(), format!(r#"{{"n":{rows},"t":"ping"}}"#));
        // What only reads is answered, of somebody new as well; and what would write is `internal`.
        let mut late = world.authenticated();
        late.ping(9);
        idle.ping(9);
        client.say(r#"{"t":"roster.sync","req":"r2","after":-1}"#);
        assert_eq!(client.text(), r#"{"code":"internal","id":"r2","t":"nack"}"#);
        assert_eq!(get(world.relay.address, "/readyz").0, 503, "still");
        wait_ready(&world);
        // Every socket stays, and the machine too.
        late.ping(STORE + 2);
        client.say(r#"{"t":"roster.sync","req":"r3","after":-1}"#);
        assert_eq!(client.text(), r#"{"code":"not_found","id":"r3","t":"nack"}"#);
        idle.ping(STORE + 1);
        world.client();
        let names = world.log.names();
        assert!(names.contains(&"store.failing".to_owned()) && names.contains(&"store.recovered".to_owned()));
        world.relay.stop().unwrap();
    }
}

#[test]
fn a_full_disk_is_no_crash_loop() {
    let world = world(|_| {});
    let mut client = world.authenticated();
    world.faults.set_full(true);
    client.say(r#"{"t":"roster.sync","req":"r1","after":-1}"#);
    assert_eq!(client.text(), r#"{"code":"internal","id":"r1","t":"nack"}"#);
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(get(world.relay.address, "/readyz").0, 503);
    client.say(r#"{"t":"ping","n":9}"#);
    while client.text() != r#"{"n":9,"t":"pong"}"# {}
    world.faults.set_full(false);
    wait_ready(&world);
    // Told of each new machine: the store may have been open to readers, or not.
    client.say(r#"{"t":"ping","n":1000}"#);
    while client.text() != r#"{"n":1000,"t":"pong"}"# {}
    world.relay.stop().unwrap();
}

/// A store that was moved away is waited for: an empty one in its place would be another relay.
#[test]
fn a_store_that_is_gone_is_not_made_anew() {
    let world = world(|options| options.metrics = Some("127.0.0.1:0".to_owned()));
    let mut client = world.authenticated();
    let mut noisy = world.authenticated();
    client.ping(STORE);
    let (db, away) = (world._dir.path().join("relay.db"), world._dir.path().join("away"));
    std::fs::rename(&db, &away).unwrap();
    world.faults.fail_sync(1, Failure::Lost);
    client.say(r#"{"t":"roster.sync","req":"r1","after":-1}"#);
    assert_eq!(client.text(), r#"{"code":"internal","id":"r1","t":"nack"}"#);
    let start = Instant::now();
    while !get(world.relay.address, "/readyz").1.contains("store_closed") {
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", world.log.lines());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!db.exists());
    // No machine is there, and what is no frame is told so all the same, and counted.
    noisy.say("{");
    assert_eq!(noisy.text(), r#"{"code":"invalid_request","t":"error"}"#);
    assert_eq!(noisy.close(), Got::Close(4002));
    let (_, page) = get(world.relay.metrics.unwrap(), "/metrics");
    assert!(page.contains("relay_frames_in_total{t=\"other\"} 1\n"), "{page}");
    std::fs::rename(&away, &db).unwrap();
    wait_ready(&world);
    assert_eq!(client.text(), r#"{"n":1,"t":"ping"}"#, "what was stored is there");
    world.relay.stop().unwrap();
}

#[test]
fn a_failing_relay_stops() {
    let world = world(|_| {});
    let mut client = world.authenticated();
    world.faults.set_full(true);
    client.say(r#"{"t":"roster.sync","req":"r1","after":-1}"#);
    client.text();
    let start = Instant::now();
    world.relay.stop().unwrap();
    assert!(start.elapsed() < Duration::from_secs(8));
    assert_eq!(client.close(), Got::Close(1001));
}

#[test]
fn a_full_disk_does_not_stop_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let options = RelayOptions::new("127.0.0.1:0", dir.path().join("relay.db"));
    // A new store, and then one that is there.
    for _ in 0..2 {
        let faults = Faults::default();
        faults.set_full(true);
        let log = Log::kept();
        let location = Location::with_faults(&options.db, faults.clone());
        let relay = start_at(&options, location, &log, Box::new(|| {}), |_| Fake::default()).unwrap();
        let start = Instant::now();
        // An old store may open without a write, and fails at its first.
        let mut client = Client::connect(relay.address);
        while get(relay.address, "/readyz").0 != 503 {
            if let Ok(client) = &mut client {
                client.say(r#"{"t":"ping","n":1}"#);
                client.say(r#"{"t":"ping","n":1001}"#);
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{:?}", log.lines());
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(get(relay.address, "/healthz").0, 200);
        let (_, answer) = get(relay.address, "/readyz");
        assert!(answer.contains("store_failing"), "{answer}");
        if answer.contains("store_closed") {
            assert_eq!(Client::connect(relay.address).err(), Some(503), "there is nothing to read");
        }
        faults.set_full(false);
        while get(relay.address, "/readyz").0 != 200 {
            assert!(start.elapsed() < Duration::from_secs(40), "{:?}", log.lines());
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut client = Client::connect(relay.address).unwrap();
        assert!(client.text().contains("challenge"));
        client.ping(STORE);
        assert!(log.names().contains(&"store.recovered".to_owned()));
        relay.stop().unwrap();
    }
}
