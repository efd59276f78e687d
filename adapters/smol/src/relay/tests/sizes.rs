//! Messages of every size and cut (user report 31).

use super::client::{Client, Got};
use super::*;
use std::io::Write;

#[test]
fn the_limit_of_a_message_before_and_after_hello() {
    let world = world(|_| {});
    for (hello, limit) in [(false, 32_768), (true, 1_048_576)] {
        let client = || if hello { world.authenticated() } else { world.client() };
        for bytes in [limit - 1, limit] {
            let mut client = client();
            client.say(&Client::padded_ping(bytes));
            assert_eq!(client.got(), Got::Text(r#"{"n":5,"t":"pong"}"#.to_owned()), "{bytes}");
        }
        let mut client = client();
        client.say(&Client::padded_ping(limit + 1));
        assert_eq!(client.close(), Got::Close(1009), "{limit} + 1");
    }
    world.relay.stop().unwrap();
}

#[test]
fn report_31_a_declared_length_is_refused_before_it_is_sent() {
    let world = world(|_| {});
    let mut other = world.client();
    for len in [32_769, 100 << 20, u64::MAX >> 1] {
        let mut client = world.client();
        client.send(&Client::header(1, true, len));
        assert_eq!(client.close(), Got::Close(1009), "{len}");
    }
    let mut client = world.authenticated();
    client.send(&Client::header(1, true, 100 << 20));
    // It keeps sending: the relay throws that away, and the close is read all the same.
    let mut sender = client.0.try_clone().unwrap();
    let flood = std::thread::spawn(move || {
        for _ in 0..64 {
            if sender.write_all(&[0; 65_536]).is_err() {
                return;
            }
        }
    });
    assert_eq!(client.close(), Got::Close(1009));
    flood.join().unwrap();
    other.ping(9);
    world.relay.stop().unwrap();
}

#[test]
fn report_31_fragments_count_together() {
    let world = world(|_| {});
    let mut client = world.client();
    let text = Client::padded_ping(10_000);
    client.send(&fragments(text.as_bytes()));
    assert_eq!(client.got(), Got::Text(r#"{"n":5,"t":"pong"}"#.to_owned()));
    client.send(&fragments(Client::padded_ping(32_769).as_bytes()));
    assert_eq!(client.close(), Got::Close(1009));
    world.relay.stop().unwrap();
}

fn fragments(text: &[u8]) -> Vec<u8> {
    let last = text.len() - 1;
    let frames = text.iter().enumerate();
    frames.flat_map(|(index, byte)| Client::frame(u8::from(index == 0), index == last, &[*byte])).collect()
}

#[test]
fn what_is_no_text_closes_as_a_protocol_error() {
    let world = world(|_| {});
    let cases: [(&str, Vec<u8>, u16); 6] = [
        ("binary", Client::frame(2, true, b"{}"), 4002),
        ("no UTF-8", Client::frame(1, true, &[b'"', 0xff, b'"']), 4002),
        ("no JSON", Client::frame(1, true, b"{"), 4002),
        ("unmasked", vec![0x81, 0x02, b'{', b'}'], 1002),
        ("reserved bits", Client::frame(1 | 0x40, true, b"{}"), 1002),
        ("a continuation of nothing", Client::frame(0, true, b"{}"), 1002),
    ];
    for (what, bytes, code) in cases {
        let mut client = world.client();
        client.send(&bytes);
        // Nothing behind it is heard.
        client.send(&Client::frame(1, true, br#"{"t":"ping","n":6}"#));
        assert_eq!(client.close(), Got::Close(code), "{what}");
    }
    world.relay.stop().unwrap();
}

#[test]
fn control_frames_between_fragments() {
    let world = world(|_| {});
    let mut client = world.client();
    client.send(&Client::frame(1, false, br#"{"t":"pi"#));
    client.send(&Client::frame(9, true, b"alive"));
    client.send(&Client::frame(0, true, br#"ng","n":5}"#));
    let mut got = [client.got(), client.got()];
    got.sort_by_key(|got| matches!(got, Got::Text(_)));
    assert_eq!(got, [Got::Other(10), Got::Text(r#"{"n":5,"t":"pong"}"#.to_owned())]);
    world.relay.stop().unwrap();
}
