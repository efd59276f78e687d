//! The link against a WebSocket server of a few lines.

use super::*;
use async_tungstenite::tungstenite::handshake::server::{Request, Response};
use async_tungstenite::tungstenite::protocol::CloseFrame;
use async_tungstenite::tungstenite::{Message, WebSocket, accept_hdr};
use std::net::{TcpListener, TcpStream};

/// A relay that accepts one connection and follows `script`.
fn relay(
    script: impl FnOnce(WebSocket<TcpStream>) + Send + 'static,
) -> (String, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ws://{}/v1/connect", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let stream = listener.accept().unwrap().0;
        // The shape is tungstenite's.
        #[expect(clippy::result_large_err)]
        let accept = |request: &Request, mut response: Response| {
            assert_eq!(request.uri().path(), "/v1/connect");
            let offered = request.headers()["sec-websocket-protocol"].clone();
            assert_eq!(offered, "messaging.relay.v1");
            response.headers_mut().insert("sec-websocket-protocol", offered);
            Ok(response)
        };
        script(accept_hdr(stream, accept).unwrap());
    });
    (url, thread)
}

fn dialled(world: &World, url: &str) -> Client {
    let client = world.client();
    client.call("dial", json!({"url": url})).unwrap();
    client
}

#[test]
fn frames_both_ways_and_a_close_with_its_code() {
    let dir = tempfile::tempdir().unwrap();
    let world = start(&home(dir.path()));
    let (url, relay) = relay(|mut socket| {
        socket.send(Message::text(r#"{"t":"ping","n":1}"#)).unwrap();
        assert_eq!(socket.read().unwrap(), Message::text("hello"));
        // A message of exactly the limit is taken.
        socket.send(Message::text(format!("\"{}\"", "x".repeat(1_048_574)))).unwrap();
        socket.close(Some(CloseFrame { code: 4003.into(), reason: "".into() })).unwrap();
        while socket.read().is_ok() {}
    });
    let client = dialled(&world, &url);
    assert_eq!(event(&client), json!({"link": "opened"}));
    assert_eq!(event(&client), json!({"frame": "ping", "bytes": 18}));
    client.call("say", json!({"text": "hello"})).unwrap();
    assert_eq!(event(&client), json!({"frame": "other", "bytes": 1_048_576}));
    assert_eq!(event(&client), json!({"link": "4003"}));
    relay.join().unwrap();
    world.stop();
}

#[test]
fn a_message_that_is_too_large_ends_the_link() {
    let dir = tempfile::tempdir().unwrap();
    let world = start(&home(dir.path()));
    let (url, relay) = relay(|mut socket| {
        // The daemon may hang up in the middle.
        let _ = socket.send(Message::text("x".repeat(1_048_577)));
        loop {
            match socket.read() {
                Ok(Message::Close(frame)) => assert_eq!(u16::from(frame.unwrap().code), 1009),
                Ok(_) => {}
                Err(_) => break,
            }
        }
    });
    let client = dialled(&world, &url);
    assert_eq!(event(&client), json!({"link": "opened"}));
    assert_eq!(event(&client), json!({"link": "lost"}));
    relay.join().unwrap();
    world.stop();
}

#[test]
fn a_hangup_and_a_loss() {
    let dir = tempfile::tempdir().unwrap();
    let world = start(&home(dir.path()));
    let (url, server) = relay(|mut socket| {
        let close = loop {
            match socket.read() {
                Ok(Message::Close(frame)) => break frame,
                other => assert!(other.is_ok()),
            }
        };
        assert_eq!(u16::from(close.unwrap().code), 1000);
        while socket.read().is_ok() {}
    });
    let client = dialled(&world, &url);
    assert_eq!(event(&client), json!({"link": "opened"}));
    client.call("hangup", json!({})).unwrap();
    assert_eq!(event(&client), json!({"link": "1000"}));
    server.join().unwrap();
    let (url, server) = relay(drop);
    client.call("dial", json!({"url": url})).unwrap();
    assert_eq!(event(&client), json!({"link": "opened"}));
    assert_eq!(event(&client), json!({"link": "lost"}));
    server.join().unwrap();
    world.stop();
}

#[test]
fn what_cannot_be_reached_says_why_in_a_fixed_word() {
    let dir = tempfile::tempdir().unwrap();
    let world = start(&home(dir.path()));
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let rude = TcpListener::bind("127.0.0.1:0").unwrap();
    let rude_url = format!("ws://{}/v1/connect", rude.local_addr().unwrap());
    let rude = std::thread::spawn(move || {
        use std::io::{Read, Write};
        for answer in ["HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "SSH-2.0\r\n\r\n"] {
            let (mut stream, _) = rude.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    for (url, why) in [
        (format!("ws://{free}/v1/connect"), "connect"),
        ("ws://example.com/v1/connect".to_owned(), "url"),
        ("wss://relay.invalid/v1/connect".to_owned(), "resolve"),
        (rude_url.clone(), "http 503"),
        (rude_url, "upgrade"),
    ] {
        let client = dialled(&world, &url);
        assert_eq!(event(&client), json!({"link": why}), "{url}");
    }
    rude.join().unwrap();
    world.stop();
}

#[test]
fn a_dial_can_be_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let world = start(&home(dir.path()));
    // It accepts and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = dialled(&world, &format!("ws://{}/v1/connect", silent.local_addr().unwrap()));
    client.call("hangup", json!({})).unwrap();
    assert_eq!(event(&client), json!({"link": "lost"}));
    world.stop();
}

#[test]
fn the_daemon_reaches_our_relay() {
    let dir = tempfile::tempdir().unwrap();
    let options = crate::relay::RelayOptions::new("127.0.0.1:0", dir.path().join("relay.db"));
    let relay = crate::relay::start(&options, &Log::kept(), Box::new(|| {})).unwrap();
    let world = start(&home(dir.path()));
    for host in ["127.0.0.1", "localhost"] {
        let client = dialled(&world, &format!("ws://{host}:{}/v1/connect", relay.address.port()));
        assert_eq!(event(&client), json!({"link": "opened"}));
        assert_eq!(event(&client)["frame"], "challenge");
        client.call("say", json!({"text": "no frame"})).unwrap();
        assert_eq!(event(&client)["frame"], "error");
        assert_eq!(event(&client), json!({"link": "4002"}));
    }
    world.stop();
    relay.stop().unwrap();
}
