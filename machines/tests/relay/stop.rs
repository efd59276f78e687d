//! Stopping, and going on with connections that outlived the machine before.

use crate::support::{Client, Crash, World, closes, frames};
use messaging_machines::relay::Config;
use messaging_machines::relay::io::{ConnId, Effect, Event};
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, RelayFrame};

const RELAY: &str = "wss://relay.example";

#[test]
fn stop_closes_everybody_once_and_says_so() {
    let clients = [Client::new(1), Client::new(2)];
    let mut world = World::team(Config::new(RELAY), &clients);
    let live = world.login(&clients[0]);
    let (waiting, _) = world.open();
    let said = world.step(Event::Stop);
    assert_eq!(closes(&said, live), [1001]);
    assert_eq!(closes(&said, waiting), [1001]);
    assert_eq!(said.last(), Some(&Effect::Stopped));
    assert!(world.step(Event::Stop).is_empty());
    assert!(world.say(live, &ClientOutbound::Ping { n: None }).is_empty());
    assert!(world.close(live).is_empty());
    let conn = ConnId(500);
    assert_eq!(closes(&world.step(Event::Opened { conn, address: String::new() }), conn), [1001]);
    assert_eq!(world.deadline(), None);
    assert!(world.step(Event::Timer).is_empty());
}

#[test]
fn a_resumed_connection_goes_on_without_a_word() {
    let clients = [Client::new(1), Client::new(2)];
    let mut world = World::team(Config::new(RELAY), &clients);
    let sender = world.login(&clients[0]);
    let recipient = world.login(&clients[1]);
    let draft = world.draft(&clients[0], &clients[1]);
    let env = draft.sign(&clients[0]);
    world.send(sender, &env);
    world.crash(Crash::Lost);
    let team = world.team_id();
    let resumed = |world: &mut World, conn, client: &Client| {
        let machine = client.machine();
        world.step(Event::Resumed { conn, address: "192.0.2.1".to_owned(), team, machine })
    };
    assert!(resumed(&mut world, sender, &clients[0]).is_empty());
    // Its queue is delivered from the start.
    let said = resumed(&mut world, recipient, &clients[1]);
    assert_eq!(said, [Effect::Send { conn: recipient, frame: RelayFrame::Deliver { env } }]);
    world.ack(recipient, &clients[0], &draft);
    assert_eq!(world.count_rows("relay.envelope"), 0);
    let stranger = Client::new(9);
    let said = resumed(&mut world, ConnId(77), &stranger);
    assert!(matches!(frames(&said, ConnId(77))[..], [RelayFrame::Error { code: Code::NotMember, .. }]));
    assert_eq!(closes(&said, ConnId(77)), [4001]);
}
