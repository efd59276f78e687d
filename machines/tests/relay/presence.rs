//! Presence (contract wire-core §7.8).

use crate::support::{Client, World, frames, nacks, presence_payload};
use messaging_machines::relay::Config;
use messaging_machines::relay::io::ConnId;
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, RelayFrame};
use messaging_proto::json::Value;
use std::sync::Arc;

const RELAY: &str = "wss://relay.example";

fn clients(count: u8) -> Vec<Client> {
    (1..=count).map(Client::new).collect()
}

fn present(world: &mut World, conn: ConnId, env: &Arc<str>) -> Vec<messaging_machines::relay::io::Effect> {
    world.say(conn, &ClientOutbound::Presence { env: Arc::clone(env) })
}

fn deliver(env: &Arc<str>) -> RelayFrame {
    RelayFrame::Deliver { env: Arc::clone(env) }
}

#[test]
fn the_latest_goes_to_the_others_and_to_who_connects_later() {
    let clients = clients(10);
    let (newcomer, clients) = clients.split_last().unwrap();
    let mut world = {
        let all: Vec<Client> = clients.iter().chain([newcomer]).cloned().collect();
        World::team(Config::new(RELAY), &all)
    };
    let conns: Vec<ConnId> = clients.iter().map(|client| world.login(client)).collect();
    let mut latest: Vec<(messaging_proto::key::MachineId, Arc<str>)> = Vec::new();
    for (client, conn) in clients.iter().zip(&conns) {
        let old = world.presence_draft(client, 4).sign(client);
        let new = world.presence_draft(client, 5).sign(client);
        let said = present(&mut world, *conn, &old);
        for other in &conns {
            let expected = if other == conn { vec![] } else { vec![deliver(&old)] };
            assert_eq!(frames(&said, *other), expected, "not acked, and to the others");
        }
        present(&mut world, *conn, &new);
        // One that is not above is dropped without a word.
        for seq in [0, 4, 5] {
            let env = world.presence_draft(client, seq).sign(client);
            world.pass(2_000);
            let said = present(&mut world, *conn, &env);
            assert!(conns.iter().all(|conn| frames(&said, *conn).is_empty()), "seq {seq}");
        }
        latest.push((client.machine(), new));
    }
    latest.sort_by_key(|(machine, _)| machine.to_string());
    // §7.3: welcome, then every member's, by machine id; then the queue.
    let draft = world.draft(&clients[0], newcomer).sign(&clients[0]);
    world.send(conns[0], &draft);
    world.crash(crate::support::Crash::Lost);
    let (conn, said) = world.connect(newcomer);
    let mut expected: Vec<RelayFrame> = latest.iter().map(|(_, env)| deliver(env)).collect();
    expected.push(deliver(&draft));
    assert_eq!(frames(&said, conn)[1..], expected[..]);
}

#[test]
fn an_ended_presence_is_not_shown_and_its_row_goes() {
    let clients = clients(2);
    let mut world = World::team(Config::new(RELAY), &clients);
    let conn = world.login(&clients[0]);
    let mut draft = world.presence_draft(&clients[0], 1);
    draft.set("exp", Value::int(world.wall.0 + 30_000));
    present(&mut world, conn, &draft.sign(&clients[0]));
    assert_eq!(world.count_rows("relay.presence"), 1);
    world.mono = world.mono.plus(30_000);
    world.wall = world.wall.plus(30_000);
    let (other, said) = world.connect(&clients[1]);
    assert_eq!(frames(&said, other).len(), 1, "welcome alone");
    world.pass(60_000);
    assert_eq!(world.count_rows("relay.presence"), 0);
}

#[test]
fn removal_takes_the_presence_too() {
    let clients = clients(2);
    let mut world = World::team(Config::new(RELAY), &clients);
    let admin = world.login(&clients[0]);
    let conn = world.login(&clients[1]);
    let env = world.presence_draft(&clients[1], 1).sign(&clients[1]);
    present(&mut world, conn, &env);
    let entry = world.author(&clients[0]).member_remove(&clients[1].machine()).unwrap();
    world.append_ok(admin, &entry);
    assert_eq!(world.count_rows("relay.presence"), 0);
}

#[test]
fn presence_has_its_own_bucket() {
    let clients = clients(1);
    let mut world = World::team(Config::new(RELAY), &clients);
    let conn = world.login(&clients[0]);
    let env = world.presence_draft(&clients[0], 1).sign(&clients[0]);
    for _ in 0..5 {
        assert!(nacks(&present(&mut world, conn, &env), conn).is_empty());
    }
    let said = present(&mut world, conn, &env);
    match &frames(&said, conn)[..] {
        [RelayFrame::Nack { code: Code::RateLimited, retry_after_ms: Some(2_000), .. }] => {}
        other => panic!("{other:?}"),
    }
    // One that breaks its shape counts as well, and is refused by the bucket first.
    let said = world.say_text(conn, br#"{"t":"presence","env":{"id":"x"}}"#);
    assert_eq!(nacks(&said, conn), [("x".to_owned(), Code::RateLimited)]);
    world.pass(2_000);
    assert!(nacks(&present(&mut world, conn, &env), conn).is_empty());
}

#[test]
fn a_presence_is_checked_as_a_send_is_and_for_its_payload() {
    let clients = clients(2);
    let mut world = World::team(Config::new(RELAY), &clients);
    let conn = world.login(&clients[0]);
    let (me, other) = (&clients[0], &clients[1]);
    let base = world.presence_draft(me, 1);
    let mut cases: Vec<(&str, Arc<str>, Code)> = Vec::new();
    let message = world.draft(me, other);
    cases.push(("a message", message.sign(me), Code::InvalidRequest));
    let mut draft = base.clone();
    cases.push(("class", draft.set("class", Value::text("contact")).sign(me), Code::InvalidRequest));
    let mut draft = base.clone();
    cases.push(("header", draft.set("x", Value::text("x".repeat(9_000))).sign(me), Code::TooLarge));
    cases.push(("another's", world.presence_draft(other, 1).sign(other), Code::Forbidden));
    let mut draft = base.clone();
    cases.push(("person", draft.set_in("from", "person", Value::text("px")).sign(me), Code::NotMember));
    let mut draft = base.clone();
    cases.push(("signature", draft.sign(other), Code::BadSignature));
    draft.set_in("anchor", "seq", Value::int(99));
    cases.push(("head", draft.sign(me), Code::RosterConflict));
    let mut draft = base.clone();
    let mut body = presence_payload(me, 1).as_object().unwrap().clone();
    body.set("x", Value::text("x".repeat(65_536)));
    cases.push(("size", draft.set("body", body.into()).sign(me), Code::TooLarge));
    let mut draft = base.clone();
    let mut body = presence_payload(me, 1).as_object().unwrap().clone();
    body.set("features", Value::text("tasks"));
    cases.push(("payload", draft.set("body", body.into()).sign(me), Code::InvalidRequest));
    let mut draft = base.clone();
    cases.push(("time", draft.set("exp", Value::int(world.wall.0)).sign(me), Code::Expired));
    for (what, env, code) in cases {
        world.pass(2_000);
        let said = present(&mut world, conn, &env);
        let [(_, refused)] = &nacks(&said, conn)[..] else { panic!("{what}: {said:?}") };
        assert_eq!(*refused, code, "{what}");
        assert_eq!(world.count_rows("relay.presence"), 0);
    }
    // And a presence is no `send`.
    let said = world.send(conn, &base.sign(me));
    assert_eq!(nacks(&said, conn)[0].1, Code::InvalidRequest);
}
