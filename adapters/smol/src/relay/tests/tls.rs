//! The relay's own TLS: the same connections, encrypted, and a certificate that is replaced while they last.

#[path = "../../../testdata/tls/client.rs"]
mod client_side;

use super::*;
use crate::relay::TlsFiles;
use async_tungstenite::tungstenite::client::IntoClientRequest;
use async_tungstenite::tungstenite::{Message, WebSocket, client};
use client_side::{Stream, certificate, file, shown};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Files of the certificate `name`, which the test may replace.
struct Files(tempfile::TempDir);

impl Files {
    fn new(name: &str) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.put(name);
        files
    }

    fn options(&self) -> TlsFiles {
        TlsFiles { cert: self.0.path().join("cert.pem"), key: self.0.path().join("key.pem") }
    }

    fn put(&self, name: &str) {
        std::fs::copy(file(&format!("{name}.crt")), self.options().cert).unwrap();
        std::fs::copy(file(&format!("{name}.key")), self.options().key).unwrap();
    }
}

/// A client that trusts the test authority, past the TLS handshake.
fn dial(world: &World) -> std::io::Result<Stream> {
    client_side::dial(world.relay.address, "localhost")
}

fn connect(world: &World) -> WebSocket<Stream> {
    let mut request = "wss://localhost/v1/connect".into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", "messaging.relay.v1".parse().unwrap());
    client(request, dial(world).unwrap()).unwrap().0
}

fn text(socket: &mut WebSocket<Stream>) -> String {
    loop {
        match socket.read().unwrap() {
            Message::Text(text) => return text.as_str().to_owned(),
            Message::Close(frame) => return format!("close {}", u16::from(frame.unwrap().code)),
            _ => {}
        }
    }
}

fn ping(socket: &mut WebSocket<Stream>, n: u64) {
    socket.send(Message::text(format!(r#"{{"t":"ping","n":{n}}}"#))).unwrap();
}

fn tls_world(files: &Files) -> World {
    world(|options| {
        options.tls = Some(files.options());
        options.limits.socket_bytes = 60 << 20;
    })
}

#[test]
fn frames_of_every_size_pass_both_ways() {
    let files = Files::new("one");
    let world = tls_world(&files);
    let mut socket = connect(&world);
    assert!(text(&mut socket).contains("challenge"));
    ping(&mut socket, HELLO);
    assert_eq!(text(&mut socket), r#"{"n":1,"t":"pong"}"#);
    for bytes in [100, 16_384, 16_385, 65_536, 1_048_576] {
        socket.send(Message::text(Client::padded_ping(bytes))).unwrap();
        assert_eq!(text(&mut socket), r#"{"n":5,"t":"pong"}"#, "{bytes}");
    }
    // 40 MiB at once, to a client that reads late.
    ping(&mut socket, FLOOD);
    std::thread::sleep(Duration::from_millis(300));
    for _ in 0..40 {
        assert_eq!(text(&mut socket).len(), (1 << 20) + 31);
    }
    assert_eq!(text(&mut socket), r#"{"n":2,"t":"pong"}"#);
    // Many small frames in one write.
    for n in 100..600 {
        socket.write(Message::text(format!(r#"{{"t":"ping","n":{n}}}"#))).unwrap();
    }
    socket.flush().unwrap();
    for n in 100..600 {
        assert_eq!(text(&mut socket), format!(r#"{{"n":{n},"t":"pong"}}"#));
    }
    let stop = std::thread::spawn(move || world.relay.stop());
    assert_eq!(text(&mut socket), "close 1001");
    drop(socket);
    stop.join().unwrap().unwrap();
}

#[test]
fn plain_http_is_served_over_tls_and_plain_text_is_not() {
    let files = Files::new("one");
    let world = tls_world(&files);
    let mut stream = dial(&world).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n").unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(r#"{"ok":true}"#), "{answer}");
    let mut plain = TcpStream::connect(world.relay.address).unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP"), "{answer:?}");
    world.relay.stop().unwrap();
}

#[test]
fn a_handshake_that_never_ends_is_given_up() {
    let files = Files::new("one");
    let world = tls_world(&files);
    let start = Instant::now();
    let mut silent = TcpStream::connect(world.relay.address).unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    silent.write_all(&[22, 3, 1]).unwrap();
    let _ = silent.read_to_end(&mut Vec::new());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    world.relay.stop().unwrap();
}

#[test]
fn a_new_certificate_is_for_new_connections_and_a_bad_one_for_none() {
    let files = Files::new("one");
    let world = tls_world(&files);
    let mut before = connect(&world);
    assert!(text(&mut before).contains("challenge"));
    assert_eq!(shown(before.get_ref()), certificate("one.crt"));
    files.put("two");
    assert_eq!(shown(&dial(&world).unwrap()), certificate("one.crt"), "not before it is told to");
    world.relay.reload();
    assert_eq!(shown(&dial(&world).unwrap()), certificate("two.crt"));
    // The connection from before goes on.
    ping(&mut before, 7);
    assert_eq!(text(&mut before), r#"{"n":7,"t":"pong"}"#);
    // Half-written files, another's key, no files at all: each is told, and nothing changes.
    let options = files.options();
    let bad: [(&str, &dyn Fn()); 4] = [
        ("the private key is not the certificate's", &|| {
            std::fs::copy(file("one.key"), &options.key).unwrap();
        }),
        ("the private key cannot be read", &|| std::fs::write(&options.key, "-----BEGIN PRIV").unwrap()),
        ("the certificate chain cannot be read", &|| std::fs::write(&options.cert, "nothing").unwrap()),
        ("the certificate chain cannot be read", &|| std::fs::remove_file(&options.cert).unwrap()),
    ];
    for (error, spoil) in bad {
        spoil();
        world.relay.reload();
        let line = world.log.lines().pop().unwrap();
        assert_eq!(
            (line["event"].as_str(), line["error"].as_str()),
            (Some("tls.reload_failed"), Some(error))
        );
        assert_eq!(shown(&dial(&world).unwrap()), certificate("two.crt"));
    }
    files.put("one");
    world.relay.reload();
    assert_eq!(shown(&dial(&world).unwrap()), certificate("one.crt"));
    assert_eq!(world.log.names().iter().filter(|name| *name == "tls.reloaded").count(), 2);
    world.relay.stop().unwrap();
}
