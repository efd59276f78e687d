//! Frames said and heard, beyond the vectors.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use messaging_proto::Code;
use messaging_proto::frame::{
    ClientFrame, ClientOutbound, Frame, Hello, HelloClaim, Nonce, PROTO, Parsed, Received, RelayFrame,
    RelayInbound, Req, sign_hello, verify_hello,
};
use messaging_proto::hash::Hash;
use messaging_proto::json::{Value, canonicalize, parse_wire, parse_wire_noting};
use messaging_proto::key::{MachineId, Sig, SigningKey};
use messaging_proto::limits;
use messaging_proto::roster::Head;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use proptest::prelude::*;
use std::sync::Arc;

const MAX: usize = limits::FRAME_BYTES;
const NOW: u64 = 1_795_000_000_000;
const MARKER: &str = "Tr0ub4dor&3";

fn heard<F: Frame>(text: &str) -> Received<F> {
    Received::parse(text.as_bytes().to_vec(), MAX)
}

fn frame<F: Frame>(text: &str) -> F {
    match heard(text).parsed {
        Parsed::Frame(frame) => frame,
        _ => panic!("{text}"),
    }
}

fn assert_canonical(text: &str) {
    assert!(parse_wire_noting(text.as_bytes(), MAX).unwrap().1, "{text}");
}

fn req() -> impl Strategy<Value = Req> {
    "[A-Za-z0-9._:-]{1,64}".prop_map(|text| Req::parse(&text).unwrap())
}

fn ulid() -> impl Strategy<Value = Ulid> {
    (any::<u64>(), any::<[u8; 10]>()).prop_map(|(now, random)| Ulid::new(Wall(now), random))
}

fn hash() -> impl Strategy<Value = Hash> {
    any::<[u8; 32]>().prop_map(Hash)
}

fn machine() -> impl Strategy<Value = MachineId> {
    any::<[u8; 32]>().prop_map(MachineId)
}

fn number() -> impl Strategy<Value = u64> {
    0..1_u64 << 53
}

fn head() -> impl Strategy<Value = Head> {
    (number(), hash()).prop_map(|(seq, hash)| Head { seq, hash })
}

fn sig() -> impl Strategy<Value = Sig> {
    (any::<[u8; 32]>(), any::<[u8; 32]>()).prop_map(|(left, right)| {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&left);
        bytes[32..].copy_from_slice(&right);
        Sig(bytes)
    })
}

/// Some canonical object, as an entry or an envelope would be.
fn object() -> impl Strategy<Value = Arc<str>> {
    ("\\PC{0,20}", number(), prop::bool::ANY).prop_map(|(text, number, nested)| {
        let inner = Value::from([("t", Value::text("send")), ("env", Value::Null)]);
        let inner = if nested { inner } else { Value::Bool(true) };
        let value = Value::from([("id", Value::text(text)), ("n", Value::int(number)), ("x", inner)]);
        canonicalize(&value).unwrap().into()
    })
}

fn after() -> impl Strategy<Value = i64> {
    prop_oneof![Just(-1), 0..1_i64 << 53]
}

fn client_frame() -> impl Strategy<Value = ClientOutbound> {
    let hello = (hash(), machine(), number(), sig()).prop_map(|(team, machine, ts, sig)| Hello {
        team,
        machine,
        ts: Wall(ts),
        sig,
    });
    prop_oneof![
        hello.prop_map(ClientOutbound::Hello),
        (req(), hash(), ulid(), sig(), after()).prop_map(|(req, team, invite_id, proof, after)| {
            ClientOutbound::Join { req, team, invite_id, proof, after }
        }),
        (req(), after()).prop_map(|(req, after)| ClientOutbound::RosterSync { req, after }),
        (req(), object()).prop_map(|(req, entry)| ClientOutbound::RosterAppend { req, entry }),
        object().prop_map(|env| ClientOutbound::Send { env }),
        (machine(), ulid()).prop_map(|(from, id)| ClientOutbound::RecvAck { from, id }),
        object().prop_map(|env| ClientOutbound::Presence { env }),
        prop::option::of(number()).prop_map(|n| ClientOutbound::Ping { n }),
        prop::option::of(number()).prop_map(|n| ClientOutbound::Pong { n }),
    ]
}

fn code() -> impl Strategy<Value = Code> {
    prop::sample::select(Code::ALL)
}

fn message() -> impl Strategy<Value = Option<&'static str>> {
    prop::option::of(Just("fixed \"words\""))
}

fn relay_frame() -> impl Strategy<Value = RelayFrame> {
    prop_oneof![
        ("wss://[a-z\"\\\\]{1,20}", any::<[u8; 32]>())
            .prop_map(|(relay, nonce)| RelayFrame::Challenge { relay: relay.into(), nonce: Nonce(nonce) }),
        (head(), prop::collection::vec(machine(), 0..5))
            .prop_map(|(head, online)| RelayFrame::Welcome { head, online }),
        (req(), prop::collection::vec(object(), 0..5), any::<bool>())
            .prop_map(|(req, entries, more)| RelayFrame::RosterEntries { req, entries, more }),
        (req(), head()).prop_map(|(req, head)| RelayFrame::RosterOk { req, head }),
        object().prop_map(|entry| RelayFrame::Roster { entry }),
        ulid().prop_map(|id| RelayFrame::Ack { id }),
        ("\\PC{1,64}", code(), message(), prop::option::of(number())).prop_map(
            |(id, code, message, retry_after_ms)| RelayFrame::Nack { id, code, message, retry_after_ms }
        ),
        object().prop_map(|env| RelayFrame::Deliver { env }),
        (machine(), any::<bool>()).prop_map(|(machine, online)| RelayFrame::Peer { machine, online }),
        prop::option::of(number()).prop_map(|n| RelayFrame::Ping { n }),
        prop::option::of(number()).prop_map(|n| RelayFrame::Pong { n }),
        (code(), message()).prop_map(|(code, message)| RelayFrame::Error { code, message }),
    ]
}

fn value(text: &str) -> Value {
    parse_wire(text.as_bytes(), MAX).unwrap()
}

proptest! {
    #[test]
    fn what_a_client_says_a_relay_hears(said in client_frame()) {
        let text = said.to_text();
        assert_canonical(&text);
        let received = heard::<ClientFrame>(&text);
        prop_assert_eq!((received.t(), received.bytes), (said.t(), text.len()));
        let Parsed::Frame(frame) = &received.parsed else { panic!("{text}") };
        match (&said, frame) {
            (ClientOutbound::Hello(said), ClientFrame::Hello(heard)) => prop_assert_eq!(said, heard),
            (ClientOutbound::Join { req, team, invite_id, proof, after }, _) => {
                let join = ClientFrame::Join {
                    req: req.clone(), team: *team, invite_id: *invite_id, proof: *proof, after: *after,
                };
                prop_assert_eq!(frame, &join);
            }
            (ClientOutbound::RosterSync { req, after }, _) => {
                prop_assert_eq!(frame, &ClientFrame::RosterSync { req: req.clone(), after: *after });
                prop_assert_eq!(received.id(), Some(req.as_str()));
            }
            (ClientOutbound::RosterAppend { req, entry }, _) => {
                prop_assert_eq!(frame, &ClientFrame::RosterAppend { req: req.clone(), entry: value(entry) });
            }
            (ClientOutbound::Send { env }, ClientFrame::Send(heard))
            | (ClientOutbound::Presence { env }, ClientFrame::Presence(heard)) => {
                prop_assert_eq!(heard.jcs(), Some(env));
                prop_assert_eq!(heard.raw(), &value(env));
            }
            (ClientOutbound::RecvAck { from, id }, _) => {
                prop_assert_eq!(frame, &ClientFrame::RecvAck { from: *from, id: *id });
                prop_assert!(text.len() <= 128, "a delivery pays for it");
            }
            (ClientOutbound::Ping { n }, _) => prop_assert_eq!(frame, &ClientFrame::Ping { n: *n }),
            (ClientOutbound::Pong { n }, _) => prop_assert_eq!(frame, &ClientFrame::Pong { n: *n }),
            _ => panic!("{text}"),
        }
    }

    #[test]
    fn what_a_relay_says_a_client_hears(said in relay_frame()) {
        let text = said.to_text();
        assert_canonical(&text);
        let heard = frame::<RelayInbound>(&text);
        prop_assert_eq!(heard.t(), said.t());
        let expected = match said {
            RelayFrame::Challenge { relay, nonce } => {
                RelayInbound::Challenge { proto: PROTO.to_owned(), relay: relay.to_string(), nonce }
            }
            RelayFrame::Welcome { head, online } => RelayInbound::Welcome { head, online },
            RelayFrame::RosterEntries { req, entries, more } => {
                let size: usize = entries.iter().map(|entry| entry.len() + 1).sum();
                prop_assert!(text.len() <= size + RelayFrame::ENTRIES_OVERHEAD);
                let entries = entries.iter().map(|entry| value(entry)).collect();
                RelayInbound::RosterEntries { req, entries, more }
            }
            RelayFrame::RosterOk { req, head } => RelayInbound::RosterOk { req, head },
            RelayFrame::Roster { entry } => RelayInbound::Roster { entry: value(&entry) },
            RelayFrame::Ack { id } => RelayInbound::Ack { id },
            RelayFrame::Nack { id, code, retry_after_ms, .. } => RelayInbound::Nack {
                id, code: code.into(), retry_after_ms: retry_after_ms.map(|ms| ms.max(1)),
            },
            RelayFrame::Deliver { env } => {
                let RelayInbound::Deliver(inspected) = &heard else { panic!("{text}") };
                prop_assert_eq!(inspected.jcs(), Some(&env));
                heard.clone()
            }
            RelayFrame::Peer { machine, online } => RelayInbound::Peer { machine, online },
            RelayFrame::Ping { n } => RelayInbound::Ping { n },
            RelayFrame::Pong { n } => RelayInbound::Pong { n },
            RelayFrame::Error { code, .. } => RelayInbound::Error { code: code.into() },
        };
        prop_assert_eq!(heard, expected);
    }

    #[test]
    fn any_bytes_are_captured_and_read_again(bytes in prop::collection::vec(any::<u8>(), 0..60), frame in client_frame(), cut in 0..100_usize) {
        let mut text = frame.to_text().into_bytes();
        text.truncate(text.len().saturating_sub(cut / 2));
        for bytes in [bytes, text] {
            let received = Received::<ClientFrame>::parse(bytes, MAX);
            let captured = serde_json::to_string(&received).unwrap();
            let again: Received<ClientFrame> = serde_json::from_str(&captured).unwrap();
            prop_assert_eq!(&again.parsed, &received.parsed);
            prop_assert_eq!((again.bytes, again.id()), (received.bytes, received.id()));
        }
    }

    #[test]
    fn a_hello_is_good_for_its_challenge_only(seed: [u8; 32], team in hash(), nonce: [u8; 32], ts in number(), bit in 0..256_usize) {
        let key = SigningKey::from_seed(seed);
        let nonce = Nonce(nonce);
        let claim = HelloClaim { relay: "wss://relay.example", nonce: &nonce, team: &team, ts: Wall(ts) };
        let hello = sign_hello(&key, &claim).unwrap();
        prop_assert!(verify_hello(&hello, claim.relay, &nonce));
        prop_assert!(!verify_hello(&hello, "wss://relay.example.", &nonce));
        let flip = |mut bytes: [u8; 32]| { bytes[bit / 8] ^= 1 << (bit % 8); bytes };
        prop_assert!(!verify_hello(&hello, claim.relay, &Nonce(flip(nonce.0))));
        let others = [
            Hello { team: Hash(flip(team.0)), ..hello },
            Hello { machine: MachineId(flip(hello.machine.0)), ..hello },
            Hello { ts: Wall(ts ^ 1), ..hello },
        ];
        for other in others {
            prop_assert!(!verify_hello(&other, claim.relay, &nonce));
        }
    }
}

#[test]
fn the_signed_text_of_a_hello() {
    let machine = SigningKey::from_seed([1; 32]).machine();
    let (team, nonce) = (Hash([2; 32]), Nonce([3; 32]));
    let claim = HelloClaim { relay: "wss://r", nonce: &nonce, team: &team, ts: Wall(NOW) };
    let expected = format!(
        r#"{{"machine":"{machine}","nonce":"{nonce}","proto":"messaging.relay.v1","relay":"wss://r","team":"{team}","ts":{NOW}}}"#
    );
    assert_eq!(canonicalize(&claim.value(&machine)).unwrap(), expected);
    let late = HelloClaim { ts: Wall(1 << 53), ..claim };
    assert!(sign_hello(&SigningKey::from_seed([1; 32]), &late).is_err());
}

#[test]
fn exact_texts() {
    let env: Arc<str> = r#"{"a":1}"#.into();
    let id = Ulid::parse("01M7Q5CQG08J653P40D0JWK88C").unwrap();
    let texts = [
        (RelayFrame::Deliver { env: env.clone() }, r#"{"env":{"a":1},"t":"deliver"}"#),
        (RelayFrame::Ack { id }, r#"{"id":"01M7Q5CQG08J653P40D0JWK88C","stage":"relayed","t":"ack"}"#),
        (RelayFrame::nack("x\"", Code::Forbidden), r#"{"code":"forbidden","id":"x\"","t":"nack"}"#),
        (RelayFrame::error(Code::Expired), r#"{"code":"expired","t":"error"}"#),
        (
            RelayFrame::RosterEntries {
                req: Req::of(7),
                entries: vec![env.clone(), env.clone()],
                more: true,
            },
            r#"{"entries":[{"a":1},{"a":1}],"more":true,"req":"7","t":"roster.entries"}"#,
        ),
        (
            RelayFrame::Nack {
                id: "r".to_owned(),
                code: Code::RateLimited,
                message: Some("slow down"),
                retry_after_ms: Some(0),
            },
            r#"{"code":"rate_limited","id":"r","message":"slow down","retryAfterMs":1,"t":"nack"}"#,
        ),
        (RelayFrame::Pong { n: Some(3) }, r#"{"n":3,"t":"pong"}"#),
        (RelayFrame::Ping { n: None }, r#"{"t":"ping"}"#),
    ];
    for (frame, text) in texts {
        assert_eq!(frame.to_text(), text);
        // A captured effect says the same.
        assert!(serde_json::to_string(&frame).is_ok());
    }
    assert_eq!(ClientOutbound::Send { env }.to_text(), r#"{"env":{"a":1},"t":"send"}"#);
}

#[test]
fn what_a_refusal_calls_a_message() {
    let long = "é".repeat(65);
    let astral = "😀".repeat(32);
    for (text, id) in [
        (r#"{"t":"send","env":{"id":"e"},"req":"r","id":"i"}"#, Some("e")),
        (r#"{"t":"send","env":{"id":1},"req":"r","id":"i"}"#, Some("r")),
        (r#"{"t":"send","env":{"id":""},"req":"","id":"i"}"#, Some("i")),
        (r#"{"t":"send","env":[],"id":"i"}"#, Some("i")),
        // A request is called by its `req`, whatever else it has; one without its shape by what is readable.
        (r#"{"t":"roster.sync","req":"r","after":0,"env":{"id":"e"}}"#, Some("r")),
        (r#"{"t":"roster.append","req":"r","entry":{},"env":{"id":"e"},"id":"i"}"#, Some("r")),
        (r#"{"t":"roster.sync","req":"r","env":{"id":"e"}}"#, Some("e")),
        (r#"{"t":"future","req":"r"}"#, Some("r")),
        (&format!(r#"{{"t":"send","req":"{long}","id":"i"}}"#), Some("i")),
        (&format!(r#"{{"t":"send","req":"{astral}"}}"#), Some(astral.as_str())),
        (&format!(r#"{{"t":"send","req":"{astral}x"}}"#), None),
        (r#"{"t":"send"}"#, None),
        (r#"{"req":"r"}"#, None),
        (r#"["r"]"#, None),
    ] {
        let received = heard::<ClientFrame>(text);
        assert_eq!(received.id(), id, "{text}");
        if let Parsed::BadShape { id: told, .. } = &received.parsed {
            assert_eq!(told.as_deref(), id);
        }
    }
}

#[test]
fn each_side_hears_its_own_types_only() {
    for t in ["welcome", "deliver", "roster.ok", "error", "dir.sth", "", "SEND"] {
        let received = heard::<ClientFrame>(&format!(r#"{{"t":"{t}","x":1e400}}"#));
        assert_eq!((&received.parsed, received.t()), (&Parsed::Unknown, "other"), "{t}");
    }
    for t in ["hello", "send", "recv.ack", "join"] {
        let received = heard::<RelayInbound>(&format!(r#"{{"t":"{t}"}}"#));
        assert_eq!((&received.parsed, received.t()), (&Parsed::Unknown, "other"), "{t}");
    }
    let nonce = Nonce([0; 32]);
    let other = format!(r#"{{"t":"challenge","proto":"messaging.relay.v9","relay":"x","nonce":"{nonce}"}}"#);
    // Heard, so that the client can close with the right code.
    let RelayInbound::Challenge { proto, .. } = frame(&other) else { panic!() };
    assert_eq!(proto, "messaging.relay.v9");
}

#[test]
fn protocol_errors() {
    for text in ["", "[]", "1", "{}", r#"{"t":1}"#, r#"{"t":"ping","t":"ping"}"#, r#"{"t":"ping"} x"#] {
        assert_eq!(heard::<ClientFrame>(text).parsed, Parsed::Malformed, "{text}");
        assert_eq!(heard::<RelayInbound>(text).t(), "other");
    }
    let text = br#"{"t":"ping"}"#.to_vec();
    assert_eq!(Received::<ClientFrame>::parse(text.clone(), text.len() - 1).parsed, Parsed::Malformed);
    assert_eq!(Received::<ClientFrame>::parse(text.clone(), text.len()).t(), "ping");
    assert_eq!(Received::<ClientFrame>::parse(vec![0xff, 0xfe], MAX).parsed, Parsed::Malformed);
}

#[test]
fn an_envelope_in_a_frame_that_is_not_canonical_is_inspected_all_the_same() {
    let env = r#"{ "b": 1.0, "a": "}" }"#;
    for text in [
        format!(r#"{{"t":"send","env":{env}}}"#),
        format!(r#"{{"env":{env},"t":"send"}}"#),
        // Canonical, but not of the envelope alone.
        r#"{"env":{"a":"}","b":1},"s":1,"t":"send"}"#.to_owned(),
        r#"{"a":0,"env":{"a":"}","b":1},"t":"send"}"#.to_owned(),
    ] {
        let ClientFrame::Send(inspected) = frame(&text) else { panic!() };
        assert_eq!(inspected.jcs().unwrap().as_ref(), r#"{"a":"}","b":1}"#, "{text}");
    }
    // Not I-JSON: heard, and refused later as an envelope.
    let ClientFrame::Send(inspected) = frame(r#"{"env":{"a":1e400},"t":"send"}"#) else { panic!() };
    assert!(inspected.jcs().is_none() && inspected.envelope().is_err());
    for env in ["[]", "\"x\"", "null", "1"] {
        let received = heard::<RelayInbound>(&format!(r#"{{"t":"deliver","env":{env}}}"#));
        assert_eq!(received.parsed, Parsed::BadShape { t: "deliver", id: None });
    }
}

#[test]
fn shapes_the_vectors_do_not_try() {
    for text in [
        r#"{"t":"roster.sync","req":"a","after":-1.5}"#,
        r#"{"t":"roster.sync","req":"a","after":9007199254740992}"#,
        r#"{"t":"roster.sync","req":"","after":0}"#,
        r#"{"t":"roster.append","req":"a","entry":[]}"#,
        r#"{"t":"pong","n":-1}"#,
    ] {
        assert!(matches!(heard::<ClientFrame>(text).parsed, Parsed::BadShape { .. }), "{text}");
    }
    assert_eq!(
        frame::<ClientFrame>(r#"{"t":"roster.sync","req":"a","after":-1.0}"#),
        ClientFrame::RosterSync { req: Req::parse("a").unwrap(), after: -1 }
    );
    for text in [
        r#"{"t":"roster.entries","req":"a","entries":[{},1]}"#,
        r#"{"t":"roster","entry":"x"}"#,
        r#"{"t":"nack","id":"a","code":"Upper"}"#,
        r#"{"t":"nack","id":"a","code":"x","retryAfterMs":0}"#,
        r#"{"t":"nack","id":"a","code":"x","message":1}"#,
        r#"{"t":"ack","id":"01M7Q5CQG08J653P40D0JWK88C","stage":"stored"}"#,
        r#"{"t":"error","code":1}"#,
    ] {
        assert!(matches!(heard::<RelayInbound>(text).parsed, Parsed::BadShape { .. }), "{text}");
    }
    let RelayInbound::Nack { code, .. } = frame(r#"{"t":"nack","id":"a","code":"of_tomorrow"}"#) else {
        panic!()
    };
    assert_eq!((code.as_str(), code.known()), ("of_tomorrow", None));
}

#[test]
fn a_capture_that_is_none_is_refused() {
    for text in ["{}", r#"{"max":1}"#, r#"{"max":1,"text":"a","bytes":""}"#, r#"{"max":1,"bytes":"="}"#, "1"]
    {
        assert!(serde_json::from_str::<Received<ClientFrame>>(text).is_err(), "{text}");
    }
}

#[test]
fn debug_text_holds_nothing_of_the_message() {
    for text in [
        format!(r#"{{"t":"send","env":{{"id":"{MARKER}"}}}}"#),
        format!(r#"{{"t":"{MARKER}"}}"#),
        format!(r#"{{"t":"roster.sync","req":"{MARKER}"}}"#),
        MARKER.to_owned(),
    ] {
        let told = format!("{:?}", heard::<ClientFrame>(&text));
        assert!(!told.contains(MARKER), "{told}");
        assert!(told.starts_with("Received { t: "));
    }
}
