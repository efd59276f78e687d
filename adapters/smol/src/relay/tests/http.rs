//! The plain HTTP side.

use super::client::{Client, UPGRADE, get, request, status};
use super::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn answers_of_the_port() {
    let world = world(|_| {});
    let at = world.relay.address;
    let (code, answer) = get(at, "/healthz");
    assert!(
        code == 200 && answer.ends_with(r#"{"ok":true}"#) && answer.contains("application/json"),
        "{answer}"
    );
    let (code, answer) = get(at, "/readyz");
    assert!(code == 200 && answer.ends_with(r#"{"ok":true}"#) && answer.contains("no-store"), "{answer}");
    for path in ["/", "/metrics", "/v1/connect/", "/healthz/x", "/v2/connect"] {
        assert_eq!(get(at, path).0, 404, "{path}");
    }
    let (_, head) = request(at, "POST /healthz HTTP/1.1\r\nHost: relay\r\nContent-Length: 0\r\n");
    assert_eq!(status(&head), 404);
    world.relay.stop().unwrap();
}

#[test]
fn upgrades_that_are_none() {
    let world = world(|_| {});
    let at = world.relay.address;
    assert_eq!(get(at, "/v1/connect").0, 426);
    let without = |line: &str| status(&request(at, &UPGRADE.replace(line, "")).1);
    assert_eq!(without("Sec-WebSocket-Protocol: other, messaging.relay.v1\r\n"), 400);
    assert_eq!(without("Sec-WebSocket-Version: 13\r\n"), 426);
    assert_eq!(without("Upgrade: websocket\r\n"), 426);
    assert_eq!(without("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"), 400);
    let other = UPGRADE.replace("other, messaging.relay.v1", "messaging.relay.v2");
    assert_eq!(status(&request(at, &other).1), 400);
    // A query changes nothing.
    let query = UPGRADE.replace("/v1/connect", "/v1/connect?x=1");
    assert_eq!(status(&request(at, &query).1), 101);
    world.relay.stop().unwrap();
}

#[test]
fn a_frame_that_comes_with_the_upgrade_is_not_lost() {
    let world = world(|_| {});
    for _ in 0..50 {
        let mut stream = TcpStream::connect(world.relay.address).unwrap();
        let mut bytes = format!("{UPGRADE}\r\n").into_bytes();
        bytes.extend(Client::frame(1, true, br#"{"t":"ping","n":5}"#));
        stream.write_all(&bytes).unwrap();
        let mut answer = Vec::new();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        while !String::from_utf8_lossy(&answer).contains(r#"{"n":5,"t":"pong"}"#) {
            let mut chunk = [0; 1024];
            let read = stream.read(&mut chunk).unwrap();
            assert!(read > 0);
            answer.extend(&chunk[..read]);
        }
    }
    world.relay.stop().unwrap();
}

#[test]
fn slow_heads_are_given_up() {
    let world = world(|_| {});
    let start = Instant::now();
    let mut slow = TcpStream::connect(world.relay.address).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nX-Slow: ").unwrap();
    let mut byte = slow.try_clone().unwrap();
    let trickle = std::thread::spawn(move || {
        while byte.write_all(b"x").is_ok() && start.elapsed() < Duration::from_secs(15) {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let mut rest = Vec::new();
    // The end may be a reset.
    let _ = slow.read_to_end(&mut rest);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    drop(slow);
    trickle.join().unwrap();
    // A head that is too long is refused at once.
    let mut long = TcpStream::connect(world.relay.address).unwrap();
    let _ = long.write_all(format!("GET / HTTP/1.1\r\nX: {}\r\n", "x".repeat(100_000)).as_bytes());
    let mut answer = Vec::new();
    let _ = long.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("200"));
    world.relay.stop().unwrap();
}

#[test]
fn the_caps_before_hello() {
    let world = world(|options| {
        options.limits.pre_auth_connections = 3;
        options.limits.pre_auth_per_address = 2;
        options.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    });
    let at = world.relay.address;
    let from = |address: &str| Client::connect_with(at, &format!("X-Forwarded-For: 6.6.6.6, {address}\r\n"));
    let mut first = from("10.0.0.1").unwrap();
    assert!(first.text().contains(r#""relay":"10.0.0.1""#), "the client's address, not the proxy's");
    let _second = from("10.0.0.1").unwrap();
    assert_eq!(from("10.0.0.1").err(), Some(503), "per address");
    let _third = from("10.0.0.2").unwrap();
    assert_eq!(from("10.0.0.3").err(), Some(503), "in total");
    // `hello` gives the place back, and so does the end of a connection.
    first.ping(HELLO);
    let fourth = from("10.0.0.1").unwrap();
    assert_eq!(from("10.0.0.3").err(), Some(503));
    drop(fourth);
    let start = Instant::now();
    while from("10.0.0.3").is_err() {
        assert!(start.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(10));
    }
    let names = world.log.names();
    assert!(names.iter().any(|name| name == "conn.preauth_full"));
    world.relay.stop().unwrap();
}

#[test]
fn sockets_past_the_raw_cap_are_dropped() {
    let world = world(|options| {
        options.limits.pre_auth_connections = 1;
        options.limits.connections = 1;
    });
    let at = world.relay.address;
    let held: Vec<_> = (0..258).map(|_| TcpStream::connect(at).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(300));
    let mut over = TcpStream::connect(at).unwrap();
    over.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let _ = over.write_all(b"GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n");
    let mut answer = Vec::new();
    let _ = over.read_to_end(&mut answer);
    assert!(answer.is_empty(), "dropped before any HTTP is read");
    drop(held);
    let start = Instant::now();
    loop {
        let mut stream = TcpStream::connect(at).unwrap();
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        if !answer.is_empty() {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(10));
    }
    world.relay.stop().unwrap();
}

#[test]
fn the_metrics_page() {
    let world = world(|options| options.metrics = Some("127.0.0.1:0".to_owned()));
    let mut client = world.authenticated();
    client.ping(STORE);
    let at = world.relay.metrics.unwrap();
    let (code, page) = get(at, "/metrics");
    assert!(code == 200 && page.contains("text/plain; version=0.0.4; charset=utf-8"), "{page}");
    for line in [
        "# TYPE relay_commit_seconds histogram",
        "relay_build_info{version=",
        "relay_ready 1",
        "relay_unready{why=\"store_failing\"} 0",
        "relay_connections{state=\"auth\"} 1",
        "relay_frames_in_total{t=\"ping\"} 2",
        "relay_frames_out_total{t=\"pong\"} 2",
        "relay_connections_refused_total{reason=\"full\"} 0",
        "relay_queue_rows 0",
        "relay_queue_oldest_age_seconds 0.000000",
        "relay_commit_seconds_bucket{le=\"0.0005\"}",
        "relay_commit_seconds_bucket{le=\"+Inf\"} 1",
        "relay_commit_seconds_count 1",
        "relay_store_bytes{part=\"used\"}",
        "relay_event_loop_delay_seconds{quantile=\"0.99\"}",
        "process_open_fds ",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
    assert_eq!(get(at, "/healthz").0, 404);
    world.relay.stop().unwrap();
}
