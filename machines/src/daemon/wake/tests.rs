//! When a host is asked, with what, how often, and when not.

use crate::daemon::io::{Event, HostCall, IpcId, WakeEnd, WakeId};
use crate::daemon::testing::{World, key, text};
use messaging_proto::ulid::Ulid;

/// A session with a host on machine 1, whose connection is closed again.
fn asleep(world: &mut World, letter: char, name: &str) {
    let conn = registered(world, letter, name);
    world.close(1, conn);
    world.pass(2_000);
}

fn registered(world: &mut World, letter: char, name: &str) -> IpcId {
    let conn = world.connect(1);
    let key = key(letter);
    world.ok(
        1,
        conn,
        "session.register",
        &format!(
            r#"{{"key":"{key}","name":"{name}","agent":"opencode","tier":"push",
            "host":{{"kind":"opencode","location":"/home/b/{name}","sessionID":"ses_{letter}","pid":77}}}}"#
        ),
    );
    conn
}

/// bob takes alice's asks without being asked.
fn world() -> (World, IpcId) {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let admin = world.connect(1);
    world.ok(1, admin, "grant.set", r#"{"subject":{"person":"alice"},"ask":"open"}"#);
    let alice = world.session(0, 'a', "lead", "cli");
    (world, alice)
}

fn send(world: &mut World, alice: IpcId, to: &str, more: &str) -> String {
    let params = format!(r#"{{"key":"{}","to":"bob/{to}","parts":[{{"text":"x"}}]{more}}}"#, key('a'));
    let sent = world.ok(0, alice, "msg.send", &params);
    world.run();
    text(&sent, "results.0.envelopeId").to_owned()
}

fn wakes(world: &mut World) -> Vec<(WakeId, HostCall, Vec<Ulid>)> {
    std::mem::take(&mut world.nodes[1].wakes)
}

fn ids(of: &[Ulid]) -> Vec<&str> {
    of.iter().map(Ulid::as_str).collect()
}

#[test]
fn a_session_nobody_holds_is_woken_by_its_host() {
    let (mut world, alice) = world();
    asleep(&mut world, 'b', "agent");
    let first = send(&mut world, alice, "agent", "");
    let calls = wakes(&mut world);
    let host = HostCall { location: "/home/b/agent".to_owned(), session_id: "ses_b".to_owned(), pid: 77 };
    assert_eq!((calls.len(), &calls[0].1, ids(&calls[0].2)), (1, &host, vec![first.as_str()]));
    // One call a key at a time; what comes meanwhile waits for it, sixteen to a call.
    let later: Vec<_> = (0..18).map(|_| send(&mut world, alice, "agent", "")).collect();
    assert!(wakes(&mut world).is_empty());
    world.handle(1, Event::WakeEnded { wake: calls[0].0, end: WakeEnd::Answered });
    let calls = wakes(&mut world);
    assert_eq!(ids(&calls[0].2), later[..16].iter().map(String::as_str).collect::<Vec<_>>());
    world.handle(1, Event::WakeEnded { wake: calls[0].0, end: WakeEnd::Refused });
    let calls = wakes(&mut world);
    assert_eq!(ids(&calls[0].2), later[16..].iter().map(String::as_str).collect::<Vec<_>>());
    world.handle(1, Event::WakeEnded { wake: calls[0].0, end: WakeEnd::Answered });
    world.handle(1, Event::WakeEnded { wake: calls[0].0, end: WakeEnd::Answered });
    world.pass(60_000);
    assert!(wakes(&mut world).is_empty());
}

#[test]
fn a_failed_call_is_made_three_times_more() {
    let (mut world, alice) = world();
    asleep(&mut world, 'b', "agent");
    send(&mut world, alice, "agent", "");
    for wait in [1_000, 2_000, 4_000] {
        let calls = wakes(&mut world);
        assert_eq!(calls.len(), 1);
        world.handle(1, Event::WakeEnded { wake: calls[0].0, end: WakeEnd::Again });
        world.pass(wait - 1);
        assert!(wakes(&mut world).is_empty(), "not before {wait} ms");
        world.pass(1);
    }
    let calls = wakes(&mut world);
    world.handle(1, Event::WakeEnded { wake: calls[0].0, end: WakeEnd::Again });
    world.pass(60_000);
    assert!(wakes(&mut world).is_empty(), "then the item waits for its client");
}

/// §8.6: before every attempt it is looked whether the client came.
#[test]
fn a_client_that_came_is_not_woken() {
    let (mut world, alice) = world();
    asleep(&mut world, 'b', "agent");
    send(&mut world, alice, "agent", "");
    let calls = wakes(&mut world);
    world.handle(1, Event::WakeEnded { wake: calls[0].0, end: WakeEnd::Again });
    let conn = registered(&mut world, 'b', "agent");
    world.pass(60_000);
    assert!(wakes(&mut world).is_empty());
    send(&mut world, alice, "agent", "");
    assert!(wakes(&mut world).is_empty(), "the client gets it as an event");
    world.close(1, conn);
    world.pass(60_000);
    assert!(wakes(&mut world).is_empty(), "what it was handed does not wake it later");
}

#[test]
fn four_calls_at_once() {
    let (mut world, alice) = world();
    for (letter, name) in [('b', "one"), ('c', "two"), ('d', "three"), ('e', "four"), ('f', "five")] {
        asleep(&mut world, letter, name);
    }
    for name in ["one", "two", "three", "four", "five"] {
        send(&mut world, alice, name, "");
    }
    let calls = wakes(&mut world);
    assert_eq!(calls.len(), 4);
    // One that is tried again later leaves its place.
    world.handle(1, Event::WakeEnded { wake: calls[0].0, end: WakeEnd::Again });
    let fifth = wakes(&mut world);
    assert_eq!((fifth.len(), fifth[0].1.session_id.as_str()), (1, "ses_f"));
    world.pass(5_000);
    assert!(wakes(&mut world).is_empty(), "and waits for the next free one");
    world.handle(1, Event::WakeEnded { wake: calls[1].0, end: WakeEnd::Answered });
    assert_eq!(wakes(&mut world).len(), 1);
}

#[test]
fn nobody_is_woken_who_should_not_be() {
    let (mut world, alice) = world();
    asleep(&mut world, 'b', "agent");
    // The sender's hint.
    send(&mut world, alice, "agent", r#","wake":false"#);
    assert!(wakes(&mut world).is_empty());
    // A session without a host.
    let conn = world.session(1, 'c', "plain", "codex");
    world.close(1, conn);
    world.pass(2_000);
    send(&mut world, alice, "plain", "");
    assert!(wakes(&mut world).is_empty());
    // What is held for the person.
    let admin = world.connect(1);
    world.ok(1, admin, "grant.set", r#"{"subject":{"person":"alice"}}"#);
    send(&mut world, alice, "agent", "");
    assert!(wakes(&mut world).is_empty());
    world.ok(1, admin, "grant.set", r#"{"subject":{"person":"alice"},"ask":"open"}"#);
    // The bridge is off.
    world.configure(1, r#"{"wake":{"bridge":false}}"#);
    send(&mut world, alice, "agent", "");
    assert!(wakes(&mut world).is_empty());
    world.configure(1, "{}");
    send(&mut world, alice, "agent", "");
    assert_eq!(wakes(&mut world).len(), 1, "a kept session keeps its host across a restart");
}

/// §8.2 `daemon.woke`: the sweep runs at once, whatever the timers counted while the host slept.
#[test]
fn a_host_that_woke_sweeps_at_once() {
    let (mut world, alice) = world();
    let admin = world.connect(1);
    world.ok(1, admin, "grant.set", r#"{"subject":{"person":"alice"}}"#);
    let conn = world.session(1, 'c', "agent", "codex");
    send(&mut world, alice, "agent", "");
    let held = |world: &World| world.nodes[1].base.iter().filter(|(table, ..)| table.0 == "held").count();
    assert_eq!(held(&world), 1);
    world.wall += 8 * 86_400_000;
    world.ok(1, conn, "daemon.woke", "{}");
    assert_eq!(held(&world), 0);
}
