//! Catching up, live entries, forks, and heads that members signed.

use crate::common::{World, at, text};
use messaging_proto::json::Value;

fn last_error(world: &mut World, number: usize) -> Option<String> {
    let status = world.ok(number, "daemon.status", "{}");
    at(&status, "relay").get("lastError").and_then(Value::as_str).map(str::to_owned)
}

fn head(world: &mut World, number: usize) -> Value {
    at(&world.ok(number, "team.info", "{}"), "head").clone()
}

#[test]
fn a_machine_that_was_away_catches_up_over_several_pages() {
    let mut world = World::new(1);
    world.relay.config.limits.frames_per_minute = 1_000_000;
    world.restart_relay();
    world.join_next("alice/laptop");
    world.join_next("bob/desk");
    world.reach_from(1, false);
    for _ in 0..600 {
        world.ticket(0, "somebody");
    }
    world.reach_from(1, true);
    world.pass(120_000);
    assert_eq!(head(&mut world, 1), head(&mut world, 0));
    assert_eq!(last_error(&mut world, 1), None);
}

#[test]
fn broadcasts_are_applied_as_they_come() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    world.ticket(0, "carol");
    world.settle();
    assert_eq!(head(&mut world, 1), head(&mut world, 0));
}

#[test]
fn a_broadcast_far_from_now_is_reported_and_not_applied() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    // Twice the skew is still taken: the relay's clock may be off by it, too.
    world.nodes[1].skew = 590_000;
    world.ticket(0, "carol");
    world.settle();
    assert_eq!(head(&mut world, 1), head(&mut world, 0));
    world.nodes[1].skew = 610_000;
    world.ticket(0, "dave");
    world.settle();
    assert_ne!(head(&mut world, 1), head(&mut world, 0));
    assert!(last_error(&mut world, 1).unwrap().contains("expired"));
    // Fetched entries are bounded by the chain alone.
    world.nodes[1].skew = 0;
    world.start(1);
    world.pass(5_000);
    assert_eq!(head(&mut world, 1), head(&mut world, 0));
}

#[test]
fn a_missed_broadcast_is_fetched_when_the_next_comes() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    world.relay.swallow = Some((1, r#""t":"roster""#));
    world.ticket(0, "carol");
    world.settle();
    assert_ne!(head(&mut world, 1), head(&mut world, 0));
    world.relay.swallow = None;
    world.ticket(0, "dave");
    world.settle();
    assert_eq!(head(&mut world, 1), head(&mut world, 0));
}

#[test]
fn junk_and_forks() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    // A second, valid entry at a position that has one: what alice would have signed.
    let fork = {
        let mut other = World::team(1, &["alice/laptop", "bob/desk"]);
        other.pass(1_000);
        other.ticket(0, "carol");
        other.settle();
        let line = other.log.iter().rfind(|line| line.contains(r#""t\":\"roster.append"#)).unwrap().clone();
        appended(&line)
    };
    world.ticket(0, "dave");
    world.settle();
    let before = head(&mut world, 1);
    let junk = fork.replacen("carol", "erin", 1);
    world.say_to(1, &format!(r#"{{"t":"roster","entry":{junk}}}"#));
    assert_eq!(last_error(&mut world, 1), None, "junk is ignored");
    world.say_to(1, &format!(r#"{{"t":"roster","entry":{fork}}}"#));
    assert!(last_error(&mut world, 1).unwrap().contains("forks"));
    assert_eq!(head(&mut world, 1), before, "the other branch is not taken");
}

/// The entry in a logged `roster.append`.
fn appended(line: &str) -> String {
    let effect = crate::common::json(line.split_once(' ').unwrap().1);
    let frame = crate::common::json(text(&effect, "LinkSend.text"));
    messaging_proto::json::canonicalize(at(&frame, "entry")).unwrap()
}

fn register(world: &mut World, number: usize, letter: char) {
    let key = letter.to_string().repeat(24);
    let params = format!(r#"{{"key":"{key}","name":"agent","agent":"mcp","tier":"pull"}}"#);
    world.ok(number, "session.register", &params);
}

#[test]
fn a_head_the_relay_withholds_pauses_sends_until_it_is_there() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    register(&mut world, 0, 'a');
    register(&mut world, 1, 'b');
    world.pass(5_000);
    // Bob is shown no new entries, by broadcast or by sync.
    world.relay.swallow = Some((1, r#""t":"roster"#));
    world.ticket(0, "carol");
    world.pass(100_000);
    // Alice's presence names the new head.
    let error = last_error(&mut world, 1).unwrap();
    assert!(error.contains("does not provide"), "{error}");
    let key = "b".repeat(24);
    let send = format!(r#"{{"key":"{key}","to":"alice/agent","parts":[{{"text":"x"}}]}}"#);
    let sent = world.ok(1, "msg.send", &send);
    world.pass(30_000);
    let id = text(&sent, "results.0.envelopeId").to_owned();
    let read = format!(r#"{{"key":"{key}","id":"{id}"}}"#);
    assert_eq!(text(&world.ok(1, "item.read", &read), "stage"), "accepted", "it waits");
    // Across a restart, too: the evidence is kept.
    world.start(1);
    world.pass(60_000);
    register(&mut world, 1, 'b');
    assert_eq!(text(&world.ok(1, "item.read", &read), "stage"), "accepted");
    world.relay.swallow = None;
    world.pass(180_000);
    assert_eq!(head(&mut world, 1), head(&mut world, 0));
    assert_ne!(text(&world.ok(1, "item.read", &read), "stage"), "accepted", "and goes out");
}

#[test]
fn a_divergent_head_raises_an_alarm_that_stays() {
    // Two worlds of the same keys and the same beginning, then two branches.
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let mut other = World::team(1, &["alice/laptop", "bob/desk"]);
    world.pass(5_000);
    other.pass(6_000);
    world.ticket(0, "carol");
    other.ticket(0, "dave");
    world.settle();
    other.settle();
    register(&mut other, 0, 'a');
    register(&mut other, 1, 'b');
    other.pass(70_000);
    // Alice's last two presences in the other branch, delivered here.
    let presences = other
        .log
        .iter()
        .filter(|line| line.starts_with("0 ") && line.contains(r#"\"t\":\"presence\""#))
        .map(|line| crate::common::json(line.split_once(' ').unwrap().1))
        .map(|effect| crate::common::json(text(&effect, "LinkSend.text")));
    let presences: Vec<_> = presences.collect();
    let [.., frame, later] = &presences[..] else { panic!("{presences:?}") };
    world.pass(70_000);
    for frame in [frame, later] {
        let env = messaging_proto::json::canonicalize(at(frame, "env")).unwrap();
        world.say_to(1, &format!(r#"{{"t":"deliver","env":{env}}}"#));
        world.settle();
    }
    let logged = world.log.iter().filter(|line| line.contains("roster.divergence")).count();
    assert_eq!(logged, 1, "the alarm is news once, and stands in the status");
    for _ in 0..2 {
        let status = world.ok(1, "daemon.status", "{}");
        let divergence = at(&status, "divergence");
        assert_eq!(text(divergence, "person"), "alice");
        assert_eq!(at(divergence, "seq"), &Value::int(3));
        assert_ne!(text(divergence, "mine"), text(divergence, "theirs"));
        assert_eq!(text(divergence, "envelopeId"), text(frame, "env.id"));
        // The person is told of it, once: a restart finds the evidence and what was said of it.
        let listed = world.ok(1, "notice.list", "{}");
        let told: Vec<_> = at(&listed, "notices")
            .as_array()
            .unwrap()
            .iter()
            .filter(|notice| text(notice, "id").starts_with("a_divergence_"))
            .collect();
        assert_eq!(told.len(), 1);
        assert_eq!(text(told[0], "category"), "alert");
        world.start(1);
        world.pass(5_000);
    }
    assert!(world.ok(0, "daemon.status", "{}").get("divergence").is_none());
}

#[test]
fn deliveries_wait_for_the_catch_up() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    register(&mut world, 1, 'b');
    world.pass(5_000);
    world.reach_from(1, false);
    // Carol joins and writes to bob while he is away: his roster does not know her.
    let carol = world.join_next("carol/phone");
    register(&mut world, carol, 'c');
    world.pass(5_000);
    let key = "c".repeat(24);
    let send = format!(r#"{{"key":"{key}","to":"bob/agent@desk","parts":[{{"text":"hello"}}]}}"#);
    world.ok(carol, "msg.send", &send);
    world.settle();
    world.reach_from(1, true);
    world.pass(60_000);
    let held = at(&world.ok(1, "request.list", "{}"), "asks").as_array().unwrap().len();
    let read = format!(r#"{{"key":"{}"}}"#, "b".repeat(24));
    let items = at(&world.ok(1, "inbox.list", &read), "items").as_array().unwrap().len();
    assert_eq!(held + items, 1, "she is a member by the time her envelope is judged");
}

#[test]
fn a_busy_relay_is_asked_again_when_it_says() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    world.reach_from(1, false);
    for _ in 0..3 {
        world.ticket(0, "carol");
    }
    world.relay.swallow = Some((1, r#""t":"roster.entries""#));
    world.reach_from(1, true);
    world.pass(2_000);
    assert_eq!(text(&world.ok(1, "daemon.health", "{}"), "relay"), "connecting", "the catch-up waits");
    world.relay.swallow = None;
    world.say_to(1, r#"{"t":"nack","id":"sync:1","code":"rate_limited","retryAfterMs":4000}"#);
    world.pass(3_000);
    assert_eq!(text(&world.ok(1, "daemon.health", "{}"), "relay"), "connecting");
    world.pass(1_500);
    assert_eq!(text(&world.ok(1, "daemon.health", "{}"), "relay"), "connected");
    assert_eq!((last_error(&mut world, 1), head(&mut world, 1)), (None, head(&mut world, 0)));
}

#[test]
fn what_the_relay_did_not_provide_is_asked_for_again() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    world.reach_from(1, false);
    world.ticket(0, "carol");
    world.relay.swallow = Some((1, r#""t":"roster.entries""#));
    world.reach_from(1, true);
    world.pass(40_000);
    assert_eq!(text(&world.ok(1, "daemon.health", "{}"), "relay"), "connected", "it goes on without");
    assert!(last_error(&mut world, 1).unwrap().contains("does not provide"));
    world.relay.swallow = None;
    world.pass(61_000);
    assert_eq!(head(&mut world, 1), head(&mut world, 0));
}
