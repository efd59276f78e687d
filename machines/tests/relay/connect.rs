//! From the upgrade to `welcome`, and how connections end (contract wire-core §7.1, §7.3, §7.10).

use crate::support::{Client, World, closes, counts, frames, nacks};
use messaging_machines::relay::Config;
use messaging_machines::relay::io::{Count, Effect, Event, Unreadable};
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, Hello, HelloClaim, Nonce, RelayFrame, Req, sign_hello};
use messaging_proto::hash::Hash;
use messaging_proto::limits::CLOCK_SKEW_MS;
use messaging_proto::time::Wall;

const RELAY: &str = "wss://relay.example";

fn clients(count: u8) -> Vec<Client> {
    (1..=count).map(Client::new).collect()
}

fn world(clients: &[Client]) -> World {
    World::team(Config::new(RELAY), clients)
}

fn error(code: Code) -> impl Fn(&[RelayFrame]) -> bool {
    move |frames| matches!(frames, [RelayFrame::Error { code: said, .. }] if *said == code)
}

#[test]
fn welcome_names_the_head_and_the_others_online_in_order() {
    let clients = clients(12);
    let mut world = world(&clients);
    let others: Vec<_> = clients[1..].iter().map(|client| world.login(client)).collect();
    let (conn, said) = world.connect(&clients[0]);
    let mut online: Vec<_> = clients[1..].iter().map(Client::machine).collect();
    // Ids are texts: their order is not that of the bytes they stand for.
    online.sort();
    let by_bytes = online.clone();
    online.sort_by_key(ToString::to_string);
    assert_ne!(online, by_bytes, "the test can tell");
    assert_eq!(frames(&said, conn), [RelayFrame::Welcome { head: world.head(), online }]);
    let team = world.team_id();
    let machine = clients[0].machine();
    assert!(said.contains(&Effect::Authenticated { conn, team, machine }));
    for other in &others {
        assert_eq!(frames(&said, *other), [RelayFrame::Peer { machine, online: true }]);
    }
    let said = world.close(conn);
    for other in others {
        assert_eq!(frames(&said, other), [RelayFrame::Peer { machine, online: false }]);
    }
}

#[test]
fn hello_is_refused_for_the_first_thing_that_fails() {
    let clients = clients(2);
    let mut world = world(&clients);
    let removed = {
        let admin = world.login(&clients[0]);
        let entry = world.author(&clients[0]).member_remove(&clients[1].machine()).unwrap();
        world.append_ok(admin, &entry);
        world.close(admin);
        &clients[1]
    };
    let stranger = Client::new(99);
    let (team, now) = (world.team_id(), world.wall);
    let hello = |key: &Client, nonce: &Nonce, ts: Wall, team: Hash, relay: &str| {
        let claim = HelloClaim { relay, nonce, team: &team, ts };
        sign_hello(&key.key, &claim).unwrap()
    };
    let late = Wall(now.0 - CLOCK_SKEW_MS - 1);
    let early = Wall(now.0 + CLOCK_SKEW_MS + 1);
    let other = Hash([3; 32]);
    type Make<'a> = Box<dyn Fn(&Nonce) -> Hello + 'a>;
    let cases: Vec<(Make<'_>, Code)> = vec![
        (Box::new(|n: &Nonce| hello(&clients[0], n, late, team, RELAY)), Code::Expired),
        (Box::new(|n: &Nonce| hello(&clients[0], n, early, team, RELAY)), Code::Expired),
        // The clock comes before the signature, the signature before membership.
        (Box::new(|n: &Nonce| hello(&stranger, n, late, other, "wss://else")), Code::Expired),
        (Box::new(|n: &Nonce| hello(&clients[0], n, now, team, "wss://else")), Code::BadSignature),
        (Box::new(|_: &Nonce| hello(&clients[0], &Nonce([1; 32]), now, team, RELAY)), Code::BadSignature),
        (Box::new(|_: &Nonce| hello(&stranger, &Nonce([1; 32]), now, other, RELAY)), Code::BadSignature),
        (Box::new(|n: &Nonce| hello(&clients[0], n, now, other, RELAY)), Code::NotMember),
        (Box::new(|n: &Nonce| hello(&stranger, n, now, team, RELAY)), Code::NotMember),
        (Box::new(|n: &Nonce| hello(removed, n, now, team, RELAY)), Code::NotMember),
    ];
    // A key that is none, with a signature that some verifiers take.
    let no_key = |_: &Nonce| Hello {
        team,
        machine: messaging_proto::key::MachineId([0; 32]),
        ts: now,
        sig: messaging_proto::key::Sig([0; 64]),
    };
    let cases = cases.into_iter().chain([(Box::new(no_key) as Make<'_>, Code::BadSignature)]);
    let cases: Vec<_> = cases.collect();
    for (number, (make, code)) in cases.iter().enumerate() {
        let (conn, nonce) = world.open();
        let said = world.say(conn, &ClientOutbound::Hello(make(&nonce)));
        assert!(error(*code)(&frames(&said, conn)), "case {number}: {said:?}");
        assert_eq!(closes(&said, conn), [4001]);
        assert_eq!(counts(&said), [Count::AuthFailure(*code)]);
        assert!(world.say(conn, &ClientOutbound::Ping { n: None }).is_empty(), "it is closing");
    }
    // The very edge of the skew is inside.
    for ts in [late.plus(1), early.minus(1)] {
        let (conn, nonce) = world.open();
        let said = world.say(conn, &ClientOutbound::Hello(hello(&clients[0], &nonce, ts, team, RELAY)));
        assert!(matches!(frames(&said, conn)[..], [RelayFrame::Welcome { .. }]));
    }
    // A challenge of another connection is good for nothing here.
    let (_, other_nonce) = world.open();
    let (conn, _) = world.open();
    let said = world.say(conn, &world.hello(&clients[0], &other_nonce));
    assert!(error(Code::BadSignature)(&frames(&said, conn)));
}

#[test]
fn hello_of_another_shape_or_protocol_is_invalid() {
    let clients = clients(1);
    let mut world = world(&clients);
    for change in [("proto", "messaging.relay.v2"), ("team", "x"), ("machine", ""), ("sig", "AA")] {
        let (conn, nonce) = world.open();
        let text = world.hello(&clients[0], &nonce).to_text();
        let mut value = messaging_proto::json::parse_wire(text.as_bytes(), 4_096).unwrap();
        if let messaging_proto::json::Value::Object(object) = &mut value {
            object.set(change.0, messaging_proto::json::Value::text(change.1));
        }
        let said = world.say_text(conn, messaging_proto::json::canonicalize(&value).unwrap().as_bytes());
        assert!(error(Code::InvalidRequest)(&frames(&said, conn)), "{change:?}");
        assert_eq!(closes(&said, conn), [4001]);
    }
}

#[test]
fn a_machine_has_one_connection_and_the_newer_one_stays() {
    let clients = clients(2);
    let mut config = Config::new(RELAY);
    config.limits.connections = 2;
    let mut world = World::team(config, &clients);
    let other = world.login(&clients[0]);
    let older = world.login(&clients[1]);
    let (newer, said) = world.connect(&clients[1]);
    assert_eq!(closes(&said, older), [4004]);
    assert!(matches!(frames(&said, newer)[..], [RelayFrame::Welcome { .. }]), "at the cap, but adds none");
    assert!(frames(&said, other).is_empty(), "it never was offline");
    let close_at = said.iter().position(|effect| matches!(effect, Effect::Close { .. })).unwrap();
    let welcome_at = said.iter().position(|effect| matches!(effect, Effect::Send { .. })).unwrap();
    assert!(close_at < welcome_at);
    assert!(frames(&world.close(older), other).is_empty(), "nor is it when the older one is gone");
    assert!(matches!(frames(&world.say(newer, &ClientOutbound::Ping { n: None }), newer)[..], [_]));
    assert_eq!(frames(&world.close(newer), other).len(), 1);
}

#[test]
fn the_connection_cap_is_for_authenticated_ones() {
    let clients = clients(3);
    let mut config = Config::new(RELAY);
    config.limits.connections = 1;
    let mut world = World::team(config, &clients);
    let (_waiting, _) = world.open();
    let conn = world.login(&clients[0]);
    let (refused, said) = world.connect(&clients[1]);
    assert!(error(Code::RateLimited)(&frames(&said, refused)));
    assert_eq!(closes(&said, refused), [1013]);
    assert_eq!(counts(&said), [Count::RefusedFull]);
    world.close(conn);
    world.login(&clients[1]);
}

#[test]
fn eight_frames_before_hello_and_not_nine() {
    let clients = clients(1);
    let mut world = world(&clients);
    let unknown = br#"{"t":"later"}"#;
    let (conn, nonce) = world.open();
    for _ in 0..7 {
        assert!(frames(&world.say_text(conn, unknown), conn).is_empty(), "unknown frames count, unanswered");
    }
    let hello = world.hello(&clients[0], &nonce);
    assert!(matches!(frames(&world.say(conn, &hello), conn)[..], [RelayFrame::Welcome { .. }]));
    let (conn, nonce) = world.open();
    (0..8).for_each(|_| drop(world.say_text(conn, unknown)));
    let hello = world.hello(&clients[0], &nonce);
    let said = world.say(conn, &hello);
    assert!(error(Code::RateLimited)(&frames(&said, conn)));
    assert_eq!(closes(&said, conn), [4002]);
}

#[test]
fn before_hello_only_three_frames_are_served() {
    let clients = clients(1);
    let mut world = world(&clients);
    let machine = clients[0].machine();
    let draft = world.draft(&clients[0], &clients[0]);
    let env = draft.sign(&clients[0]);
    for frame in [
        ClientOutbound::RosterSync { req: Req::of(1), after: -1 },
        ClientOutbound::Send { env: env.clone() },
        ClientOutbound::Presence { env },
        ClientOutbound::RecvAck { from: machine, id: draft.ulid() },
        ClientOutbound::Ping { n: Some(1) },
        ClientOutbound::Pong { n: None },
    ] {
        let (conn, _) = world.open();
        let said = world.say(conn, &frame);
        assert!(error(Code::Forbidden)(&frames(&said, conn)), "{}", frame.t());
        assert_eq!(closes(&said, conn), [4002]);
    }
    let (conn, _) = world.open();
    let said = world.say_text(conn, br#"{"t":"send"}"#);
    assert!(error(Code::Forbidden)(&frames(&said, conn)), "whatever its shape");
}

#[test]
fn what_is_no_frame_ends_the_connection() {
    let clients = clients(1);
    let mut world = world(&clients);
    for text in [&b"{"[..], b"[]", b"{\"t\":1}", b"{}", b"", b"\xff", br#"{"t":"ping","t":"ping"}"#] {
        for live in [false, true] {
            let conn = if live { world.login(&clients[0]) } else { world.open().0 };
            let said = world.say_text(conn, text);
            assert!(error(Code::InvalidRequest)(&frames(&said, conn)));
            assert_eq!(closes(&said, conn), [4002]);
        }
    }
    for (why, code) in [(Unreadable::TooLarge, 1009), (Unreadable::Binary, 4002)] {
        for live in [false, true] {
            let conn = if live { world.login(&clients[0]) } else { world.open().0 };
            let said = world.step(Event::Unreadable { conn, why });
            assert_eq!(closes(&said, conn), [code]);
            assert!(world.step(Event::Unreadable { conn, why }).is_empty(), "closed once");
        }
    }
}

#[test]
fn a_known_frame_of_another_shape_is_refused_by_its_id() {
    let clients = clients(1);
    let mut world = world(&clients);
    let conn = world.login(&clients[0]);
    for (text, id) in [
        (&br#"{"t":"send","env":{"id":"a"}}"#[..], Some("a")),
        (br#"{"t":"send","env":{"id":""},"req":"r"}"#, Some("r")),
        (br#"{"t":"roster.sync","req":"r","after":-2}"#, Some("r")),
        (br#"{"t":"roster.sync","req":"r","after":0.5}"#, Some("r")),
        (br#"{"t":"recv.ack","id":"x"}"#, Some("x")),
        (br#"{"t":"send"}"#, None),
        (br#"{"t":"send","env":[]}"#, None),
    ] {
        let said = world.say_text(conn, text);
        match id {
            Some(id) => assert_eq!(nacks(&said, conn), [(id.to_owned(), Code::InvalidRequest)]),
            None => assert!(error(Code::InvalidRequest)(&frames(&said, conn))),
        }
        assert!(closes(&said, conn).is_empty(), "the connection stays");
    }
    assert!(frames(&world.say_text(conn, br#"{"t":"later","req":"r"}"#), conn).is_empty());
}

/// A relay without the directory: its frames are unknown ones, and its `hello` is none (`messaging/1 §7`, "Directory frames").
#[test]
fn what_a_directory_relay_hears_is_unknown_here() {
    const FRAMES: &[&str] = &[
        r#"{"t":"dir.sth","req":"r"}"#,
        r#"{"t":"dir.heads","req":"r","persons":[]}"#,
        r#"{"t":"dir.bind","req":"r","entry":{}}"#,
        r#"{"t":"dir.append","req":"r","entry":{}}"#,
        r#"{"t":"dir.watch","req":"r","persons":[]}"#,
        r#"{"t":"presence.watch","req":"r","persons":[]}"#,
        r#"{"t":"wake.arm","req":"r"}"#,
        r#"{"t":"welcome","online":[]}"#,
    ];
    let clients = clients(1);
    let mut world = world(&clients);
    let (conn, nonce) = world.open();
    for text in &FRAMES[..7] {
        assert!(frames(&world.say_text(conn, text.as_bytes()), conn).is_empty(), "{text}");
    }
    let hello = world.hello(&clients[0], &nonce);
    assert!(matches!(frames(&world.say(conn, &hello), conn)[..], [RelayFrame::Welcome { .. }]));
    for text in FRAMES {
        assert!(frames(&world.say_text(conn, text.as_bytes()), conn).is_empty(), "{text}");
    }
    let hosted = format!(
        r#"{{"t":"hello","proto":"messaging.relay.v1","realm":"{}","person":"p_{}","device":"{}","ts":{},"sig":"{}"}}"#,
        world.team_id(),
        "a".repeat(26),
        clients[0].machine(),
        world.wall.0,
        messaging_proto::b64u::encode(&[0; 64]),
    );
    let (conn, _) = world.open();
    let said = world.say_text(conn, hosted.as_bytes());
    assert!(error(Code::InvalidRequest)(&frames(&said, conn)));
    assert_eq!(closes(&said, conn), [4001]);
}

/// A member that no table lists changes nothing, whatever it is called (contract wire-core, general rules and §7.2).
#[test]
fn members_that_no_frame_has_change_nothing() {
    let clients = clients(2);
    let mut config = Config::new(RELAY);
    config.limits.frames_per_minute = 4;
    let mut world = World::team(config, &clients);
    world.pass(60_000);
    let (conn, nonce) = world.open();
    let with = |text: &str, more: &str| format!("{},{more}}}", text.strip_suffix('}').unwrap());
    let hello =
        with(&world.hello(&clients[0], &nonce).to_text(), r#""relay":"else","nonce":null,"x":[1e400]"#);
    let said = world.say_text(conn, hello.as_bytes());
    assert!(matches!(frames(&said, conn)[..], [RelayFrame::Welcome { .. }]), "{said:?}");
    let env = world.draft(&clients[0], &clients[1]).sign(&clients[0]);
    let send = with(&ClientOutbound::Send { env }.to_text(), r#""req":"not it","id":"nor this","stage":7"#);
    assert!(matches!(frames(&world.say_text(conn, send.as_bytes()), conn)[..], [RelayFrame::Ack { .. }]));
    let sync = with(r#"{"t":"roster.sync","req":"r1","after":-1}"#, r#""env":{"id":"e1"},"team":0"#);
    for _ in 0..3 {
        let said = world.say_text(conn, sync.as_bytes());
        assert!(
            matches!(&frames(&said, conn)[..], [RelayFrame::RosterEntries { req, .. }] if req.as_str() == "r1")
        );
    }
    let said = world.say_text(conn, sync.as_bytes());
    assert_eq!(nacks(&said, conn), [("r1".to_owned(), Code::RateLimited)], "called by its request");
}

#[test]
fn after_hello_neither_hello_nor_join() {
    let clients = clients(1);
    let mut world = world(&clients);
    let conn = world.login(&clients[0]);
    let join = br#"{"after":-1,"inviteId":"01ARZ3NDEKTSV4RRFFQ69G5FAV","proof":"PROOF","req":"j","t":"join","team":"TEAM"}"#;
    let join = String::from_utf8_lossy(join)
        .replace("PROOF", &messaging_proto::b64u::encode(&[0; 64]))
        .replace("TEAM", &world.team_id().to_string());
    let said = world.say_text(conn, join.as_bytes());
    assert_eq!(nacks(&said, conn), [("j".to_owned(), Code::Forbidden)]);
    let hello = world.hello(&clients[0], &Nonce([0; 32]));
    let said = world.say(conn, &hello);
    assert!(error(Code::InvalidRequest)(&frames(&said, conn)));
    assert_eq!(closes(&said, conn), [4002]);
}

#[test]
fn hello_has_ten_seconds() {
    let clients = clients(1);
    let mut world = world(&clients);
    let (conn, _) = world.open();
    world.say_text(conn, br#"{"t":"later"}"#);
    assert!(closes(&world.pass(9_999), conn).is_empty());
    let said = world.pass(1);
    assert!(error(Code::Expired)(&frames(&said, conn)));
    assert_eq!(closes(&said, conn), [4001]);
    assert!(closes(&world.pass(100_000), conn).is_empty(), "closed once");
}

#[test]
fn ninety_seconds_of_silence_end_a_connection() {
    let clients = clients(2);
    let mut world = world(&clients);
    let conn = world.login(&clients[0]);
    let other = world.login(&clients[1]);
    for _ in 0..5 {
        world.pass(60_000);
        assert_eq!(frames(&world.say(conn, &ClientOutbound::Ping { n: Some(7) }), conn).len(), 1);
        assert!(frames(&world.say(other, &ClientOutbound::Pong { n: None }), other).is_empty());
    }
    world.pass(89_999);
    world.say(other, &ClientOutbound::Ping { n: None });
    let said = world.pass(1);
    assert_eq!(closes(&said, conn), [4002]);
    assert_eq!(frames(&said, other), [RelayFrame::Peer { machine: clients[0].machine(), online: false }]);
    assert!(closes(&said, other).is_empty());
    assert!(world.close(conn).is_empty());
}

/// A client that keeps its connection with WebSocket pings alone is not silent (contract wire-core §7.1).
#[test]
fn signs_of_life_that_are_no_frames_count() {
    let clients = clients(1);
    let mut world = world(&clients);
    let conn = world.login(&clients[0]);
    for _ in 0..5 {
        world.pass(80_000);
        assert!(world.step(Event::Alive { conn }).is_empty());
    }
    assert!(closes(&world.pass(89_999), conn).is_empty());
    assert_eq!(closes(&world.pass(1), conn), [4002]);
    // It authenticates nobody.
    let (late, _) = world.open();
    world.pass(9_000);
    world.step(Event::Alive { conn: late });
    assert_eq!(closes(&world.pass(1_000), late), [4001]);
}

#[test]
fn pong_echoes_n() {
    let clients = clients(1);
    let mut world = world(&clients);
    let conn = world.login(&clients[0]);
    for n in [None, Some(0), Some(9_007_199_254_740_991)] {
        let said = world.say(conn, &ClientOutbound::Ping { n });
        assert_eq!(frames(&said, conn), [RelayFrame::Pong { n }]);
    }
}

#[test]
fn frames_of_unknown_connections_are_ignored() {
    let clients = clients(1);
    let mut world = world(&clients);
    let conn = messaging_machines::relay::io::ConnId(9_999);
    assert!(world.say(conn, &ClientOutbound::Ping { n: None }).is_empty());
    assert!(world.step(Event::Closed { conn }).is_empty());
    assert!(world.step(Event::Drained { conn }).is_empty());
    assert!(world.step(Event::Unreadable { conn, why: Unreadable::Binary }).is_empty());
}
