//! Lines, their limits, and a store that fails under open connections.

use super::*;
use crate::store::fault::Failure;
use messaging_proto::Code;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

fn raw(world: &World) -> UnixStream {
    let stream = UnixStream::connect(world.home.admin_socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(15))).unwrap();
    stream
}

fn line(stream: &mut UnixStream) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap()
}

#[test]
fn lines_in_pieces_and_many_in_one() {
    let dir = tempfile::tempdir().unwrap();
    let world = start(&home(dir.path()));
    let mut stream = raw(&world);
    assert!(line(&mut stream).contains(r#""method":"hello""#));
    for byte in b"{\"id\":1,\"method\":\"echo\",\"params\":{}}\r\n" {
        stream.write_all(&[*byte]).unwrap();
    }
    assert!(line(&mut stream).contains(r#""id":1"#));
    let many: String = (2..300).map(|id| format!("{{\"id\":{id},\"method\":\"echo\"}}\n")).collect();
    stream.write_all(many.as_bytes()).unwrap();
    for id in 2..300 {
        assert!(line(&mut stream).contains(&format!("\"id\":{id},")), "in order");
    }
    world.stop();
}

#[test]
fn the_limit_of_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let world = start(&home(dir.path()));
    let request = |bytes: usize| {
        let line = r#"{"id":1,"method":"echo","params":{"x":""}}"#;
        line.replace(r#""""#, &format!("\"{}\"", "x".repeat(bytes - line.len())))
    };
    for (bytes, fits) in [(1_048_575, true), (1_048_576, true), (1_048_577, false), (3_000_000, false)] {
        let mut stream = raw(&world);
        line(&mut stream);
        let mut writer = stream.try_clone().unwrap();
        let text = request(bytes) + "\n";
        let write = std::thread::spawn(move || {
            // The daemon may hang up in the middle.
            let _ = writer.write_all(text.as_bytes());
        });
        let reply = line(&mut stream);
        assert_eq!(reply.contains("too_large"), !fits, "{bytes}");
        if !fits {
            let mut rest = Vec::new();
            // The end may be a reset.
            let _ = stream.read_to_end(&mut rest);
            assert!(rest.is_empty(), "closed, and nothing behind it was heard");
        }
        write.join().unwrap();
    }
    world.stop();
}

#[test]
fn a_client_that_does_not_read_is_dropped_alone() {
    let dir = tempfile::tempdir().unwrap();
    let world = start(&home(dir.path()));
    let mut slow = raw(&world);
    line(&mut slow);
    let client = world.client();
    client.call("flood", json!({})).unwrap();
    let start = Instant::now();
    while !world.log.names().contains(&"ipc.slow".to_owned()) {
        assert!(start.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(world.client().call("echo", json!({"a": 1})).unwrap(), json!({"a": 1}));
    world.stop();
}

/// Many that do not read, each within its own limit: together they do not fill the memory.
#[test]
fn clients_that_do_not_read_are_bounded_together() {
    let dir = tempfile::tempdir().unwrap();
    let world = start(&home(dir.path()));
    let mut slow: Vec<_> = (0..10).map(|_| raw(&world)).collect();
    for stream in &mut slow {
        line(stream);
    }
    world.client().call("hoard", json!({})).unwrap();
    let whole = slow.into_iter().filter_map(|mut stream| {
        let mut bytes = vec![0; 24 * ((1 << 20) + 1)];
        stream.read_exact(&mut bytes).ok()
    });
    let whole = whole.count();
    // 240 MiB waited for them, and 128 may; what the sockets took does not count.
    assert!((4..=7).contains(&whole), "{whole}");
    assert!(world.log.names().contains(&"ipc.slow".to_owned()));
    assert_eq!(world.client().call("echo", json!({"a": 1})).unwrap(), json!({"a": 1}));
    world.stop();
}

#[test]
fn a_full_disk_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let world = start(&home(dir.path()));
    world.faults.set_full(true);
    world.client().call("put", json!({"key": "a"})).unwrap_err();
    let start = Instant::now();
    loop {
        let error = world.client().call("rows", json!({})).unwrap_err();
        assert_eq!(error.code, Code::Internal);
        if error.to_string().contains("the disk of the home is full") {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{error}");
    }
    world.faults.set_full(false);
    while world.client().call("rows", json!({})).is_err() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(50));
    }
    world.stop();
}

#[test]
fn a_stop_over_the_api_answers_first() {
    let dir = tempfile::tempdir().unwrap();
    let world = start(&home(dir.path()));
    let client = world.client();
    assert_eq!(client.call("stop", json!({})).unwrap(), json!({"ok": true}));
    let home = world.home.clone();
    world.daemon.finish().unwrap();
    assert!(client.wait_closed(Duration::from_secs(5)));
    assert!(!home.admin_socket().exists() && home.locked_by().is_none());
}

#[test]
fn a_failed_sync_asks_clients_to_try_again() {
    let dir = tempfile::tempdir().unwrap();
    let world = start(&home(dir.path()));
    let client = world.client();
    client.call("put", json!({"key": "a"})).unwrap();
    world.faults.fail_sync(1, Failure::Lost);
    let error = client.call("put", json!({"key": "b"})).unwrap_err();
    assert_eq!((error.code, error.retry_after_ms), (Code::Internal, Some(1_000)));
    assert!(client.wait_closed(Duration::from_secs(5)), "what it registered is gone");
    // Whoever comes meanwhile hears the same.
    let early = world.client();
    assert_eq!(early.call("rows", json!({})).unwrap_err().code, Code::Internal);
    assert!(early.wait_closed(Duration::from_secs(10)));
    let start = Instant::now();
    let rows = loop {
        if let Ok(rows) = world.client().call("rows", json!({})) {
            break rows;
        }
        assert!(start.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(rows, 1, "nothing of the failed batch");
    world.client().call("put", json!({"key": "b"})).unwrap();
    world.stop();
}

#[test]
fn a_rebuilt_machine_has_the_newest_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let world = start(&home(dir.path()));
    let client = world.client();
    client.call("save", json!({"text": r#"{"person":"bob"}"#})).unwrap();
    assert_eq!(event(&client), json!({"saved": true}));
    client.call("save", json!({"text": r#"{"person":7}"#})).unwrap();
    assert_eq!(event(&client), json!({"saved": false}));
    world.faults.fail_sync(1, Failure::Phantom);
    client.call("put", json!({"key": "b"})).unwrap_err();
    let start = Instant::now();
    while world.client().call("person", json!({})).ok() != Some(json!("bob")) {
        assert!(start.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(50));
    }
    world.stop();
}
