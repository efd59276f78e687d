//! What a connection before `hello` can make the relay do (`messaging/1 §7`, "Pre-auth frames").

use crate::support::{Client, Crash, World, closes, frames};
use messaging_machines::relay::Config;
use messaging_machines::store::{Table, Writes};
use messaging_proto::Code;
use messaging_proto::frame::RelayFrame;

/// Two large teams could be evicted for each other, and anybody could have the relay replay them by naming them in a
/// `hello`: a few connections stopped it for everybody.
#[test]
fn the_hello_of_a_stranger_replays_no_roster() {
    let clients: Vec<Client> = (1..=2).map(Client::new).collect();
    let mut world = World::team(Config::new("wss://relay.example"), &clients);
    world.crash(Crash::Lost);
    let entries: Vec<(Table, Vec<u8>)> = world
        .base
        .iter()
        .filter(|(table, ..)| table.0 == "relay.roster")
        .map(|(table, key, _)| (table, key.to_vec()))
        .collect();
    assert_eq!(entries.len(), 2);
    // Rows that cannot be replayed show who asks for them.
    let mut writes = Writes::new();
    for (table, key) in entries {
        writes.write(table, key, Some(b"{".to_vec()));
    }
    world.base.apply(&writes);
    let (conn, said) = world.connect(&Client::new(9));
    assert!(matches!(frames(&said, conn)[..], [RelayFrame::Error { code: Code::NotMember, .. }]), "{said:?}");
    assert_eq!(closes(&said, conn), [4001]);
}
