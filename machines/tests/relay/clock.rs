//! A wall clock that is set: back, and ahead by mistake and back again.

use crate::support::{Client, World, frames, nacks};
use messaging_machines::relay::Config;
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, RelayFrame};
use messaging_proto::json::Value;
use messaging_proto::time::Wall;

const RELAY: &str = "wss://relay.example";
const HOUR: u64 = 3_600_000;

#[test]
fn a_clock_that_goes_back_loses_nothing_and_takes_nothing_twice() {
    let clients = [Client::new(1), Client::new(2)];
    let mut world = World::team(Config::new(RELAY), &clients);
    let sender = world.login(&clients[0]);
    let old = world.draft(&clients[0], &clients[1]);
    let old_env = old.sign(&clients[0]);
    world.send(sender, &old_env);
    world.pass(2_000);
    world.wall = Wall(world.wall.0 - HOUR);
    // What was taken by the later clock is still known, although it is of the future now.
    let said = world.send(sender, &old_env);
    assert_eq!(nacks(&said, sender)[0].1, Code::Expired, "§5.2 step 5 comes before the id");
    // New ones by the new clock are taken, delivered with the old one, and end by it.
    let mut short = world.draft(&clients[0], &clients[1]);
    short.set("exp", Value::int(world.wall.0 + 60_000));
    let short_env = short.sign(&clients[0]);
    assert_eq!(frames(&world.send(sender, &short_env), sender), [RelayFrame::Ack { id: short.ulid() }]);
    let (conn, said) = world.connect(&clients[1]);
    let deliver = |env: &std::sync::Arc<str>| RelayFrame::Deliver { env: env.clone() };
    assert_eq!(frames(&said, conn)[1..], [deliver(&old_env), deliver(&short_env)]);
    for _ in 0..3 {
        world.pass(30_000);
        world.say(conn, &ClientOutbound::Pong { n: None });
        world.say(sender, &ClientOutbound::Pong { n: None });
    }
    assert_eq!(world.count_rows("relay.order"), 1, "the short one ended, the other did not");
    // The monotonic clock decides who is silent, not this one.
    assert!(!frames(&world.say(sender, &ClientOutbound::Ping { n: None }), sender).is_empty());
}

#[test]
fn a_clock_that_was_far_ahead_does_not_stop_the_purge() {
    let clients = [Client::new(1), Client::new(2)];
    let mut world = World::team(Config::new(RELAY), &clients);
    let right = world.wall;
    world.wall = right.plus(30 * 24 * HOUR);
    world.pass(120_000);
    world.wall = right.plus(120_000);
    let sender = world.login(&clients[0]);
    let mut draft = world.draft(&clients[0], &clients[1]);
    draft.set("exp", Value::int(world.wall.0 + 30_000));
    let env = draft.sign(&clients[0]);
    assert_eq!(frames(&world.send(sender, &env), sender), [RelayFrame::Ack { id: draft.ulid() }]);
    assert_eq!(world.count_rows("relay.order"), 1);
    world.pass(35_000);
    assert_eq!(world.count_rows("relay.order"), 0);
    world.pass(400_000);
    assert_eq!((world.count_rows("relay.seen"), world.count_rows("relay.expiry")), (0, 0));
}
