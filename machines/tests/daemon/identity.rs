//! Rotation by hand and by schedule, retained keys, and the alarms.

use crate::common::{World, at, text};
use messaging_proto::identity::{Identity, IdentityFile, RETAIN_MS};
use messaging_proto::json::Value;

const DAY: u64 = 86_400_000;

fn keys(world: &World, number: usize) -> Identity {
    let text = world.nodes[number].identity.clone().unwrap();
    IdentityFile::new(zeroize::Zeroizing::new(text)).read().unwrap()
}

fn published(world: &mut World, number: usize) -> String {
    let info = world.ok(number, "team.info", "{}");
    let own = |member: &&Value| at(member, "self") == &Value::Bool(true);
    text(at(&info, "members").as_array().unwrap().iter().find(own).unwrap(), "enc").to_owned()
}

/// Days go by without a connection, then a few minutes with one.
fn away(world: &mut World, ms: u64) {
    world.reach(false);
    world.sleep(ms);
    world.pass(60_000);
    world.reach(true);
    world.pass(120_000);
}

fn alarm(world: &mut World, number: usize) -> Option<String> {
    at(&world.ok(number, "daemon.status", "{}"), "alarm").as_str().map(str::to_owned)
}

#[test]
fn a_rotation_publishes_and_retains() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let old = keys(&world, 1).enc();
    let done = world.ok(1, "identity.rotateEnc", "{}");
    assert_eq!(at(&done, "until"), &Value::int(world.wall + RETAIN_MS));
    let now = keys(&world, 1);
    assert_eq!((now.enc().to_string(), now.pending()), (text(&done, "enc").to_owned(), None));
    assert_eq!(now.retained().map(|(enc, _)| enc).collect::<Vec<_>>(), [old]);
    world.settle();
    assert_eq!(published(&mut world, 1), text(&done, "enc"));
    // The earlier key is erased when its time is over, and not before.
    world.reach(false);
    world.sleep(RETAIN_MS - 2 * 3_600_000);
    world.pass(1_000);
    assert_eq!(keys(&world, 1).retained().filter(|(enc, _)| *enc == old).count(), 1);
    world.pass(3 * 3_600_000);
    assert_eq!(keys(&world, 1).retained().filter(|(enc, _)| *enc == old).count(), 0);
}

#[test]
fn rotating_needs_the_relay_and_room() {
    let mut world = World::team(1, &["alice/laptop"]);
    world.reach(false);
    assert_eq!(world.refused(0, "identity.rotateEnc", "{}"), "relay_unavailable");
    assert!(keys(&world, 0).pending().is_none());
    world.reach(true);
    world.pass(60_000);
    for _ in 0..8 {
        world.ok(0, "identity.rotateEnc", "{}");
    }
    assert_eq!(world.refused(0, "identity.rotateEnc", "{}"), "invalid_state");
}

#[test]
fn a_key_that_cannot_be_saved_is_not_published() {
    let mut world = World::team(1, &["alice/laptop"]);
    let before = published(&mut world, 0);
    world.nodes[0].fail_saves.push_back(true);
    assert_eq!(world.refused(0, "identity.rotateEnc", "{}"), "internal");
    world.settle();
    assert!(keys(&world, 0).pending().is_none());
    assert_eq!(published(&mut world, 0), before);
    world.ok(0, "identity.rotateEnc", "{}");
}

#[test]
fn two_calls_at_once_are_one_rotation() {
    let mut world = World::team(1, &["alice/laptop"]);
    let admin = world.nodes[0].admin;
    let asked = [0, 1].map(|_| world.ask(0, admin, "identity.rotateEnc", "{}"));
    world.settle();
    let [first, second] = asked.map(|id| world.answer(0, admin, id).unwrap().unwrap());
    assert_eq!(first, second);
    assert_eq!(keys(&world, 0).retained().count(), 1);
}

#[test]
fn an_answer_lost_with_its_connection_keeps_the_new_key() {
    let mut world = World::team(1, &["alice/laptop"]);
    world.relay.cut_after_append = 1;
    let done = world.ok(0, "identity.rotateEnc", "{}");
    assert_eq!(published(&mut world, 0), text(&done, "enc"));
    let info = world.ok(0, "team.info", "{}");
    assert_eq!(at(&info, "head.seq"), &Value::int(1), "it was written once");
}

#[test]
fn an_unknown_outcome_is_settled_on_the_next_connection() {
    let mut world = World::team(1, &["alice/laptop"]);
    let admin = world.nodes[0].admin;
    // The relay hears the append, and then is gone for longer than the call waits.
    world.relay.cut_after_append = 1;
    let id = world.ask(0, admin, "identity.rotateEnc", "{}");
    world.nodes[0].reaches = false;
    world.pass(90_000);
    let error = world.answer(0, admin, id).unwrap().unwrap_err();
    assert_eq!(text(&error, "data.code"), "relay_unavailable");
    let pending = keys(&world, 0).pending().expect("the new key is kept").0.to_string();
    world.start(0);
    world.nodes[0].reaches = true;
    world.pass(120_000);
    assert_eq!(published(&mut world, 0), pending);
    assert_eq!((keys(&world, 0).enc().to_string(), keys(&world, 0).pending()), (pending, None));
    assert_eq!(alarm(&mut world, 0), None);
}

#[test]
fn an_unknown_outcome_is_settled_on_the_connection_that_stands() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let admin = world.nodes[1].admin;
    // Bob's append is slow, loses a race, and his computer sleeps while the answer is on its way.
    world.nodes[1].latency = 600;
    let id = world.ask(1, admin, "identity.rotateEnc", "{}");
    world.ok(0, "identity.rotateEnc", "{}");
    world.sleep(60_000);
    world.pass(1_000);
    let error = world.answer(1, admin, id).unwrap().unwrap_err();
    assert_eq!(text(&error, "data.code"), "relay_unavailable");
    let pending = keys(&world, 1).pending().expect("the new key is kept").0.to_string();
    world.pass(120_000);
    assert_eq!(published(&mut world, 1), pending);
    assert_eq!((keys(&world, 1).enc().to_string(), keys(&world, 1).pending()), (pending, None));
}

#[test]
fn the_schedule_rotates_once_however_many_periods_it_missed() {
    let mut world = World::team(1, &["alice/laptop"]);
    let rotations = |world: &mut World| at(&world.ok(0, "team.info", "{}"), "head.seq").clone();
    away(&mut world, 7 * DAY - 3_600_000);
    assert_eq!(rotations(&mut world), Value::int(0));
    // By its own timer, connected all the time.
    world.pass(8 * 3_600_000);
    assert_eq!(rotations(&mut world), Value::int(1), "after seven days and less than six hours");
    // Three weeks away: one rotation makes up for them.
    world.reach(false);
    world.sleep(21 * DAY);
    world.pass(60_000);
    assert_eq!(rotations(&mut world), Value::int(1), "only while connected");
    world.reach(true);
    world.pass(120_000);
    assert_eq!(rotations(&mut world), Value::int(2));
    // A rotation by hand restarts the period.
    away(&mut world, 6 * DAY);
    world.ok(0, "identity.rotateEnc", "{}");
    away(&mut world, 6 * DAY);
    assert_eq!(rotations(&mut world), Value::int(3));
}

#[test]
fn the_schedule_is_off_or_slower_by_config() {
    for (days, expected) in [(0, 0), (30, 1)] {
        let mut world = World::team(1, &["alice/laptop"]);
        let config = world.nodes[0].config.trim().trim_end_matches('}').to_owned();
        world.nodes[0].config = format!(r#"{config},"identity":{{"rotateEncDays":{days}}}}}"#);
        world.start(0);
        away(&mut world, 31 * DAY);
        let info = world.ok(0, "team.info", "{}");
        assert_eq!(at(&info, "head.seq"), &Value::int(expected), "{days} days");
    }
}

#[test]
fn an_admin_rekey_is_no_alarm_and_stops_the_schedule() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let bob = text(&world.ok(1, "device.status", "{}"), "device").to_owned();
    let enc = Identity::generate([9; 32], [8; 32]).enc();
    world.ok(0, "team.rekey", &format!(r#"{{"machine":"{bob}","enc":"{enc}"}}"#));
    world.settle();
    assert_eq!(alarm(&mut world, 1), None);
    let status = world.ok(1, "daemon.status", "{}");
    assert!(text(&status, "relay.lastError").contains("an admin replaced"));
    away(&mut world, 10 * DAY);
    assert_eq!(published(&mut world, 1), enc.to_string(), "never while the roster holds another's key");
    let done = world.ok(1, "identity.rotateEnc", "{}");
    world.settle();
    assert_eq!(published(&mut world, 1), text(&done, "enc"));
    assert!(at(&world.ok(1, "daemon.status", "{}"), "relay").get("lastError").is_none());
}

#[test]
fn an_older_key_file_raises_restored() {
    let mut world = World::team(1, &["alice/laptop"]);
    let old = world.nodes[0].identity.clone();
    world.ok(0, "identity.rotateEnc", "{}");
    let newer = world.nodes[0].identity.clone();
    world.nodes[0].identity = old.clone();
    world.start(0);
    assert_eq!(alarm(&mut world, 0).as_deref(), Some("restored"));
    assert_eq!(text(&world.ok(0, "device.status", "{}"), "alarm"), "restored");
    assert_eq!(world.refused(0, "identity.rotateEnc", "{}"), "invalid_state");
    away(&mut world, 10 * DAY);
    assert_eq!(at(&world.ok(0, "team.info", "{}"), "head.seq"), &Value::int(1), "nothing is published");
    world.nodes[0].identity = newer;
    world.start(0);
    assert_eq!(alarm(&mut world, 0), None);
}

#[test]
fn a_whole_home_restored_raises_it_once_the_roster_syncs() {
    let mut world = World::team(1, &["alice/laptop"]);
    let (base, identity) = (world.nodes[0].base.clone(), world.nodes[0].identity.clone());
    world.ok(0, "identity.rotateEnc", "{}");
    world.reach(false);
    world.nodes[0].base = base;
    world.nodes[0].identity = identity;
    world.start(0);
    assert_eq!(alarm(&mut world, 0), None, "the restored store predates the rekey");
    world.reach(true);
    world.pass(60_000);
    assert_eq!(alarm(&mut world, 0).as_deref(), Some("restored"));
}

#[test]
fn lost_keys_are_not_replaced_by_others() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let kept = world.nodes[1].identity.take();
    let ticket = world.ticket(0, "bob");
    world.start(1);
    assert_eq!(alarm(&mut world, 1).as_deref(), Some("keys_missing"));
    assert_eq!(text(&world.ok(1, "daemon.health", "{}"), "relay"), "offline", "nothing is dialled");
    let url = crate::common::URL;
    let team = "A".repeat(43);
    for (method, params) in [
        ("team.create", format!(r#"{{"relay":"{url}","name":"t","person":"bob","label":"l"}}"#)),
        ("team.join", format!(r#"{{"ticket":"{ticket}","label":"other"}}"#)),
        ("team.prepare", "{}".to_owned()),
        ("team.pair", format!(r#"{{"relay":"{url}","team":"{team}","person":"bob","label":"l"}}"#)),
        ("team.claim", "{}".to_owned()),
    ] {
        assert_eq!(world.refused(1, method, &params), "invalid_state", "{method}");
    }
    assert_eq!(world.refused(1, "identity.rotateEnc", "{}"), "no_identity");
    let key = "k".repeat(24);
    let params = format!(r#"{{"key":"{key}","name":"s","agent":"mcp","tier":"pull"}}"#);
    assert_eq!(world.refused(1, "session.register", &params), "no_identity");
    world.nodes[1].identity = kept;
    world.start(1);
    world.pass(5_000);
    assert_eq!(alarm(&mut world, 1), None);
    assert_eq!(text(&world.ok(1, "daemon.health", "{}"), "relay"), "connected");
}

#[test]
fn another_machines_keys_are_not_used() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let foreign = world.nodes[0].identity.clone();
    world.nodes[1].identity = foreign;
    world.start(1);
    assert_eq!(alarm(&mut world, 1).as_deref(), Some("keys_missing"));
    assert_eq!(text(&world.ok(1, "daemon.health", "{}"), "relay"), "offline");
}
