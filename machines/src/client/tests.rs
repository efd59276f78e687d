//! The client machine byte by byte.

use super::*;

const HELLO: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"method\":\"hello\",\"params\":{\"daemon\":\"messagingd\",\"version\":\"0.1.0\",\
\"protocol\":1,\"pid\":7}}\n";

fn open() -> ClientMachine {
    let mut machine = ClientMachine::new("0.1.0");
    let mut out = Vec::new();
    machine.received(HELLO, &mut out);
    assert!(matches!(out.as_slice(), [Notice::Ready(_)]), "{out:?}");
    machine
}

fn only(machine: &mut ClientMachine, bytes: &[u8]) -> Vec<Notice> {
    let mut out = Vec::new();
    machine.received(bytes, &mut out);
    out
}

#[test]
fn the_pieces_do_not_matter() {
    let text = [
        HELLO,
        b"{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"type\":\"relay\"}}\n",
        b"not json\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n",
    ]
    .concat();
    let whole = only(&mut ClientMachine::new("0.1.0"), &text);
    assert!(matches!(whole.as_slice(), [Notice::Ready(_), Notice::Event(_)]), "{whole:?}");
    for size in 1..text.len() {
        let mut machine = ClientMachine::new("0.1.0");
        let mut out = Vec::new();
        text.chunks(size).for_each(|piece| machine.received(piece, &mut out));
        assert_eq!(out, whole, "pieces of {size}");
    }
}

#[test]
fn replies_find_their_calls_once_and_in_any_order() {
    let mut machine = open();
    let (first, line) = machine.call("daemon.status", json!({})).unwrap();
    assert_eq!(line, b"{\"id\":1,\"jsonrpc\":\"2.0\",\"method\":\"daemon.status\",\"params\":{}}\n");
    let (second, _) = machine.call("daemon.health", json!({})).unwrap();
    let (third, _) = machine.call("daemon.health", json!({})).unwrap();
    machine.abandon(third);
    let replies = b"{\"id\":2,\"result\":2}\n{\"id\":1,\"error\":{\"message\":\"rate_limited: slow\",\"data\":{\"code\":\"rate_limited\",\"retryAfterMs\":5}}}\n{\"id\":1,\"result\":1}\n{\"id\":3,\"result\":3}\n";
    let out = only(&mut machine, replies);
    let [Notice::Reply(a, Ok(two)), Notice::Reply(b, Err(error))] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!((*a, *b, two), (second, first, &json!(2)));
    assert_eq!((error.code, error.message.as_str()), (Code::RateLimited, "slow"));
    assert_eq!(error.retry_after_ms, Some(5));
}

#[test]
fn an_end_answers_every_call_and_then_nothing_more() {
    let mut machine = open();
    let (call, _) = machine.call("daemon.status", json!({})).unwrap();
    let mut out = Vec::new();
    machine.closed(&mut out);
    machine.closed(&mut out);
    machine.received(HELLO, &mut out);
    let [Notice::Reply(id, Err(error)), Notice::Ended(why)] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!((*id, error.code, why.code), (call, Code::DaemonUnavailable, Code::DaemonUnavailable));
    assert_eq!(machine.call("daemon.status", json!({})).unwrap_err().code, Code::DaemonUnavailable);
}

#[test]
fn a_line_the_daemon_could_not_read_fails_what_is_under_way() {
    let mut machine = open();
    let (call, _) = machine.call("msg.send", json!({})).unwrap();
    let out = only(&mut machine, b"{\"id\":null,\"error\":{\"data\":{\"code\":\"too_large\"}}}\n");
    let [Notice::Reply(id, Err(error))] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!((*id, error.code), (call, Code::TooLarge));
}

#[test]
fn whoever_is_not_this_daemon_is_refused() {
    for (bytes, code) in [
        (&b"SSH-2.0-x\n"[..], Code::DaemonMismatch),
        (b"{}\n", Code::DaemonMismatch),
        (&[b' '; HELLO_BYTES + 1], Code::DaemonMismatch),
    ] {
        let mut machine = ClientMachine::new("0.1.0");
        let out = only(&mut machine, bytes);
        assert!(matches!(out.as_slice(), [Notice::Ended(why)] if why.code == code), "{out:?}");
    }
    let out = only(&mut ClientMachine::new("0.2.0"), HELLO);
    let [Notice::Ended(why)] = out.as_slice() else { panic!("{out:?}") };
    assert!(why.message.contains("0.1.0") && why.message.contains("0.2.0"), "{why}");
}

#[test]
fn nothing_larger_than_a_line_is_sent_or_kept() {
    let mut machine = open();
    let text = "x".repeat(IPC_REQUEST_BYTES);
    assert_eq!(machine.call("msg.send", json!({"text": text})).unwrap_err().code, Code::TooLarge);
    let piece = vec![b'x'; 1 << 20];
    let mut out = Vec::new();
    for _ in 0..9 {
        machine.received(&piece, &mut out);
    }
    assert!(matches!(out.as_slice(), [Notice::Ended(_)]), "{out:?}");
    assert!(machine.partial.is_empty());
}

#[test]
fn waits_follow_the_method() {
    assert_eq!(call_timeout("msg.send", &json!({})), Duration::from_millis(30_000));
    assert_eq!(call_timeout("team.join", &json!({})), Duration::from_millis(130_000));
    assert_eq!(call_timeout("inbox.list", &json!({"waitMs": 500})), Duration::from_millis(30_500));
}
