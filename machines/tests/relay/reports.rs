//! Faults that users of such relays reported, tried here. Numbers are those of our collection.

use crate::support::{Client, Draft, World, closes, frames, nacks};
use messaging_machines::relay::Config;
use messaging_machines::relay::io::{ConnId, Effect, Event, Unreadable};
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, RelayFrame};
use messaging_proto::json::Value;
use messaging_proto::limits::CLOCK_SKEW_MS;
use messaging_proto::name::TeamName;
use messaging_proto::realm::Role;
use messaging_proto::roster::{ApplyOptions, Roster, genesis};
use std::sync::Arc;

const RELAY: &str = "wss://relay.example";

fn clients(count: u8) -> Vec<Client> {
    (1..=count).map(Client::new).collect()
}

fn config() -> Config {
    let mut config = Config::new(RELAY);
    config.limits.frames_per_minute = 1_000_000;
    config
}

fn deliveries(effects: &[Effect], conn: ConnId) -> usize {
    frames(effects, conn).iter().filter(|frame| matches!(frame, RelayFrame::Deliver { .. })).count()
}

/// Acked in time, redelivered all the same.
#[test]
fn report_13_an_ack_in_time_and_the_timer_in_one_turn() {
    let clients = clients(2);
    for ack_first in [true, false] {
        let mut config = config();
        config.limits.redeliver_min_ms = 1_500;
        let mut world = World::team(config, &clients);
        let sender = world.login(&clients[0]);
        let conn = world.login(&clients[1]);
        let draft = world.draft(&clients[0], &clients[1]);
        world.send(sender, &draft.sign(&clients[0]));
        // The ack and the timer in one turn.
        world.mono = world.mono.plus(1_500);
        let mut said = Vec::new();
        if ack_first {
            said.extend(world.ack(conn, &clients[0], &draft));
            said.extend(world.step(Event::Timer));
        } else {
            said.extend(world.step(Event::Timer));
            said.extend(world.ack(conn, &clients[0], &draft));
        }
        assert_eq!(deliveries(&said, conn), usize::from(!ack_first));
        assert_eq!(deliveries(&world.pass(80_000), conn), 0);
    }
}

/// Outstanding deliveries pass their limit, and the consumer is idle for ever.
#[test]
fn report_15() {
    let clients = clients(2);
    let mut world = World::team(config(), &clients);
    let sender = world.login(&clients[0]);
    let conn = world.login(&clients[1]);
    let keep_alive = |world: &mut World| {
        for conn in [sender, conn] {
            world.say(conn, &ClientOutbound::Pong { n: None });
        }
    };
    let send = |world: &mut World, ttl: u64| -> Draft {
        let mut draft = world.draft(&clients[0], &clients[1]);
        draft.set("exp", Value::int(world.wall.0 + ttl));
        assert!(nacks(&world.send(sender, &draft.sign(&clients[0])), sender).is_empty());
        draft
    };
    // The window is full of what ends soon, and as much waits behind it.
    let ending: Vec<Draft> = (0..64).map(|_| send(&mut world, 45_000)).collect();
    let waiting: Vec<Draft> = (0..100).map(|_| send(&mut world, 10_000_000)).collect();
    let mut redelivered = 0;
    for _ in 0..4 {
        redelivered += deliveries(&world.pass(10_000), conn);
        keep_alive(&mut world);
    }
    assert_eq!(redelivered, 128, "at 10 s and at 30 s");
    // They end; their room is free.
    let said = world.pass(6_000);
    assert_eq!(deliveries(&said, conn), 64);
    // Acks for what has ended change nothing, the first or the second time.
    for draft in ending.iter().chain(&ending) {
        assert_eq!(deliveries(&world.ack(conn, &clients[0], draft), conn), 0);
    }
    keep_alive(&mut world);
    let mut rest = 0;
    for draft in waiting.iter().chain(&waiting[..10]) {
        rest += deliveries(&world.ack(conn, &clients[0], draft), conn);
    }
    assert_eq!(rest, 36);
    assert_eq!(world.count_rows("relay.envelope"), 0);
    // And the window is whole again.
    let from = world.effects.len();
    (0..70).for_each(|_| drop(send(&mut world, 10_000_000)));
    assert_eq!(deliveries(&world.effects[from..], conn), 64);
}

/// One machine key in two teams; a genesis for a team that exists.
#[test]
fn report_19() {
    let clients = clients(3);
    let mut world = World::team(config(), &clients[..2]);
    // The second team of the first machine, with the third one.
    let name = TeamName::parse("other").unwrap();
    let entry = genesis(&clients[0].key, world.wall, &name, &clients[0].member(Role::Admin)).unwrap();
    let (conn, _) = world.open();
    assert!(nacks(&world.append(conn, &entry), conn).is_empty());
    let said = world.append(conn, &entry);
    assert_eq!(nacks(&said, conn), [("77".to_owned(), Code::RosterConflict)], "not internal");
    let mut other = Roster::new();
    other.apply(&entry, ApplyOptions::STORED).unwrap();
    let first_team = std::mem::replace(&mut world.roster, other);
    let admin = world.login(&clients[0]);
    let entry = world.author(&clients[0]).member_add(&clients[2].member(Role::Member)).unwrap();
    world.append_ok(admin, &entry);
    // Both teams at once: separate links, queues and ids.
    let second_team = std::mem::replace(&mut world.roster, first_team);
    let in_first = world.login(&clients[0]);
    assert!(closes(&world.effects, admin).is_empty(), "one connection a team");
    let to_second_member = world.draft(&clients[0], &clients[1]);
    let env = to_second_member.sign(&clients[0]);
    world.send(in_first, &env);
    let first_team = std::mem::replace(&mut world.roster, second_team);
    let mut same_id = world.draft(&clients[0], &clients[2]);
    same_id.set("id", Value::text(to_second_member.ulid().to_string()));
    let said = world.send(admin, &same_id.sign(&clients[0]));
    assert!(nacks(&said, admin).is_empty(), "{said:?}");
    assert_eq!(nacks(&world.send(admin, &env), admin)[0].1, Code::NotMember, "another realm");
    let third = world.login(&clients[2]);
    assert_eq!(deliveries(&world.effects, third), 1);
    world.roster = first_team;
    let second = world.login(&clients[1]);
    assert_eq!(deliveries(&world.effects, second), 1);
}

/// One oversized frame takes the process down. Here: what the machine does when the adapter says so.
#[test]
fn report_31() {
    let clients = clients(2);
    let mut world = World::team(config(), &clients);
    let honest = world.login(&clients[0]);
    for live in [true, false] {
        for _ in 0..3 {
            let conn = if live { world.login(&clients[1]) } else { world.open().0 };
            let rows = world.rows();
            let said = world.step(Event::Unreadable { conn, why: Unreadable::TooLarge });
            assert_eq!(closes(&said, conn), [1009]);
            assert!(frames(&said, conn).is_empty());
            assert!(world.say(conn, &ClientOutbound::Ping { n: None }).is_empty());
            assert!(closes(&said, honest).is_empty(), "that socket only");
            assert_eq!(world.rows(), rows);
            world.close(conn);
        }
    }
    assert_eq!(frames(&world.say(honest, &ClientOutbound::Ping { n: None }), honest).len(), 1);
}

/// One full queue stops everybody.
#[test]
fn report_35() {
    let clients = clients(4);
    let mut world = World::team(config(), &clients);
    let a = world.login(&clients[0]);
    let b = world.login(&clients[1]);
    for _ in 0..1_000 {
        let env = world.draft(&clients[0], &clients[2]).sign(&clients[0]);
        assert!(nacks(&world.send(a, &env), a).is_empty());
    }
    let env = world.draft(&clients[0], &clients[2]).sign(&clients[0]);
    assert_eq!(nacks(&world.send(a, &env), a)[0].1, Code::RateLimited);
    // Its other recipients, and other senders to the same one, go on in the same step.
    let online = world.login(&clients[3]);
    let env = world.draft(&clients[0], &clients[3]).sign(&clients[0]);
    assert_eq!(deliveries(&world.send(a, &env), online), 1);
    let env = world.draft(&clients[1], &clients[2]).sign(&clients[1]);
    let said = world.send(b, &env);
    assert!(matches!(frames(&said, b)[..], [RelayFrame::Ack { .. }]));
    let (conn, mut said) = world.connect(&clients[2]);
    said.extend(world.settle());
    assert_eq!(deliveries(&said, conn), 65, "a window of A's and the one of B's");
}

/// Mail of removed devices stays for ever, and they still send.
#[test]
fn report_57() {
    let clients = clients(4);
    for online in [true, false] {
        for half_open in [true, false] {
            let mut world = World::team(config(), &clients);
            let admin = world.login(&clients[0]);
            let gone = world.login(&clients[1]);
            let other = world.login(&clients[2]);
            // Queued both ways, more than one step deletes; to one online and one offline.
            for _ in 0..300 {
                for (conn, from, to) in [(admin, 0, 1), (gone, 1, 2), (gone, 1, 3), (admin, 0, 3)] {
                    let env = world.draft(&clients[from], &clients[to]).sign(&clients[from]);
                    assert!(nacks(&world.send(conn, &env), conn).is_empty());
                }
            }
            let env = world.presence_draft(&clients[1], 1).sign(&clients[1]);
            world.say(gone, &ClientOutbound::Presence { env });
            if !online && !half_open {
                world.close(gone);
            }
            let in_flight = world.draft(&clients[1], &clients[2]).sign(&clients[1]);
            let entry = world.author(&clients[0]).member_remove(&clients[1].machine()).unwrap();
            let said = world.append_ok(admin, &entry);
            assert_eq!(closes(&said, gone), if online || half_open { vec![4003] } else { vec![] });
            // Mid-send, over the link that is being closed.
            assert!(world.send(gone, &in_flight).is_empty());
            // A link that opens before all rows are gone is sent none of them.
            let late = world.login(&clients[3]);
            let from_gone = |effects: &[Effect], conn: ConnId| {
                frames(effects, conn)
                    .into_iter()
                    .filter(|frame| match frame {
                        RelayFrame::Deliver { env } => sender(env) == clients[1].machine().to_string(),
                        _ => false,
                    })
                    .count()
            };
            assert_eq!(from_gone(&world.effects, late), 0);
            let at = world.effects.len();
            // Redeliveries fall due in the very step that deletes more of it.
            world.mono = world.mono.plus(15_000);
            let mut said = world.step(Event::Timer);
            said.extend(world.pass(65_000));
            assert_eq!(from_gone(&said, other), 0, "nor again to who had not acked");
            assert_eq!(from_gone(&world.effects[at..], late), 0);
            // What is left is the admin's to the fourth.
            assert_eq!(world.count_rows("relay.envelope"), 300);
            assert_eq!(world.count_rows("relay.order"), 300);
            assert_eq!(world.count_rows("relay.presence"), 0);
            assert_eq!(world.count_rows("relay.sweep"), 0);
            // Sending to it and from it is refused everywhere.
            let admin = world.login(&clients[0]);
            let env = world.draft(&clients[0], &clients[1]).sign(&clients[0]);
            assert_eq!(nacks(&world.send(admin, &env), admin)[0].1, Code::NotMember);
            assert_eq!(nacks(&world.send(admin, &in_flight), admin)[0].1, Code::Forbidden);
            let (conn, said) = world.connect(&clients[1]);
            assert_eq!(closes(&said, conn), [4001]);
            // Its ids are forgotten in their time.
            world.mono = world.mono.plus(60_000);
            world.wall = world.wall.plus(crate::support::DAY + CLOCK_SKEW_MS);
            world.pass(1_000);
            assert_eq!(world.count_rows("relay.seen"), 0);
            assert_eq!(world.count_rows("relay.expiry"), 0);
            assert_eq!(world.count_rows("relay.envelope"), 0);
        }
    }
}

fn sender(env: &Arc<str>) -> String {
    let value = messaging_proto::json::parse_wire(env.as_bytes(), 1 << 20).unwrap();
    value.get("from").and_then(|from| from.get("device")).and_then(Value::as_str).unwrap().to_owned()
}
