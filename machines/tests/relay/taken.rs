//! Dedupe and queue caps: the last two rows of contract wire-core §7.6.

use crate::support::{Client, Crash, World, closes, counts, frames, nacks};
use messaging_machines::relay::Config;
use messaging_machines::relay::io::{ConnId, Count, Effect, Log};
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, RelayFrame};
use messaging_proto::json::{Value, canonicalize, parse_wire};
use messaging_proto::limits::CLOCK_SKEW_MS;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
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
    let [(_, code)] = &nacks(&said, conn)[..] else { panic!("{said:?}") };
    assert_eq!(world.rows(), rows, "nothing is stored");
    *code
}

#[test]
fn an_identical_resend_is_acked_again_and_another_content_is_not() {
    let clients = clients(3);
    let mut world = World::team(Config::new(RELAY), &clients);
    let conn = world.login(&clients[0]);
    let recipient = world.login(&clients[1]);
    let draft = world.draft(&clients[0], &clients[1]);
    let env = draft.sign(&clients[0]);
    let said = world.send(conn, &env);
    assert_eq!(frames(&said, recipient).len(), 1);
    let rows = world.rows();
    let mut changed = draft.clone();
    changed.body(101);
    let elsewhere = {
        let mut other = draft.clone();
        other.set_in("to", "device", Value::text(clients[2].machine().to_string()));
        other.set_in("to", "person", Value::text("p3"));
        other
    };
    for stored in [true, false] {
        let said = world.send(conn, &env);
        assert_eq!(frames(&said, conn), [RelayFrame::Ack { id: draft.ulid() }]);
        assert!(frames(&said, recipient).is_empty(), "not delivered again");
        // The same members in another order and with spaces are the same JCS.
        let value = parse_wire(env.as_bytes(), 1 << 20).unwrap();
        let mut members: Vec<String> = value
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| format!("\"{name}\": {}", canonicalize(value).unwrap()))
            .collect();
        members.reverse();
        let loose = format!("{{\"env\": {{{}}}, \"t\": \"send\"}}", members.join(" ,"));
        let said = world.say_text(conn, loose.as_bytes());
        assert_eq!(frames(&said, conn), [RelayFrame::Ack { id: draft.ulid() }]);
        assert_eq!(refused(&mut world, conn, &changed.sign(&clients[0])), Code::InvalidRequest);
        assert_eq!(refused(&mut world, conn, &elsewhere.sign(&clients[0])), Code::InvalidRequest);
        if stored {
            assert_eq!(world.rows(), rows);
            // Also when it waits no more.
            world.ack(recipient, &clients[0], &draft);
            assert_eq!(world.count_rows("relay.envelope"), 0);
        }
    }
    // Another machine's id is another id.
    let other = world.login(&clients[2]);
    let mut same_id = world.draft(&clients[2], &clients[1]);
    same_id.set("id", Value::text(draft.ulid().to_string()));
    assert!(acked(&mut world, other, &same_id.sign(&clients[2])));
}

#[test]
fn an_id_is_taken_until_its_end_and_the_skew() {
    let clients = clients(2);
    let mut world = World::team(Config::new(RELAY), &clients);
    let conn = world.login(&clients[0]);
    let mut draft = world.draft(&clients[0], &clients[1]);
    let end = world.wall.0 + 10_000;
    draft.set("exp", Value::int(end));
    assert!(acked(&mut world, conn, &draft.sign(&clients[0])));
    let mut again = draft.clone();
    again.set("exp", Value::int(world.wall.0 + 900_000));
    for quietly in [false, true] {
        // With and without the purge having come by.
        world.wall = Wall(end + CLOCK_SKEW_MS - 1);
        let mut later = again.clone();
        later.set("ts", Value::int(world.wall.0)).set("exp", Value::int(world.wall.0 + 900_000));
        assert_eq!(refused(&mut world, conn, &later.sign(&clients[0])), Code::InvalidRequest);
        world.wall = world.wall.plus(1);
        if quietly {
            world.mono = world.mono.plus(60_000);
            world.settle();
            assert_eq!(world.count_rows("relay.seen"), 0);
            assert_eq!(world.count_rows("relay.expiry"), 0);
        }
        let mut trial = World::team(Config::new(RELAY), &clients);
        std::mem::swap(&mut trial.base, &mut world.base);
        let kept = trial.base.clone();
        trial.wall = world.wall;
        trial.crash(Crash::Lost);
        let fresh = trial.login(&clients[0]);
        assert!(acked(&mut trial, fresh, &later.sign(&clients[0])), "quietly: {quietly}");
        assert_eq!(trial.count_rows("relay.seen"), 1);
        assert_eq!(trial.count_rows("relay.order"), 1);
        world.base = kept;
    }
}

#[test]
fn an_id_that_comes_again_after_its_end_is_an_envelope_of_its_own() {
    let clients = clients(2);
    let mut world = World::team(Config::new(RELAY), &clients);
    let sender = world.login(&clients[0]);
    let conn = world.login(&clients[1]);
    let mut draft = world.draft(&clients[0], &clients[1]);
    draft.set("exp", Value::int(world.wall.0 + 10_000));
    world.send(sender, &draft.sign(&clients[0]));
    // The wall clock is far ahead, the purge has not come by, and the first one is still on its way.
    world.mono = world.mono.plus(900);
    world.wall = world.wall.plus(10_000 + CLOCK_SKEW_MS);
    draft.set("ts", Value::int(world.wall.0)).set("exp", Value::int(world.wall.0 + 900_000));
    let env = draft.sign(&clients[0]);
    let deliver = [RelayFrame::Deliver { env: Arc::clone(&env) }];
    assert_eq!(frames(&world.send(sender, &env), conn), deliver);
    assert_eq!(world.count_rows("relay.envelope"), 1);
    assert!(frames(&world.pass(9_999), conn).is_empty(), "its delays are its own");
    assert_eq!(frames(&world.pass(1), conn), deliver);
}

#[test]
fn queue_caps_by_sender_machine_and_whole() {
    let clients = clients(4);
    let mut config = Config::new(RELAY);
    config.limits.queue_per_sender = 2;
    config.limits.queue_per_machine = 3;
    config.limits.queue_rows = 5;
    config.limits.frames_per_minute = 10_000;
    let mut world = World::team(config, &clients);
    let a = world.login(&clients[0]);
    let b = world.login(&clients[1]);
    let send = |world: &mut World, conn, from: usize, to: usize| {
        let env = world.draft(&clients[from], &clients[to]).sign(&clients[from]);
        world.send(conn, &env)
    };
    let ok = |said: &[Effect], conn| nacks(said, conn).is_empty();
    assert!(ok(&send(&mut world, a, 0, 2), a));
    let mut ending = world.draft(&clients[0], &clients[2]);
    ending.set("exp", Value::int(world.wall.0 + 5_000));
    assert!(acked(&mut world, a, &ending.sign(&clients[0])));
    let said = send(&mut world, a, 0, 2);
    assert_eq!(nacks(&said, a)[0].1, Code::RateLimited, "two from one sender");
    assert_eq!(counts(&said), [Count::QueueFull, Count::Nack(Code::RateLimited)]);
    assert!(!said.contains(&Effect::Log(Log::QueueFull)), "logged for the whole queue alone");
    assert!(ok(&send(&mut world, b, 1, 2), b), "the other sender has room");
    assert!(!ok(&send(&mut world, b, 1, 2), b), "three for one machine");
    assert!(ok(&send(&mut world, b, 1, 3), b), "another recipient has room");
    assert!(ok(&send(&mut world, b, 1, 3), b));
    let said = send(&mut world, a, 0, 3);
    assert!(!ok(&said, a), "five in all");
    assert!(said.contains(&Effect::Log(Log::QueueFull)));
    assert!(!send(&mut world, a, 0, 3).contains(&Effect::Log(Log::QueueFull)), "not at every send");
    // An envelope that ended does not count, even before the purge comes by.
    world.config.limits.queue_rows = 100;
    world.crash(Crash::Lost);
    let a = world.login(&clients[0]);
    assert!(!ok(&send(&mut world, a, 0, 2), a));
    world.wall = world.wall.plus(5_000);
    assert!(ok(&send(&mut world, a, 0, 2), a));
    assert!(!ok(&send(&mut world, a, 0, 2), a));
    // An ack makes room.
    let c = world.login(&clients[2]);
    assert!(!ok(&send(&mut world, a, 0, 2), a));
    let env = frames(&world.effects, c).into_iter().find_map(|frame| match frame {
        RelayFrame::Deliver { env } if env.contains(&clients[0].machine().to_string()) => Some(env),
        _ => None,
    });
    let value = parse_wire(env.unwrap().as_bytes(), 1 << 20).unwrap();
    let id = Ulid::parse(value.get("id").and_then(Value::as_str).unwrap()).unwrap();
    world.say(c, &ClientOutbound::RecvAck { from: clients[0].machine(), id });
    assert!(ok(&send(&mut world, a, 0, 2), a));
}

/// The caps of the whole queue count what has not ended, too: the purge is not waited for.
#[test]
fn what_has_ended_leaves_the_whole_queue_at_once() {
    let clients = clients(3);
    for by_bytes in [false, true] {
        let mut config = Config::new(RELAY);
        config.limits.queue_rows = if by_bytes { 1_000 } else { 3 };
        config.limits.frames_per_minute = 10_000;
        let mut world = World::team(config.clone(), &clients);
        let conn = world.login(&clients[0]);
        let drafts: Vec<_> = [1, 2, 1]
            .into_iter()
            .zip(5_000..)
            .map(|(to, end)| {
                let mut draft = world.draft(&clients[0], &clients[to]);
                draft.set("exp", Value::int(world.wall.0 + end)).sign(&clients[0])
            })
            .collect();
        if by_bytes {
            world.config.limits.queue_bytes = drafts.iter().map(|env| env.len() as u64).sum();
            world.crash(Crash::Lost);
        }
        let conn = if by_bytes { world.login(&clients[0]) } else { conn };
        let (recipient, _) = world.connect(&clients[1]);
        for env in &drafts {
            assert!(acked(&mut world, conn, env));
        }
        // The timers of the purge are never reached: only the wall clock goes on.
        let start = world.wall;
        world.wall = start.plus(4_999);
        let env = world.draft(&clients[0], &clients[2]).sign(&clients[0]);
        assert_eq!(refused(&mut world, conn, &env), Code::RateLimited, "nothing has ended");
        world.wall = start.plus(5_000);
        let said = world.send(conn, &env);
        assert!(matches!(frames(&said, conn)[..], [RelayFrame::Ack { .. }]), "{said:?}");
        assert_eq!(counts(&said), [Count::Purged("queue", 1)]);
        let next = world.draft(&clients[0], &clients[2]).sign(&clients[0]);
        assert_eq!(refused(&mut world, conn, &next), Code::RateLimited, "one ended, one came");
        world.wall = start.plus(5_002);
        assert!(acked(&mut world, conn, &next));
        assert_eq!(world.count_rows("relay.order"), 2, "both others are gone");
        assert!(closes(&world.settle(), recipient).is_empty());
    }
}

#[test]
fn queue_caps_by_bytes() {
    let clients = clients(3);
    let size = {
        let mut world = World::team(Config::new(RELAY), &clients);
        world.draft(&clients[0], &clients[1]).sign(&clients[0]).len() as u64
    };
    let mut config = Config::new(RELAY);
    config.limits.queue_bytes_per_machine = 2 * size;
    config.limits.queue_bytes = 3 * size;
    let mut world = World::team(config, &clients);
    let conn = world.login(&clients[0]);
    for (to, taken) in [(1, true), (1, true), (1, false), (2, true), (2, false)] {
        let env = world.draft(&clients[0], &clients[to]).sign(&clients[0]);
        assert_eq!(acked(&mut world, conn, &env), taken);
    }
}

#[test]
fn a_phantom_commit_is_no_second_envelope() {
    let clients = clients(2);
    let mut world = World::team(Config::new(RELAY), &clients);
    let conn = world.login(&clients[0]);
    let draft = world.draft(&clients[0], &clients[1]);
    let env = draft.sign(&clients[0]);
    world.commits = false;
    world.send(conn, &env);
    // The resend is acked by the open transaction, and waits for it.
    world.send(conn, &env);
    world.commits = true;
    world.crash(Crash::Phantom);
    let conn = world.login(&clients[0]);
    assert!(acked(&mut world, conn, &env));
    assert_eq!(world.count_rows("relay.envelope"), 1);
}
