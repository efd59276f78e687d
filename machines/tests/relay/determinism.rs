//! Same events, same steps, same store: the same effects and rows, byte for byte, also from a capture.

use crate::support::{Client, Crash, World};
use messaging_machines::relay::io::{Effect, Event};
use messaging_machines::relay::{Config, Relay};
use messaging_machines::store::{MemoryBase, Txn, Writes};
use messaging_machines::{Machine, Out, Step};
use messaging_proto::frame::ClientOutbound;
use messaging_proto::time::{Mono, Wall};

/// A busy day of a relay.
fn scene() -> World {
    let clients: Vec<Client> = (1..=5).map(Client::new).collect();
    let mut config = Config::new("wss://relay.example");
    config.limits.frames_per_minute = 300;
    config.limits.delivery_window = 4;
    config.limits.queue_per_sender = 20;
    let mut world = World::team(config, &clients);
    let conns: Vec<_> = clients.iter().take(4).map(|client| world.login(client)).collect();
    for round in 0..40 {
        for (index, client) in clients.iter().take(4).enumerate() {
            let to = &clients[(index + round) % 5];
            let mut draft = world.draft(client, to);
            let end = messaging_proto::json::Value::int(world.wall.0 + 1_000 * (1 + round as u64));
            let env = draft.set("exp", end).sign(client);
            world.send(conns[index], &env);
            if round % 3 == 0 {
                world.ack(conns[(index + round) % 5 % 4], client, &draft);
                let env = world.presence_draft(client, round as u64 + 1).sign(client);
                world.say(conns[index], &ClientOutbound::Presence { env });
            }
        }
        world.pass(700);
    }
    let entry = world.author(&clients[0]).member_remove(&clients[2].machine()).unwrap();
    world.append_ok(conns[0], &entry);
    world.login(&clients[4]);
    world.pass(300_000);
    world
}

fn replay(config: &Config, events: &[(Mono, Wall, Event)]) -> (Vec<Effect>, MemoryBase) {
    let mut relay = Relay::new(config.clone());
    let mut base = MemoryBase::default();
    let mut all = Vec::new();
    for (number, (mono, wall, event)) in events.iter().enumerate() {
        let mut entropy = [0; 32];
        entropy[..8].copy_from_slice(&(number as u64 + 1).to_be_bytes());
        let (mut writes, mut out) = (Writes::new(), Out::new());
        let step = Step::new(*mono, *wall, entropy);
        relay.handle(&step, event.clone(), &mut Txn::new(&base, None, &mut writes), &mut out).unwrap();
        base.apply(&writes);
        all.extend(out.take());
    }
    (all, base)
}

#[test]
fn the_same_events_say_and_store_the_same() {
    let world = scene();
    let again = scene();
    assert_eq!(world.effects, again.effects);
    assert_eq!(world.base, again.base);
    assert!(world.effects.len() > 500, "{}", world.effects.len());
    let (effects, base) = replay(&world.config, &world.events);
    assert_eq!(effects, world.effects);
    assert_eq!(base, world.base);
    let effects = serde_json::to_string(&effects).unwrap();
    assert_eq!(effects, serde_json::to_string(&world.effects).unwrap());
}

#[test]
fn events_survive_a_capture() {
    let world = scene();
    let text = serde_json::to_string(&world.events).unwrap();
    let events: Vec<(Mono, Wall, Event)> = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&events).unwrap(), text);
    let (effects, base) = replay(&world.config, &events);
    assert_eq!(effects, world.effects);
    assert_eq!(base, world.base);
}

/// A machine is its store: one that starts again answers as the one that went on.
#[test]
fn memory_may_be_lost_at_any_moment() {
    let mut world = scene();
    let rows = world.rows();
    world.crash(Crash::Lost);
    assert_eq!(world.rows(), rows, "starting changes nothing");
    let clients: Vec<Client> = (1..=5).map(Client::new).collect();
    let conn = world.login(&clients[0]);
    let env = world.draft(&clients[0], &clients[1]).sign(&clients[0]);
    let said = world.send(conn, &env);
    assert!(crate::support::nacks(&said, conn).is_empty());
}
