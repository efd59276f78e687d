//! Stopping, and going on with connections that outlived the machine before.

use crate::support::{Client, Crash, World, closes, frames};
use messaging_machines::relay::Config;
use messaging_machines::relay::io::{ConnId, Effect, Event};
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, RelayFrame};
use messaging_proto::json::canonicalize;
use messaging_proto::realm::Role;

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
fn a_resumed_connection_hears_the_newest_entry_and_its_queue() {
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
    // No welcome and no peer; but an entry whose commit failed and is there was told to nobody.
    let newest = |said: &[Effect], conn| match &frames(said, conn)[..] {
        [RelayFrame::Roster { entry }, rest @ ..] => (entry.to_string(), rest.to_vec()),
        said => panic!("{said:?}"),
    };
    let (entry, rest) = newest(&resumed(&mut world, sender, &clients[0]), sender);
    assert!(entry.contains(&clients[1].machine().to_string()) && rest.is_empty(), "{entry} {rest:?}");
    // Its queue is delivered from the start.
    let said = resumed(&mut world, recipient, &clients[1]);
    assert_eq!(newest(&said, recipient), (entry, vec![RelayFrame::Deliver { env }]));
    world.ack(recipient, &clients[0], &draft);
    assert_eq!(world.count_rows("relay.envelope"), 0);
    let stranger = Client::new(9);
    let said = resumed(&mut world, ConnId(77), &stranger);
    assert!(matches!(frames(&said, ConnId(77))[..], [RelayFrame::Error { code: Code::NotMember, .. }]));
    assert_eq!(closes(&said, ConnId(77)), [4001]);
}

#[test]
fn an_entry_that_was_stored_and_told_to_nobody_is_told_on_the_connections_that_stay() {
    let clients = [Client::new(1), Client::new(2)];
    let mut world = World::team(Config::new(RELAY), &clients);
    let conns = [world.login(&clients[0]), world.login(&clients[1])];
    let entry = world.author(&clients[0]).member_role(&clients[1].machine(), Role::Admin).unwrap();
    world.commits = false;
    assert!(world.append(conns[0], &entry).is_empty());
    world.commits = true;
    world.crash(Crash::Phantom);
    let news = RelayFrame::Roster { entry: canonicalize(&entry).unwrap().into() };
    for (conn, client) in conns.into_iter().zip(&clients) {
        let (team, machine) = (world.team_id(), client.machine());
        let said = world.step(Event::Resumed { conn, address: "192.0.2.1".to_owned(), team, machine });
        assert_eq!(frames(&said, conn), std::slice::from_ref(&news));
    }
}
