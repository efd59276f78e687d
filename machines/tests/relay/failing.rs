//! While the store takes no writes, reading goes on (`messaging/1 §7`, "Store failures").

use crate::support::{Client, World, closes, frames, nacks};
use messaging_machines::relay::io::{ConnId, Effect, Event};
use messaging_machines::relay::{Config, Relay};
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, RelayFrame, Req};
use messaging_proto::json::parse_wire;
use messaging_proto::name::TeamName;
use messaging_proto::realm::Role;
use messaging_proto::roster::genesis as genesis_of;

fn delivered(effects: &[Effect], conn: ConnId) -> Vec<String> {
    let text = |frame: RelayFrame| match frame {
        RelayFrame::Deliver { env } => Some(env.to_string()),
        _ => None,
    };
    frames(effects, conn).into_iter().filter_map(text).collect()
}

/// The machine that a driver builds when a write failed, told of the connections that stay.
fn fail(world: &mut World, live: &[(ConnId, &Client)]) -> Vec<Effect> {
    world.relay = Relay::new(world.config.clone());
    let mut said = world.step(Event::Store { failing: true });
    said.extend(world.step(Event::Start));
    for (conn, client) in live {
        let (team, machine) = (world.team_id(), client.machine());
        let address = "192.0.2.1".to_owned();
        said.extend(world.step(Event::Resumed { conn: *conn, address, team, machine }));
    }
    said
}

#[test]
fn what_only_reads_goes_on_and_what_would_write_is_internal() {
    let clients = [Client::new(1), Client::new(2), Client::new(3)];
    let mut config = Config::new("wss://relay.example");
    config.limits.delivery_window = 3;
    let mut world = World::team(config, &clients);
    let alice = world.login(&clients[0]);
    let mut texts = Vec::new();
    let mut drafts = Vec::new();
    for _ in 0..10 {
        let draft = world.draft(&clients[0], &clients[1]);
        let env = draft.sign(&clients[0]);
        world.send(alice, &env);
        texts.push(env.to_string());
        drafts.push(draft);
    }
    let before = world.rows();
    fail(&mut world, &[(alice, &clients[0])]);

    // A `hello`, with its backlog up to the window.
    let (bob, mut said) = world.connect(&clients[1]);
    said.extend(world.settle());
    assert!(matches!(frames(&said, bob).first(), Some(RelayFrame::Welcome { .. })), "{said:?}");
    assert_eq!(delivered(&said, bob), texts[..3]);
    // A roster, an answer to a ping, an envelope that was taken before.
    let said = world.say(bob, &ClientOutbound::RosterSync { req: Req::of(1), after: -1 });
    assert!(matches!(frames(&said, bob)[..], [RelayFrame::RosterEntries { .. }]));
    let said = world.say(bob, &ClientOutbound::Ping { n: Some(1) });
    assert_eq!(frames(&said, bob), [RelayFrame::Pong { n: Some(1) }]);
    let again = drafts[0].sign(&clients[0]);
    assert!(matches!(frames(&world.send(alice, &again), alice)[..], [RelayFrame::Ack { .. }]));
    // What is refused anyway keeps its own code; what would be stored is `internal`.
    let fresh = world.draft(&clients[0], &clients[1]);
    let said = world.send(alice, &fresh.sign(&clients[1]));
    assert_eq!(nacks(&said, alice)[0].1, Code::BadSignature);
    let said = world.send(alice, &fresh.sign(&clients[0]));
    assert_eq!(nacks(&said, alice)[0].1, Code::Internal);
    let presence = world.presence_draft(&clients[0], 4).sign(&clients[0]);
    let said = world.say(alice, &ClientOutbound::Presence { env: presence });
    assert_eq!(nacks(&said, alice)[0].1, Code::Internal);
    let entry = world.author(&clients[0]).member_role(&clients[2].machine(), Role::Admin).unwrap();
    assert_eq!(nacks(&world.append(alice, &entry), alice)[0].1, Code::Internal);
    let (stranger, _) = world.open();
    let said = world.append(stranger, &entry);
    assert!(closes(&said, stranger).is_empty());
    assert_eq!(nacks(&said, stranger)[0].1, Code::Forbidden);
    let genesis = world.roster.entry(0).unwrap().text().clone();
    let genesis = parse_wire(genesis.as_bytes(), 1 << 20).unwrap();
    assert_eq!(nacks(&world.append(stranger, &genesis), stranger)[0].1, Code::RosterConflict);
    let name = TeamName::parse("another").unwrap();
    let another = genesis_of(&clients[2].key, world.wall, &name, &clients[2].member(Role::Admin)).unwrap();
    assert_eq!(nacks(&world.append(stranger, &another), stranger)[0].1, Code::Internal);
    // Acks are kept: not sent again, and the window does not move before the deletion.
    for draft in &drafts[..2] {
        assert!(delivered(&world.ack(bob, &clients[0], draft), bob).is_empty());
    }
    let said = world.pass(40_000);
    assert!(delivered(&said, bob).iter().all(|env| *env == texts[2]), "{said:?}");
    assert!(!delivered(&said, bob).is_empty());
    // Whatever time brings, nothing is written.
    world.pass(8 * 86_400_000);
    assert_eq!(world.rows(), before);
}

#[test]
fn a_presence_that_is_not_above_is_dropped_without_a_word_meanwhile_too() {
    let clients = [Client::new(1)];
    let mut world = World::team(Config::new("wss://relay.example"), &clients);
    let conn = world.login(&clients[0]);
    let present = |world: &mut World, seq| {
        let env = world.presence_draft(&clients[0], seq).sign(&clients[0]);
        world.say(conn, &ClientOutbound::Presence { env })
    };
    present(&mut world, 3);
    let before = world.rows();
    fail(&mut world, &[(conn, &clients[0])]);
    assert!(frames(&present(&mut world, 3), conn).is_empty());
    assert_eq!(nacks(&present(&mut world, 4), conn)[0].1, Code::Internal);
    assert_eq!(world.rows(), before);
}

#[test]
fn what_was_acked_meanwhile_is_deleted_and_the_queue_drains() {
    let clients = [Client::new(1), Client::new(2)];
    let mut config = Config::new("wss://relay.example");
    config.limits.delivery_window = 2;
    config.limits.queue_per_sender = 5;
    let mut world = World::team(config, &clients);
    let alice = world.login(&clients[0]);
    let drafts: Vec<_> = (0..5).map(|_| world.draft(&clients[0], &clients[1])).collect();
    for draft in &drafts {
        world.send(alice, &draft.sign(&clients[0]));
    }
    let bob = world.login(&clients[1]);
    fail(&mut world, &[(alice, &clients[0]), (bob, &clients[1])]);
    world.settle();
    for draft in &drafts[..2] {
        world.ack(bob, &clients[0], draft);
    }
    assert_eq!(world.count_rows("relay.order"), 5);
    let mut said = world.step(Event::Store { failing: false });
    said.extend(world.settle());
    assert_eq!(world.count_rows("relay.order"), 3);
    let expected: Vec<_> = drafts[2..4].iter().map(|draft| draft.sign(&clients[0]).to_string()).collect();
    assert_eq!(delivered(&said, bob), expected, "the window moved");
    let fresh = world.draft(&clients[0], &clients[1]);
    let said = world.send(alice, &fresh.sign(&clients[0]));
    assert!(matches!(frames(&said, alice)[..], [RelayFrame::Ack { .. }]), "there is room again");
    // The purge comes by at once.
    world.wall = world.wall.plus(2 * 86_400_000);
    fail(&mut world, &[]);
    world.settle();
    assert!(world.count_rows("relay.order") > 0);
    world.step(Event::Store { failing: false });
    world.settle();
    assert_eq!(world.count_rows("relay.order"), 0);
}
