//! Windows, redelivery, order, credits and pace (contract wire-core §7.7).

use crate::support::{Client, Draft, World, frames, nacks};
use messaging_machines::relay::io::{ConnId, Effect};
use messaging_machines::relay::{Config, Timer};
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, RelayFrame};
use messaging_proto::json::Value;
use messaging_proto::time::Mono;
use std::sync::Arc;

const RELAY: &str = "wss://relay.example";

fn clients(count: u8) -> Vec<Client> {
    (1..=count).map(Client::new).collect()
}

fn config() -> Config {
    let mut config = Config::new(RELAY);
    config.limits.frames_per_minute = 1_000_000;
    config.limits.bytes_per_minute = 1 << 40;
    config
}

fn delivered(effects: &[Effect], conn: ConnId) -> Vec<Arc<str>> {
    let env = |frame| match frame {
        RelayFrame::Deliver { env } => Some(env),
        _ => None,
    };
    frames(effects, conn).into_iter().filter_map(env).collect()
}

/// Sends `count` envelopes that are all taken.
fn send(world: &mut World, conn: ConnId, from: &Client, to: &Client, count: usize) -> Vec<(Draft, Arc<str>)> {
    (0..count)
        .map(|_| {
            let draft = world.draft(from, to);
            let env = draft.sign(from);
            assert!(nacks(&world.send(conn, &env), conn).is_empty());
            (draft, env)
        })
        .collect()
}

fn texts(sent: &[(Draft, Arc<str>)]) -> Vec<Arc<str>> {
    sent.iter().map(|(_, env)| Arc::clone(env)).collect()
}

#[test]
fn a_backlog_comes_in_order_and_as_it_is_acked() {
    let clients = clients(2);
    let mut world = World::team(config(), &clients);
    let sender = world.login(&clients[0]);
    let sent = send(&mut world, sender, &clients[0], &clients[1], 200);
    let (conn, mut said) = world.connect(&clients[1]);
    said.extend(world.settle());
    assert_eq!(delivered(&said, conn), texts(&sent[..64]));
    for (index, (draft, _)) in sent.iter().enumerate() {
        let said = world.ack(conn, &clients[0], draft);
        let next: Vec<_> = sent.get(index + 64).map(|(_, env)| Arc::clone(env)).into_iter().collect();
        assert_eq!(delivered(&said, conn), next, "each ack lets the next one through");
    }
    assert_eq!(world.count_rows("relay.envelope"), 0);
    assert_eq!(world.count_rows("relay.order"), 0);
    assert!(delivered(&world.pass(120_000), conn).is_empty());
}

#[test]
fn what_is_sent_while_the_window_is_full_waits_its_turn() {
    let clients = clients(3);
    let mut config = config();
    config.limits.delivery_window = 3;
    let mut world = World::team(config, &clients);
    let (a, b) = (world.login(&clients[0]), world.login(&clients[1]));
    let conn = world.login(&clients[2]);
    let from = world.effects.len();
    let first = send(&mut world, a, &clients[0], &clients[2], 5);
    // Another sender is not held up.
    let other = send(&mut world, b, &clients[1], &clients[2], 4);
    let said = world.effects[from..].to_vec();
    assert_eq!(delivered(&said, conn), [texts(&first[..3]), texts(&other[..3])].concat());
    // An ack of one sender's makes room for that sender alone, whichever is acked.
    let said = world.ack(conn, &clients[0], &first[2].0);
    assert_eq!(delivered(&said, conn), texts(&first[3..4]));
    let said = world.ack(conn, &clients[1], &other[0].0);
    assert_eq!(delivered(&said, conn), texts(&other[3..]));
    let said = world.ack(conn, &clients[1], &other[1].0);
    assert!(delivered(&said, conn).is_empty());
}

#[test]
fn an_unacked_delivery_comes_again_after_10_20_40_60_60_seconds() {
    let clients = clients(2);
    let mut world = World::team(config(), &clients);
    let sender = world.login(&clients[0]);
    let conn = world.login(&clients[1]);
    let mut draft = world.draft(&clients[0], &clients[1]);
    draft.set("exp", Value::int(world.wall.0 + 200_000));
    world.send(sender, &draft.sign(&clients[0]));
    let start = world.mono;
    let mut at = Vec::new();
    for _ in 0..250 {
        let said = world.pass(1_000);
        for conn in [sender, conn] {
            world.say(conn, &ClientOutbound::Pong { n: None });
        }
        if !delivered(&said, conn).is_empty() {
            at.push(world.mono.since(start) / 1_000);
        }
    }
    assert_eq!(at, [10, 30, 70, 130, 190], "and not after its end");
    assert_eq!(world.count_rows("relay.envelope"), 0);
}

#[test]
fn deferring_is_not_acking_and_a_new_link_starts_from_the_queue() {
    let clients = clients(2);
    let mut world = World::team(config(), &clients);
    let sender = world.login(&clients[0]);
    let conn = world.login(&clients[1]);
    let sent = send(&mut world, sender, &clients[0], &clients[1], 3);
    world.ack(conn, &clients[0], &sent[1].0);
    world.close(conn);
    let (conn, said) = world.connect(&clients[1]);
    assert_eq!(delivered(&said, conn), [texts(&sent[..1]), texts(&sent[2..])].concat());
    // An ack by the new link for what an older one delivered; and one that names nothing.
    world.close(conn);
    world.drains = false;
    let (conn, _) = world.connect(&clients[1]);
    for (draft, _) in &sent {
        assert!(frames(&world.ack(conn, &clients[0], draft), conn).is_empty());
    }
    let nothing = world.draft(&clients[0], &clients[1]);
    for from in [&clients[0], &clients[1], &Client::new(77)] {
        assert!(frames(&world.ack(conn, from, &nothing), conn).is_empty());
    }
    assert_eq!(world.count_rows("relay.envelope"), 0);
}

#[test]
fn an_ack_for_what_this_link_was_not_sent_yet_counts() {
    let clients = clients(2);
    let mut config = config();
    config.limits.delivery_window = 1;
    let mut world = World::team(config, &clients);
    let sender = world.login(&clients[0]);
    let sent = send(&mut world, sender, &clients[0], &clients[1], 3);
    let conn = world.login(&clients[1]);
    // It has the second one from an earlier link.
    assert!(frames(&world.ack(conn, &clients[0], &sent[1].0), conn).is_empty());
    assert_eq!(world.count_rows("relay.envelope"), 2);
    let said = world.ack(conn, &clients[0], &sent[0].0);
    assert_eq!(delivered(&said, conn), texts(&sent[2..]));
}

#[test]
fn a_new_link_counts_its_delays_anew() {
    let clients = clients(2);
    let mut world = World::team(config(), &clients);
    let sender = world.login(&clients[0]);
    let older = world.login(&clients[1]);
    let sent = send(&mut world, sender, &clients[0], &clients[1], 1);
    world.pass(6_000);
    let (conn, said) = world.connect(&clients[1]);
    assert_eq!(delivered(&said, conn), texts(&sent));
    let said = world.pass(9_999);
    assert!(delivered(&said, conn).is_empty() && delivered(&said, older).is_empty());
    assert_eq!(delivered(&world.pass(1), conn), texts(&sent));
}

#[test]
fn what_comes_while_a_backlog_is_sent_comes_after_it() {
    let clients = clients(2);
    let mut config = config();
    config.limits.delivery_window = 500;
    let mut world = World::team(config, &clients);
    let sender = world.login(&clients[0]);
    let mut sent = send(&mut world, sender, &clients[0], &clients[1], 300);
    let (conn, _) = world.connect(&clients[1]);
    assert!(matches!(world.deadline(), Some((_, Timer::Work))), "there is more");
    sent.extend(send(&mut world, sender, &clients[0], &clients[1], 1));
    world.pass(10);
    assert_eq!(delivered(&world.effects, conn), texts(&sent));
}

#[test]
fn an_ack_deletes_from_its_own_queue_alone() {
    let clients = clients(3);
    let mut world = World::team(config(), &clients);
    let sender = world.login(&clients[0]);
    let sent = send(&mut world, sender, &clients[0], &clients[1], 1);
    let other = world.login(&clients[2]);
    world.ack(other, &clients[0], &sent[0].0);
    assert_eq!(world.count_rows("relay.envelope"), 1);
}

#[test]
fn each_first_delivery_pays_for_one_small_ack() {
    let clients = clients(2);
    let mut config = config();
    config.limits.frames_per_minute = 4;
    config.limits.redeliver_min_ms = 1_000;
    config.limits.redeliver_max_ms = 1_000;
    let mut world = World::team(config, &clients);
    world.pass(60_000);
    let sender = world.login(&clients[0]);
    let conn = world.login(&clients[1]);
    let sent = send(&mut world, sender, &clients[0], &clients[1], 2);
    // Redeliveries pay for nothing more.
    world.pass(3_000);
    for (draft, _) in &sent {
        assert!(frames(&world.ack(conn, &clients[0], draft), conn).is_empty());
    }
    for _ in 0..4 {
        assert!(frames(&world.ack(conn, &clients[0], &sent[0].0), conn).is_empty(), "from the budget");
    }
    let said = world.ack(conn, &clients[0], &sent[0].0);
    assert_eq!(nacks(&said, conn), [(sent[0].0.ulid().to_string(), Code::RateLimited)]);
    // An ack over its budget is not applied; a larger one never is free.
    let sent = send(&mut world, sender, &clients[0], &clients[1], 1);
    let text = ClientOutbound::RecvAck { from: clients[0].machine(), id: sent[0].0.ulid() }.to_text();
    assert!(text.len() <= 128, "every ack can be free");
    let padded = format!("{}{}", text, " ".repeat(129 - text.len()));
    let said = world.say_text(conn, padded.as_bytes());
    assert_eq!(nacks(&said, conn)[0].1, Code::RateLimited);
    assert_eq!(world.count_rows("relay.envelope"), 1);
    assert!(frames(&world.say_text(conn, text.as_bytes()), conn).is_empty());
    assert_eq!(world.count_rows("relay.envelope"), 0);
}

#[test]
fn a_large_backlog_waits_for_the_socket() {
    let clients = clients(2);
    let mut world = World::team(config(), &clients);
    let sender = world.login(&clients[0]);
    let mut sent = Vec::new();
    for _ in 0..20 {
        let mut draft = world.draft(&clients[0], &clients[1]);
        let env = draft.body(200_000).sign(&clients[0]);
        world.send(sender, &env);
        sent.push((draft, env));
    }
    world.drains = false;
    let (conn, mut said) = world.connect(&clients[1]);
    said.extend(world.settle());
    let first = delivered(&said, conn).len();
    assert!((4..8).contains(&first), "about a mebibyte: {first}");
    assert!(delivered(&world.pass(60_000), conn).is_empty(), "nor is anything sent again");
    let mut all = delivered(&said, conn);
    for _ in 0..20 {
        world.say(conn, &ClientOutbound::Pong { n: None });
        if all.len() < sent.len() {
            all.extend(delivered(&world.drain(conn), conn));
        }
    }
    assert_eq!(all, texts(&sent));
}

#[test]
fn presences_of_a_large_team_are_paced_too_and_come_first() {
    let clients = clients(40);
    let mut world = World::team(config(), &clients);
    for client in &clients {
        let conn = world.login(client);
        let mut draft = world.presence_draft(client, 1);
        let mut body = crate::support::presence_payload(client, 1).as_object().unwrap().clone();
        body.set("x", Value::text("x".repeat(60_000)));
        let env = draft.set("body", body.into()).sign(client);
        world.say(conn, &ClientOutbound::Presence { env });
        let env = world.draft(client, &clients[0]).sign(client);
        world.send(conn, &env);
        world.close(conn);
    }
    world.drains = false;
    let (conn, mut said) = world.connect(&clients[0]);
    let first: usize = delivered(&said, conn).iter().map(|env| env.len()).sum();
    assert!(first < 1_200_000, "{first}");
    // What comes meanwhile waits for the presences as well.
    said.extend(world.drain(conn));
    let late = world.login(&clients[1]);
    let env = world.draft(&clients[1], &clients[0]).sign(&clients[1]);
    said.extend(world.send(late, &env));
    while delivered(&said, conn).len() < 81 {
        said.extend(world.drain(conn));
        said.extend(world.pass(10));
    }
    let kinds: Vec<bool> =
        delivered(&said, conn).iter().map(|env| env.contains("\"type\":\"presence\"")).collect();
    assert_eq!(kinds, [vec![true; 40], vec![false; 41]].concat());
}

#[test]
fn many_senders_take_turns() {
    let clients = clients(6);
    let mut config = config();
    config.limits.delivery_window = 500;
    let mut world = World::team(config, &clients);
    for client in &clients[1..] {
        let conn = world.login(client);
        send(&mut world, conn, client, &clients[0], 100);
        world.close(conn);
    }
    let (conn, said) = world.connect(&clients[0]);
    let senders: std::collections::BTreeSet<String> = delivered(&said, conn)
        .iter()
        .map(|env| env.split("\"device\":\"").nth(1).unwrap()[..43].to_owned())
        .collect();
    assert_eq!(senders.len(), 5, "each of them in the first step");
    assert!(matches!(world.deadline(), Some((_, Timer::Work))), "bounded, and it goes on");
    let rest = world.pass(10);
    assert_eq!(delivered(&said, conn).len() + delivered(&rest, conn).len(), 500);
}

/// Members that were never there, for more than one step: the driver sees no busy loop, and the link goes on.
#[test]
fn a_snapshot_of_nothing_comes_to_an_end() {
    let mut clients = clients(150);
    let mut world = World::team(config(), &clients);
    let last = clients.pop().unwrap();
    let sender = world.login(&clients[0]);
    let sent = send(&mut world, sender, &clients[0], &last, 1);
    let (conn, said) = world.connect(&last);
    assert!(delivered(&said, conn).is_empty() && matches!(world.deadline(), Some((_, Timer::Work))));
    assert_eq!(delivered(&world.pass(10), conn), texts(&sent));
}

#[test]
fn a_step_of_redeliveries_is_bounded_and_the_clock_may_be_late() {
    let clients = clients(2);
    let mut config = config();
    config.limits.delivery_window = 300;
    let mut world = World::team(config, &clients);
    let sender = world.login(&clients[0]);
    let conn = world.login(&clients[1]);
    send(&mut world, sender, &clients[0], &clients[1], 300);
    world.mono = Mono(world.mono.0 + 15_000);
    let said = world.step(messaging_machines::relay::io::Event::Timer);
    assert!(delivered(&said, conn).len() < 300);
    let rest = world.settle();
    assert_eq!(delivered(&said, conn).len() + delivered(&rest, conn).len(), 300);
}

/// A recipient that defers a burst takes it again in the order it came, whatever its ids sort as.
#[test]
fn what_is_due_in_one_millisecond_comes_again_in_the_queues_order() {
    let clients = clients(2);
    let mut world = World::team(config(), &clients);
    let sender = world.login(&clients[0]);
    let conn = world.login(&clients[1]);
    let mut sent = Vec::new();
    for number in (1..=20).rev() {
        let mut draft = world.draft(&clients[0], &clients[1]);
        let env = draft.id(number).sign(&clients[0]);
        assert!(nacks(&world.send(sender, &env), sender).is_empty());
        sent.push(env);
    }
    world.mono = Mono(world.mono.0 + 15_000);
    let mut said = world.step(messaging_machines::relay::io::Event::Timer);
    said.extend(world.settle());
    assert_eq!(delivered(&said, conn), sent);
}
