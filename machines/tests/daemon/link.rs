//! The link: dialling, the challenge, silence, being replaced and being removed.

use crate::common::{World, at, text};
use messaging_machines::daemon::io::{Event, LinkEnd, LinkId};

fn relay_state(world: &mut World, number: usize) -> String {
    text(&world.ok(number, "daemon.health", "{}"), "relay").to_owned()
}

fn last_error(world: &mut World, number: usize) -> Option<String> {
    let status = world.ok(number, "daemon.status", "{}");
    at(&status, "relay").get("lastError").and_then(|error| error.as_str()).map(str::to_owned)
}

fn dials(world: &World, number: usize) -> usize {
    let prefix = format!(r#"{number} {{"Dial""#);
    world.log.iter().filter(|line| line.starts_with(&prefix)).count()
}

#[test]
fn an_unreachable_relay_is_dialled_ever_more_slowly() {
    let mut world = World::team(1, &["alice/laptop"]);
    world.reach(false);
    let before = dials(&world, 0);
    world.pass(60_000);
    let first = dials(&world, 0) - before;
    assert!((5..40).contains(&first), "{first} dials in the first minute");
    assert_eq!(relay_state(&mut world, 0), "connecting");
    assert!(last_error(&mut world, 0).unwrap().contains("cannot be reached"));
    world.pass(600_000);
    let before = dials(&world, 0);
    world.pass(600_000);
    let later = dials(&world, 0) - before;
    assert!((8..60).contains(&later), "{later} dials in ten later minutes");
    // `daemon.woke` does not wait.
    world.reach(true);
    world.ok(0, "daemon.woke", "{}");
    world.settle();
    assert_eq!(relay_state(&mut world, 0), "connected");
    assert_eq!(last_error(&mut world, 0), None, "what passed is forgotten once it is over");
}

#[test]
fn a_challenge_of_another_relay_is_refused() {
    const ID: &str = "the challenge names another relay id";
    for (from, to, said) in [
        (r#""relay":"ws://127.0.0.1:8787""#, r#""relay":"ws://127.0.0.1:8787/""#, ID),
        (r#""relay":"ws://127.0.0.1:8787""#, r#""relay":"run `rm` \u001b""#, ID),
        (
            r#""relay":"ws://127.0.0.1:8787""#,
            r#""relay":"wss://other.example""#,
            "the challenge names another relay id: wss://other.example",
        ),
        (
            r#""proto":"messaging.relay.v1""#,
            r#""proto":"messaging.relay.v2""#,
            "the challenge names another protocol",
        ),
    ] {
        let mut world = World::team(1, &["alice/laptop"]);
        world.relay.rewrite = vec![(from, to)];
        world.restart_relay();
        world.pass(10_000);
        assert_eq!(relay_state(&mut world, 0), "connecting");
        assert_eq!(last_error(&mut world, 0).unwrap(), said, "{to}");
        // Warned of once, not with every try.
        let warned = |line: &&String| line.contains("link.lost") && line.contains("Warn");
        assert_eq!(world.log.iter().filter(warned).count(), 1, "{to}: {:?}", world.log);
        // Whoever founds a team there is told the same.
        world.add();
        let create = r#"{"relay":"ws://127.0.0.1:8787/","name":"t","person":"bob","label":"l"}"#;
        let error = world.call(1, "team.create", create).unwrap_err();
        assert_eq!(text(&error, "data.code"), "relay_unavailable");
        assert!(text(&error, "message").contains(said), "{}", text(&error, "message"));
        assert!(!world.log.iter().rev().take(20).any(|line| line.contains(r#"\"t\":\"hello\""#)), "{to}");
    }
}

#[test]
fn silence_is_asked_and_then_ended() {
    let mut world = World::team(1, &["alice/laptop"]);
    world.pass(200_000);
    assert_eq!(relay_state(&mut world, 0), "connected", "pings keep it alive");
    world.relay.mute = true;
    let before = dials(&world, 0);
    world.pass(59_000);
    assert_eq!(dials(&world, 0), before, "ninety seconds after the last frame, not before");
    world.pass(35_000);
    assert!(dials(&world, 0) > before, "given up and dialled again");
}

#[test]
fn sleep_ends_a_connection_that_looks_open() {
    let mut world = World::team(1, &["alice/laptop"]);
    world.sleep(3_600_000);
    world.pass(5_000);
    assert_eq!(relay_state(&mut world, 0), "connected");
}

#[test]
fn a_replaced_connection_waits_long() {
    let mut world = World::team(1, &["alice/laptop"]);
    let before = dials(&world, 0);
    world.close_link(0, LinkEnd::Closed(4004));
    assert!(last_error(&mut world, 0).unwrap().contains("another daemon with this identity"));
    world.pass(29_000);
    assert_eq!(dials(&world, 0), before, "not at full speed");
    world.pass(31_000);
    assert_eq!(relay_state(&mut world, 0), "connected");
}

#[test]
fn a_full_or_stopping_relay_is_tried_again() {
    for code in [1001, 1013, 1009, 4001, 4002] {
        let mut world = World::team(1, &["alice/laptop"]);
        world.close_link(0, LinkEnd::Closed(code));
        assert_eq!(relay_state(&mut world, 0), "connecting");
        world.pass(1_000);
        assert_eq!(relay_state(&mut world, 0), "connected", "{code}");
    }
}

#[test]
fn a_removed_machine_that_is_online_verifies_it_and_stops() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let bob = text(&world.ok(1, "device.status", "{}"), "device").to_owned();
    world.ok(0, "team.remove", &format!(r#"{{"machine":"{bob}"}}"#));
    world.settle();
    assert_eq!(text(&world.ok(1, "device.status", "{}"), "binding"), "removed");
    assert_eq!(relay_state(&mut world, 1), "offline");
    assert!(last_error(&mut world, 1).unwrap().contains("removed"));
    let before = dials(&world, 1);
    world.pass(600_000);
    assert_eq!(dials(&world, 1), before, "it stays away");
}

#[test]
fn a_removed_machine_that_was_offline_holds_only_a_hint() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let bob = text(&world.ok(1, "device.status", "{}"), "device").to_owned();
    world.reach_from(1, false);
    world.ok(0, "team.remove", &format!(r#"{{"machine":"{bob}"}}"#));
    world.reach_from(1, true);
    world.pass(300_000);
    assert_eq!(text(&world.ok(1, "device.status", "{}"), "binding"), "bound", "its own roster says so");
    assert_eq!(relay_state(&mut world, 1), "connecting");
    assert_eq!(last_error(&mut world, 1).unwrap(), "the relay refused with not_member");
}

#[test]
fn a_close_code_alone_removes_nobody() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    world.close_link(1, LinkEnd::Closed(4003));
    assert_eq!(text(&world.ok(1, "device.status", "{}"), "binding"), "bound");
    world.pass(2_000);
    assert_eq!(relay_state(&mut world, 1), "connected");
}

#[test]
fn events_of_a_link_that_is_gone_are_nobodys() {
    let mut world = World::team(1, &["alice/laptop"]);
    for link in [LinkId(0), LinkId(u64::MAX)] {
        world.event(0, Event::LinkOpened { link });
        world.event(0, Event::LinkClosed { link, why: LinkEnd::Lost });
    }
    assert_eq!(relay_state(&mut world, 0), "connected");
}

#[test]
fn a_relay_that_says_no_frame_is_left() {
    let mut world = World::team(1, &["alice/laptop"]);
    world.say_to(0, "not json");
    assert_eq!(relay_state(&mut world, 0), "connecting");
    world.pass(2_000);
    assert_eq!(relay_state(&mut world, 0), "connected");
    for ignored in
        [r#"{"t":"unknown"}"#, r#"{"t":"ack","id":7}"#, r#"{"t":"challenge","x":1}"#, r#"{"t":"pong"}"#]
    {
        world.say_to(0, ignored);
    }
    world.say_to(0, r#"{"t":"ping","n":5}"#);
    assert!(world.log.iter().any(|line| line.contains(r#"\"n\":5,\"t\":\"pong\""#)));
    assert_eq!(relay_state(&mut world, 0), "connected");
}

#[test]
fn clients_hear_of_the_link() {
    let mut world = World::team(1, &["alice/laptop"]);
    let conn = world.connect(0, messaging_machines::daemon::io::Tier::Agent);
    let key = "k".repeat(24);
    let params = format!(r#"{{"key":"{key}","name":"s","agent":"mcp","tier":"pull"}}"#);
    world.call_on(0, conn, "session.register", &params).unwrap();
    world.call_on(0, conn, "events.subscribe", &format!(r#"{{"key":"{key}"}}"#)).unwrap();
    world.reach(false);
    world.reach(true);
    world.pass(5_000);
    let states: Vec<&str> =
        world.nodes[0].events(conn, "relay").iter().map(|event| text(event, "state")).collect();
    assert_eq!(states, ["connecting", "connected"]);
}

/// Nobody can say that a list is all there is before what waited at the relay is read: more than one window of it.
#[test]
fn a_link_is_connected_once_what_waited_is_read() {
    // Together more than the 64 that a relay has on their way from one machine, and each less than what is taken at once.
    const LINES: usize = 50;
    const MESSAGES: usize = 18;
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let session = |world: &mut World, number: usize, letter: &str| {
        let conn = world.connect(number, messaging_machines::daemon::io::Tier::Agent);
        let key = letter.repeat(24);
        let params = format!(r#"{{"key":"{key}","name":"agent","agent":"codex","tier":"push"}}"#);
        world.call_on(number, conn, "session.register", &params).unwrap();
        world.call_on(number, conn, "events.subscribe", &format!(r#"{{"key":"{key}"}}"#)).unwrap();
        (conn, key)
    };
    let (alice, key) = session(&mut world, 0, "a");
    let (bob, _) = session(&mut world, 1, "b");
    world.ok(1, "grant.set", r#"{"subject":{"person":"alice"},"ask":"open"}"#);
    world.pass(3_000);
    world.reach_from(1, false);
    for number in 0..LINES {
        world.ok(0, "person.send", &format!(r#"{{"conversation":"dm:bob","text":"line {number}"}}"#));
        world.pass(1_500);
    }
    for number in 0..MESSAGES {
        let params = format!(r#"{{"key":"{key}","to":"bob/agent","parts":[{{"text":"{number}"}}]}}"#);
        world.call_on(0, alice, "msg.send", &params).unwrap();
    }
    world.settle();
    let before = world.nodes[1].lines.len();
    world.reach_from(1, true);
    world.pass(60_000);
    let events: Vec<&str> = world.nodes[1].lines[before..]
        .iter()
        .filter(|(conn, _)| *conn == bob)
        .filter_map(|(_, line)| line.get("params"))
        .map(|event| match text(event, "type") {
            "relay" => text(event, "state"),
            other => other,
        })
        .filter(|what| ["inbox", "connecting", "connected"].contains(what))
        .collect();
    let (last, before) = events.split_last().unwrap();
    assert_eq!(
        (before, *last),
        (["inbox"; MESSAGES].as_slice(), "connected"),
        "first all of it, then that word"
    );
}
