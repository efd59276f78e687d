//! Slow readers, marks and stopping.

use super::client::{Client, Got};
use super::*;
use std::time::{Duration, Instant};

#[test]
fn a_socket_that_falls_behind_is_dropped_alone() {
    let world = world(|options| options.limits.socket_bytes = 8 << 20);
    let mut other = world.authenticated();
    let mut slow = world.authenticated();
    slow.say(r#"{"t":"ping","n":2}"#);
    let start = Instant::now();
    while !world.log.names().iter().any(|name| name == "conn.slow") {
        assert!(start.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(
        world.log.lines().iter().find(|line| line["event"] == "conn.slow").unwrap()["reason"],
        "socket"
    );
    other.ping(9);
    assert_eq!(slow.close(), Got::End);
    world.relay.stop().unwrap();
}

#[test]
fn the_budget_of_all_sockets_drops_the_furthest_behind() {
    let world = world(|options| {
        options.limits.socket_bytes = 64 << 20;
        options.limits.buffered_bytes = 30 << 20;
    });
    let mut other = world.authenticated();
    let mut slow = world.authenticated();
    slow.say(r#"{"t":"ping","n":2}"#);
    assert_eq!(slow.close(), Got::End);
    assert_eq!(
        world.log.lines().iter().find(|line| line["event"] == "conn.slow").unwrap()["reason"],
        "budget"
    );
    other.ping(9);
    world.relay.stop().unwrap();
}

#[test]
fn a_socket_that_reads_gets_everything() {
    let world = world(|options| options.limits.socket_bytes = 60 << 20);
    let mut client = world.authenticated();
    client.say(r#"{"t":"ping","n":2}"#);
    for _ in 0..40 {
        assert_eq!(client.text().len(), (1 << 20) + 31);
    }
    assert_eq!(client.text(), r#"{"n":2,"t":"pong"}"#);
    world.relay.stop().unwrap();
}

#[test]
fn a_mark_is_reported_once_what_was_before_it_left() {
    let world = world(|options| options.limits.socket_bytes = 60 << 20);
    let mut client = world.authenticated();
    client.say(r#"{"t":"ping","n":2}"#);
    client.say(r#"{"t":"ping","n":3}"#);
    std::thread::sleep(Duration::from_millis(200));
    for _ in 0..41 {
        client.text();
    }
    let mut last = [client.text(), client.text()];
    last.sort();
    assert_eq!(last, [r#"{"n":3,"t":"ping"}"#, r#"{"n":3,"t":"pong"}"#]);
    world.relay.stop().unwrap();
}

#[test]
fn stopping_closes_every_socket_and_takes_no_new_one() {
    let world = world(|_| {});
    let mut clients: Vec<Client> = (0..20).map(|_| world.authenticated()).collect();
    let at = world.relay.address;
    let start = Instant::now();
    let stop = std::thread::spawn(move || world.relay.stop());
    for client in &mut clients {
        assert_eq!(client.close(), Got::Close(1001));
        client.send(&Client::frame(8, true, &1001u16.to_be_bytes()));
    }
    stop.join().unwrap().unwrap();
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    assert!(std::net::TcpStream::connect(at).is_err());
}

#[test]
fn stopping_does_not_wait_for_ever_for_a_dead_socket() {
    let world = world(|options| options.limits.socket_bytes = 60 << 20);
    let mut stuck = world.authenticated();
    stuck.say(r#"{"t":"ping","n":2}"#);
    std::thread::sleep(Duration::from_millis(200));
    let start = Instant::now();
    world.relay.stop().unwrap();
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
}

#[test]
fn a_connection_that_ends_is_forgotten() {
    let world = world(|options| options.limits.pre_auth_connections = 5);
    for round in 0..30 {
        let mut client = world.client();
        if round % 2 == 0 {
            client.send(&Client::frame(8, true, &1000u16.to_be_bytes()));
            assert_eq!(client.close(), Got::Close(1000));
        }
        drop(client);
        std::thread::sleep(Duration::from_millis(10));
    }
    world.relay.stop().unwrap();
}

/// Turns go by the bytes of messages: whoever says large ones has few turns, however fast they come.
#[test]
fn large_messages_leave_others_their_turn() {
    const FLOODERS: usize = 3;
    const LARGE: usize = 6;
    let world = world(|_| {});
    // The dearest text to read: a third of a million values.
    let large = format!(r#"{{"t":"ping","n":5,"x":[{}[]]}}"#, "[],".repeat(340_000));
    let large = Client::frame(1, true, large.as_bytes());
    let done = std::sync::atomic::AtomicUsize::new(0);
    let flooders: Vec<Client> = (0..FLOODERS).map(|_| world.authenticated()).collect();
    let mut honest = world.authenticated();
    let mut turns = 0;
    std::thread::scope(|scope| {
        for mut flooder in flooders {
            let (large, done) = (&large, &done);
            scope.spawn(move || {
                let mut sending = Client(flooder.0.try_clone().unwrap());
                scope.spawn(move || (0..LARGE).for_each(|_| sending.send(large)));
                flooder.0.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
                for _ in 0..LARGE {
                    assert_eq!(flooder.text(), r#"{"n":5,"t":"pong"}"#);
                    done.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                }
            });
        }
        honest.0.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        while done.load(std::sync::atomic::Ordering::SeqCst) < FLOODERS * LARGE {
            honest.ping(9);
            turns += 1;
        }
    });
    // Each turn waits for one message of each other at most, and two workers share them.
    assert!(turns >= LARGE, "{turns} turns beside {} messages", FLOODERS * LARGE);
    world.relay.stop().unwrap();
}

#[test]
fn websocket_pings_and_pongs_are_signs_of_life() {
    for opcode in [9, 10] {
        let world = world(|_| {});
        let mut client = world.authenticated();
        // Many at once are told of once.
        (0..50).for_each(|_| client.send(&Client::frame(opcode, true, b"x")));
        client.say(r#"{"t":"ping","n":4}"#);
        let told = loop {
            if let Got::Text(text) = client.got() {
                break text;
            }
        };
        assert_eq!(told, r#"{"n":1,"t":"ping"}"#);
        world.relay.stop().unwrap();
    }
}

/// What is refused was parsed and verified for nothing, so a machine over its budget is read no faster than that pays.
#[test]
fn a_machine_that_was_over_its_budget_is_read_at_its_pace() {
    let world = world(|_| {});
    let mut client = world.authenticated();
    client.say(r#"{"t":"roster.sync","req":"r1","after":1099511627776}"#);
    assert!(client.text().contains("rate_limited"));
    let many: Vec<u8> =
        (0..11).flat_map(|_| Client::frame(1, true, Client::padded_ping(200).as_bytes())).collect();
    let start = Instant::now();
    client.send(&many);
    // In its order, although small ones are not held up.
    client.say(r#"{"t":"ping","n":6}"#);
    for n in [5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6] {
        assert_eq!(client.text(), format!(r#"{{"n":{n},"t":"pong"}}"#));
    }
    assert!(start.elapsed() >= Duration::from_millis(900), "600 a minute: {:?}", start.elapsed());
    // Another connection is not.
    world.authenticated().ping(9);
    world.relay.stop().unwrap();
}
