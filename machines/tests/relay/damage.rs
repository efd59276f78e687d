//! A damaged row is no failing store: whoever it does not concern notices nothing (`messaging/1 §7`, "Store failures").

use crate::support::{Client, World, closes, frames, nacks};
use messaging_machines::relay::io::{ConnId, Effect, Event, Log};
use messaging_machines::relay::schema::TABLES;
use messaging_machines::relay::{Config, Relay};
use messaging_machines::store::{Base, MemoryBase, Range, Table, Writes};
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, RelayFrame, Req};
use messaging_proto::json::parse_wire;
use messaging_proto::name::TeamName;
use messaging_proto::realm::Role;
use messaging_proto::roster::genesis;
use std::collections::BTreeMap;
use std::ops::Bound;

fn table(name: &str) -> Table {
    *TABLES.iter().find(|table| table.0 == name).unwrap()
}

fn rows(base: &MemoryBase, name: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let all = Range { from: Bound::Unbounded, to: Bound::Unbounded, reverse: false, limit: usize::MAX };
    base.range(table(name), all).unwrap()
}

/// Flips a bit of a row.
fn flip(world: &mut World, name: &str, key: &[u8], at: usize) {
    let (_, mut row) = rows(&world.base, name).into_iter().find(|(one, _)| one == key).unwrap();
    let at = at % row.len();
    row[at] ^= 0x10;
    let mut writes = Writes::new();
    writes.write(table(name), key.to_vec(), Some(row));
    world.base.apply(&writes);
}

/// A new machine over the store as it is.
fn restart(world: &mut World) -> Vec<Effect> {
    world.relay = Relay::new(world.config.clone());
    world.step(Event::Start)
}

fn damage(effects: &[Effect]) -> Vec<(&'static str, u64, u64)> {
    let log = |effect: &Effect| match effect {
        Effect::Log(Log::Damaged { table, rows, lost }) => Some((*table, *rows, *lost)),
        _ => None,
    };
    effects.iter().filter_map(log).collect()
}

fn delivered(effects: &[Effect], conn: ConnId) -> Vec<String> {
    let text = |frame: RelayFrame| match frame {
        RelayFrame::Deliver { env } => Some(env.to_string()),
        _ => None,
    };
    frames(effects, conn).into_iter().filter_map(text).collect()
}

/// Two members with five envelopes from the one waiting for the other, and a presence of the one.
fn waiting() -> (World, [Client; 2], Vec<String>) {
    let clients = [Client::new(1), Client::new(2)];
    let mut world = World::team(Config::new("wss://relay.example"), &clients);
    let conn = world.login(&clients[0]);
    let mut texts = Vec::new();
    for _ in 0..5 {
        let draft = world.draft(&clients[0], &clients[1]);
        let env = draft.sign(&clients[0]);
        texts.push(env.to_string());
        let said = world.send(conn, &env);
        assert!(matches!(frames(&said, conn)[..], [RelayFrame::Ack { .. }]), "{said:?}");
    }
    let presence = world.presence_draft(&clients[0], 1);
    world.say(conn, &ClientOutbound::Presence { env: presence.sign(&clients[0]) });
    world.close(conn);
    (world, clients, texts)
}

/// Every bit of both rows of an envelope: the others are delivered in order, what cannot be is told with its count, once.
#[test]
fn a_damaged_envelope_is_never_delivered_and_never_silently_lost() {
    for name in ["relay.envelope", "relay.order"] {
        let (world, ..) = waiting();
        let length = rows(&world.base, name)[2].1.len();
        drop(world);
        for at in (0..length).step_by((length / 40).max(1)) {
            let (mut world, clients, texts) = waiting();
            let key = rows(&world.base, name)[2].0.clone();
            flip(&mut world, name, &key, at);
            restart(&mut world);
            let (conn, mut said) = world.connect(&clients[1]);
            said.extend(world.settle());
            let mut expected = texts.clone();
            expected.remove(2);
            let mut got = delivered(&said, conn);
            assert!(got.iter().all(|env| parse_wire(env.as_bytes(), 1 << 20).is_ok()));
            got.retain(|env| texts.contains(env));
            assert_eq!(got, expected, "{name} {at}");
            assert_eq!(damage(&said), [(name.strip_prefix("relay.").unwrap(), 1, 1)], "{name} {at}");
            // Cleared away: the next link hears of nothing.
            world.close(conn);
            let (_, mut again) = world.connect(&clients[1]);
            again.extend(world.settle());
            assert!(damage(&again).is_empty());
            assert_eq!(
                (rows(&world.base, "relay.order").len(), rows(&world.base, "relay.envelope").len()),
                (4, 4)
            );
        }
    }
}

/// A row that is damaged while its envelope is on its way leaves its window room.
#[test]
fn a_redelivery_that_is_damaged_frees_its_window() {
    let (mut world, clients, texts) = waiting();
    let (conn, mut said) = world.connect(&clients[1]);
    said.extend(world.settle());
    assert_eq!(delivered(&said, conn).len(), 6, "a presence and five");
    let key = rows(&world.base, "relay.envelope")[0].0.clone();
    flip(&mut world, "relay.envelope", &key, 40);
    let said = world.pass(10_000);
    assert_eq!(delivered(&said, conn), texts[1..]);
    assert_eq!(damage(&said), [("envelope", 1, 1)]);
    assert!(damage(&world.pass(60_000)).is_empty());
}

/// Any one row of any table, any bit: another team works on, and nothing stops.
#[test]
fn one_damaged_row_stops_nobody_else() {
    let other = Client::new(9);
    let prepare = || {
        let (mut world, clients, _) = waiting();
        let name = TeamName::parse("other").unwrap();
        let entry = genesis(&other.key, world.wall, &name, &other.member(Role::Admin)).unwrap();
        let (conn, _) = world.open();
        let said = world.append(conn, &entry);
        let head = match &frames(&said, conn)[..] {
            [RelayFrame::RosterOk { head, .. }] => *head,
            other => panic!("{other:?}"),
        };
        world.close(conn);
        (world, clients, head.hash)
    };
    let (world, _, others) = prepare();
    let mut tried: BTreeMap<&str, u32> = BTreeMap::new();
    for (name, key, row) in world.rows().into_iter().filter(|(name, ..)| *name != "meta") {
        // The other team's own rows are another test's.
        if key.starts_with(others.as_bytes()) {
            continue;
        }
        for at in [0, row.len() / 2, row.len() - 1] {
            *tried.entry(name).or_default() += 1;
            let (mut world, clients, _) = prepare();
            flip(&mut world, name, &key, at);
            restart(&mut world);
            // Whoever it concerns, with everything it may ask.
            for client in &clients {
                let (conn, said) = world.connect(client);
                if matches!(frames(&said, conn).first(), Some(RelayFrame::Welcome { .. })) {
                    let to = if client.machine() == clients[0].machine() { &clients[1] } else { &clients[0] };
                    let draft = world.draft(client, to);
                    let said = world.send(conn, &draft.sign(client));
                    let refused = nacks(&said, conn).iter().any(|(_, code)| *code == Code::Internal);
                    let acked =
                        frames(&said, conn).iter().any(|frame| matches!(frame, RelayFrame::Ack { .. }));
                    assert!(refused || acked, "{name} {said:?}");
                } else {
                    let told =
                        matches!(frames(&said, conn)[..], [RelayFrame::Error { code: Code::Internal, .. }]);
                    assert!(told, "{name} {at} {said:?}");
                    assert_eq!(closes(&said, conn), [1013]);
                }
                world.settle();
                world.close(conn);
            }
            // And the other team.
            let (conn, nonce) = world.open();
            let claim = messaging_proto::frame::HelloClaim {
                relay: "wss://relay.example",
                nonce: &nonce,
                team: &others,
                ts: world.wall,
            };
            let hello = messaging_proto::frame::sign_hello(&other.key, &claim).unwrap();
            let said = world.say(conn, &ClientOutbound::Hello(hello));
            assert!(
                matches!(frames(&said, conn).first(), Some(RelayFrame::Welcome { .. })),
                "{name} {said:?}"
            );
            let said = world.say(conn, &ClientOutbound::RosterSync { req: Req::of(1), after: -1 });
            assert!(matches!(frames(&said, conn)[..], [RelayFrame::RosterEntries { .. }]));
            // Everything ends at its time.
            world.pass(9 * 86_400_000);
            assert_eq!(rows(&world.base, "relay.envelope").len(), rows(&world.base, "relay.order").len());
        }
    }
    let tables: Vec<&str> = tried.keys().copied().collect();
    let expected = ["count", "envelope", "expiry", "order", "presence", "roster", "seat", "seen", "team"];
    assert_eq!(tables, expected.map(|name| format!("relay.{name}")));
}

/// Totals that do not read are counted again, and no seat or position is given twice.
#[test]
fn totals_are_counted_again() {
    let (mut world, ..) = waiting();
    let before = rows(&world.base, "relay.count");
    for (key, _) in &before {
        flip(&mut world, "relay.count", key, 5);
    }
    let said = restart(&mut world);
    assert_eq!(damage(&said), [("count", 2, 0)]);
    let admin = world.login(&Client::new(1));
    let third = Client::new(3);
    let entry = world.author(&Client::new(1)).member_add(&third.member(Role::Member)).unwrap();
    world.append_ok(admin, &entry);
    let seats = rows(&world.base, "relay.seat");
    let numbers: std::collections::BTreeSet<_> = seats.iter().map(|(_, seat)| seat.clone()).collect();
    assert_eq!((seats.len(), numbers.len()), (3, 3));
    let draft = world.draft(&Client::new(1), &third);
    world.send(admin, &draft.sign(&Client::new(1)));
    assert_eq!(rows(&world.base, "relay.envelope").len(), 6, "no position was used twice");
}

/// What a relay before this one wrote, without sums, is read.
#[test]
fn rows_of_the_first_form_are_read() {
    let (mut world, clients, texts) = waiting();
    let mut writes = Writes::new();
    for (name, key, row) in world.rows() {
        if matches!(name, "meta" | "relay.roster") {
            continue;
        }
        let mut old = row[..row.len() - 4].to_vec();
        old[0] = 1;
        let old = if name == "relay.seat" { old[1..].to_vec() } else { old };
        writes.write(table(name), key, Some(old));
    }
    world.base.apply(&writes);
    assert!(damage(&restart(&mut world)).is_empty());
    let (conn, mut said) = world.connect(&clients[1]);
    said.extend(world.settle());
    assert_eq!(delivered(&said, conn)[1..], texts);
    assert!(damage(&said).is_empty());
}
