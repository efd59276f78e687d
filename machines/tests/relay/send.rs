//! The checks of a `send`, one row of contract wire-core §7.6 at a time, and their order.

use crate::support::{Client, Draft, World, counts, frames, nacks};
use messaging_machines::relay::Config;
use messaging_machines::relay::io::{ConnId, Count, Effect};
use messaging_proto::Code;
use messaging_proto::b64u;
use messaging_proto::frame::{ClientOutbound, RelayFrame};
use messaging_proto::hash::Hash;
use messaging_proto::json::Value;
use messaging_proto::limits::{CLOCK_SKEW_MS, HEADER_BYTES, PLAINTEXT_BYTES, TTL_MS};
use std::sync::Arc;

const RELAY: &str = "wss://relay.example";

fn clients(count: u8) -> Vec<Client> {
    (1..=count).map(Client::new).collect()
}

fn acked(world: &mut World, conn: ConnId, env: &Arc<str>) -> bool {
    matches!(frames(&world.send(conn, env), conn)[..], [RelayFrame::Ack { .. }])
}

fn refused(world: &mut World, conn: ConnId, env: &Arc<str>) -> Code {
    let rows = world.rows();
    let said = world.send(conn, env);
    let [(id, code)] = &nacks(&said, conn)[..] else { panic!("{said:?}") };
    assert_eq!(id.len(), 26, "by the envelope's id");
    assert!(counts(&said).contains(&Count::Nack(*code)));
    assert_eq!(world.rows(), rows, "nothing is stored");
    *code
}

type Fault = (&'static str, Box<dyn Fn(&mut Draft, &World)>, Code);

/// Each step of the table as something that breaks it, in order. Later ones leave earlier ones whole.
fn faults() -> Vec<Fault> {
    let set = |name: &'static str, value: Value| {
        Box::new(move |draft: &mut Draft, _: &World| {
            draft.set(name, value.clone());
        })
    };
    vec![
        ("1 schema", set("class", Value::text("self")), Code::InvalidRequest),
        ("2 header size", set("x", Value::text("x".repeat(HEADER_BYTES))), Code::TooLarge),
        (
            "3 from is the connection's",
            Box::new(|draft: &mut Draft, _: &World| {
                draft.set_in("from", "device", Value::text(Client::new(3).machine().to_string()));
            }),
            Code::Forbidden,
        ),
        ("4 members", set("realm", Value::text(Hash([4; 32]).to_string())), Code::NotMember),
        (
            "5 anchor kind",
            Box::new(|draft: &mut Draft, _: &World| {
                let mut anchor = messaging_proto::json::Object::new();
                anchor.set("kind", Value::text("epoch"));
                anchor.set("size", Value::int(1));
                anchor.set("root", Value::text(Hash([4; 32]).to_string()));
                draft.set("anchor", anchor.into());
            }),
            Code::InvalidRequest,
        ),
        ("6 signature", Box::new(|_: &mut Draft, _: &World| {}), Code::BadSignature),
        (
            "7 head",
            Box::new(|draft: &mut Draft, world: &World| {
                draft.set_in("anchor", "seq", Value::int(world.head().seq + 1));
            }),
            Code::RosterConflict,
        ),
        (
            "8 body size",
            Box::new(|draft: &mut Draft, _: &World| {
                draft.body(PLAINTEXT_BYTES + 17);
            }),
            Code::TooLarge,
        ),
        (
            "9 time",
            Box::new(|draft: &mut Draft, world: &World| {
                draft.set("exp", Value::int(world.wall.0));
            }),
            Code::Expired,
        ),
    ]
}

#[test]
fn each_step_refuses_with_its_code_and_before_every_later_one() {
    let clients = clients(3);
    let mut world = World::team(Config::new(RELAY), &clients);
    let conn = world.login(&clients[0]);
    let faults = faults();
    for (first, (name, break_it, code)) in faults.iter().enumerate() {
        for (second, (other, break_too, _)) in faults.iter().enumerate().skip(first) {
            // An epoch anchor has no head.
            if (first, second) == (4, 6) {
                continue;
            }
            let mut draft = world.draft(&clients[0], &clients[1]);
            break_too(&mut draft, &world);
            break_it(&mut draft, &world);
            let signed_wrong = first == 5 || second == 5;
            let env = draft.sign(if signed_wrong { &clients[1] } else { &clients[0] });
            assert_eq!(refused(&mut world, conn, &env), *code, "{name} with {other}");
            world.pass(1_000);
        }
    }
}

#[test]
fn budgets_come_before_everything() {
    let clients = clients(2);
    let mut config = Config::new(RELAY);
    config.limits.frames_per_minute = 3;
    let mut world = World::team(config, &clients);
    world.pass(60_000);
    let conn = world.login(&clients[0]);
    for _ in 0..3 {
        world.say(conn, &ClientOutbound::Ping { n: None });
    }
    let mut draft = world.draft(&clients[0], &clients[1]);
    draft.drop_member("class");
    let env = draft.sign(&clients[0]);
    let said = world.send(conn, &env);
    match &frames(&said, conn)[..] {
        [RelayFrame::Nack { code: Code::RateLimited, retry_after_ms: Some(20_000), id, .. }] => {
            assert_eq!(*id, draft.ulid().to_string());
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(counts(&said), [Count::RateLimited, Count::Nack(Code::RateLimited)]);
    let said = world.say(conn, &ClientOutbound::Ping { n: None });
    assert!(matches!(frames(&said, conn)[..], [RelayFrame::Error { code: Code::RateLimited, .. }]));
    // Reconnecting buys nothing.
    world.close(conn);
    let conn = world.login(&clients[0]);
    let said = world.say(conn, &ClientOutbound::Ping { n: None });
    assert!(matches!(frames(&said, conn)[..], [RelayFrame::Error { code: Code::RateLimited, .. }]));
    world.pass(20_000);
    assert_eq!(refused(&mut world, conn, &env), Code::InvalidRequest);
}

/// Bytes are those of the message as it came, spaces included.
#[test]
fn a_budget_of_bytes_besides_that_of_frames() {
    let clients = clients(1);
    let mut config = Config::new(RELAY);
    config.limits.bytes_per_minute = 60_000;
    let mut world = World::team(config, &clients);
    world.pass(60_000);
    let conn = world.login(&clients[0]);
    let padded = |bytes: usize| format!("{:bytes$}", r#"{"t":"ping"}"#);
    let pong = |said: &[Effect]| matches!(frames(said, conn)[..], [RelayFrame::Pong { .. }]);
    assert!(pong(&world.say_text(conn, padded(59_000).as_bytes())));
    let said = world.say_text(conn, padded(1_001).as_bytes());
    assert!(matches!(frames(&said, conn)[..], [RelayFrame::Error { code: Code::RateLimited, .. }]));
    assert!(pong(&world.say_text(conn, padded(1_000).as_bytes())), "what did not fit took nothing");
    assert!(!pong(&world.say_text(conn, padded(12).as_bytes())));
    world.pass(12);
    assert!(pong(&world.say_text(conn, padded(12).as_bytes())), "one byte a millisecond comes back");
}

#[test]
fn step_one_takes_every_sealed_type_and_no_other() {
    let clients = clients(2);
    let mut world = World::team(Config::new(RELAY), &clients);
    let conn = world.login(&clients[0]);
    for (kind, taken) in [
        ("message", true),
        ("receipt", true),
        ("task.status", true),
        ("task.artifact", true),
        ("task.cancel", true),
        ("presence", false),
        ("later", false),
    ] {
        let mut draft = world.draft(&clients[0], &clients[1]);
        draft.set("type", Value::text(kind));
        let reply = draft.ulid().to_string();
        draft.set("replyTo", Value::text(reply));
        let env = draft.sign(&clients[0]);
        if taken {
            assert!(acked(&mut world, conn, &env), "{kind}");
        } else {
            assert_eq!(refused(&mut world, conn, &env), Code::InvalidRequest, "{kind}");
        }
    }
    let mut draft = world.draft(&clients[0], &clients[1]);
    draft.set("v", Value::text("messaging/2"));
    assert_eq!(refused(&mut world, conn, &draft.sign(&clients[0])), Code::InvalidRequest);
    // Not I-JSON: an integer past 2^53, in a member nobody knows.
    let draft = world.draft(&clients[0], &clients[1]);
    let text = draft.sign(&clients[0]).replacen('{', "{\"z\":9007199254740993,", 1);
    let said = world.say_text(conn, format!("{{\"t\":\"send\",\"env\":{text}}}").as_bytes());
    assert_eq!(nacks(&said, conn), [(draft.ulid().to_string(), Code::InvalidRequest)]);
}

#[test]
fn a_header_of_exactly_the_limit_passes() {
    let clients = clients(2);
    let mut world = World::team(Config::new(RELAY), &clients);
    let conn = world.login(&clients[0]);
    let header = |env: &Arc<str>| env.len() - r#""body":"","#.len() - b64u::encode(&[7; 100]).len();
    let mut draft = world.draft(&clients[0], &clients[1]);
    draft.set("x", Value::text(""));
    let room = HEADER_BYTES - header(&draft.sign(&clients[0]));
    draft.set("x", Value::text("x".repeat(room + 1)));
    assert_eq!(refused(&mut world, conn, &draft.sign(&clients[0])), Code::TooLarge);
    draft.set("x", Value::text("x".repeat(room)));
    assert!(acked(&mut world, conn, &draft.sign(&clients[0])));
}

#[test]
fn a_body_of_exactly_the_limit_passes() {
    let clients = clients(2);
    let mut world = World::team(Config::new(RELAY), &clients);
    let conn = world.login(&clients[0]);
    let mut draft = world.draft(&clients[0], &clients[1]);
    assert!(acked(&mut world, conn, &draft.body(PLAINTEXT_BYTES + 16).sign(&clients[0])));
}

#[test]
fn both_ends_are_members_with_their_persons() {
    let clients = clients(4);
    let mut world = World::team(Config::new(RELAY), &clients);
    let conn = world.login(&clients[0]);
    let entry = world.author(&clients[0]).member_remove(&clients[3].machine()).unwrap();
    world.append_ok(conn, &entry);
    for to in [&clients[3], &Client::new(50)] {
        let env = world.draft(&clients[0], to).sign(&clients[0]);
        assert_eq!(refused(&mut world, conn, &env), Code::NotMember);
    }
    for end in ["from", "to"] {
        let mut draft = world.draft(&clients[0], &clients[1]);
        draft.set_in(end, "person", Value::text("p3"));
        assert_eq!(refused(&mut world, conn, &draft.sign(&clients[0])), Code::NotMember, "{end}");
    }
    // To itself: another session on the same machine.
    let env = world.draft(&clients[0], &clients[0]).sign(&clients[0]);
    let said = world.send(conn, &env);
    assert!(matches!(frames(&said, conn)[..], [RelayFrame::Deliver { .. }, RelayFrame::Ack { .. }]));
}

#[test]
fn an_older_head_is_routed_and_a_false_one_is_not() {
    let clients = clients(3);
    let mut world = World::team(Config::new(RELAY), &clients);
    let conn = world.login(&clients[0]);
    let old = world.roster.entry(1).unwrap().hash();
    let mut draft = world.draft(&clients[0], &clients[1]);
    draft.set_in("anchor", "seq", Value::int(1)).set_in("anchor", "hash", Value::text(old.to_string()));
    assert!(acked(&mut world, conn, &draft.sign(&clients[0])));
    for (seq, hash) in [(0, old), (world.head().seq + 1, old), (u64::MAX >> 11, world.head().hash)] {
        let mut draft = world.draft(&clients[0], &clients[1]);
        draft.set_in("anchor", "seq", Value::int(seq));
        draft.set_in("anchor", "hash", Value::text(hash.to_string()));
        assert_eq!(refused(&mut world, conn, &draft.sign(&clients[0])), Code::RosterConflict);
    }
}

#[test]
fn the_four_rules_of_time_at_their_edges() {
    let clients = clients(2);
    let mut world = World::team(Config::new(RELAY), &clients);
    let conn = world.login(&clients[0]);
    let now = world.wall.0;
    for (ts, exp, taken) in [
        (now, now + 1, true),
        (now, now, false),
        (now + 1, now + 1, true),
        (now + 2, now + 1, false),
        (now + CLOCK_SKEW_MS, now + CLOCK_SKEW_MS, true),
        (now + CLOCK_SKEW_MS + 1, now + CLOCK_SKEW_MS + 1, false),
        (now, now + TTL_MS, true),
        (now, now + TTL_MS + 1, false),
        (now - TTL_MS + 1, now + 1, true),
        (now - TTL_MS, now + 1, false),
    ] {
        let mut draft = world.draft(&clients[0], &clients[1]);
        draft.set("ts", Value::int(ts)).set("exp", Value::int(exp));
        let env = draft.sign(&clients[0]);
        if taken {
            assert!(acked(&mut world, conn, &env), "{ts} {exp}");
        } else {
            assert_eq!(refused(&mut world, conn, &env), Code::Expired, "{ts} {exp}");
        }
    }
}
