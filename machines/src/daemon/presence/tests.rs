//! What is taken of others' presences, and how a large one of our own is cut.

use crate::daemon::testing::{START, World, at, key, text};
use messaging_proto::json::Value;

fn entries(world: &mut World, number: usize) -> Vec<String> {
    let conn = world.connect(number);
    let contacts = world.ok(number, conn, "contacts.list", "{}");
    let entries = at(&contacts, "entries").as_array().unwrap().iter();
    entries.map(|entry| text(entry, "address").to_owned()).collect()
}

fn presence(seq: u64, label: &str, name: &str) -> String {
    format!(
        r#"{{"seq":{seq},"label":"{label}","features":["tasks","later.feature"],"sessions":[{{"name":"{name}","client":"codex","state":"idle","tier":"push","since":1}}]}}"#
    )
}

/// §6.5: the latest `seq` wins, and a label that is not the roster's counts for nothing.
#[test]
fn only_the_latest_presence_with_the_rosters_label_counts() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let far = START + 1_000_000;
    for (seq, label, name, shown) in [
        (far, "laptop", "one", "bob/one@laptop"),
        (far, "laptop", "same-seq", "bob/one@laptop"),
        (far - 1, "laptop", "older", "bob/one@laptop"),
        (far + 1, "desk", "other-label", "bob/one@laptop"),
        (far + 2, "laptop", "two", "bob/two@laptop"),
    ] {
        let envelope = world.forge_presence(1, &presence(seq, label, name));
        world.hear(0, envelope);
        assert_eq!(entries(&mut world, 0), [shown], "{name}");
    }
    // It is kept over a restart, and shown as offline while its machine is.
    world.start(0);
    assert_eq!(entries(&mut world, 0), ["bob/two@laptop"]);
}

/// §8.3: over the budget presence is dropped, and answers nothing.
#[test]
fn a_flood_of_presence_is_dropped() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let sends = world.nodes[0].sends;
    for number in 0..300_u64 {
        let envelope =
            world.forge_presence(1, &presence(START + 2_000_000 + number, "laptop", &format!("s{number}")));
        world.hear(0, envelope);
    }
    let last = entries(&mut world, 0);
    assert_eq!(last.len(), 1);
    let number: u64 = last[0].trim_start_matches("bob/s").trim_end_matches("@laptop").parse().unwrap();
    assert!((230..241).contains(&number), "{number}");
    assert_eq!(world.nodes[0].sends, sends, "no answers");
    world.pass(60_000);
    let envelope = world.forge_presence(1, &presence(START + 3_000_000, "laptop", "later"));
    world.hear(0, envelope);
    assert_eq!(entries(&mut world, 0), ["bob/later@laptop"]);
}

/// §6.5: at most 200 sessions and 64 KiB: live ones first, what is optional goes first.
#[test]
fn a_large_presence_is_cut_to_its_limit() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    world.configure(0, r#"{"presence":{"share":["repo","branch","doing"]}}"#);
    let conn = world.connect(0);
    for number in 0..210 {
        let long = "x".repeat(110);
        let params = format!(
            r#"{{"key":"{}{number:04}","name":"s{number:03}","agent":"codex","tier":"pull","doing":"{long}","repo":"{long}","branch":"{long}"}}"#,
            key('a')
        );
        world.ok(0, conn, "session.register", &params);
    }
    world.pass(10_000);
    let seen = world.connect(1);
    let contacts = world.ok(1, seen, "contacts.list", "{}");
    let entries = at(&contacts, "entries").as_array().unwrap();
    assert_eq!(entries.len(), 200);
    assert!(entries.iter().all(|entry| entry.get("doing").is_none()), "doing goes first");
    assert_eq!(entries.iter().filter(|entry| entry.get("repo").is_some()).count(), 200);
    assert_eq!(at(&entries[0], "kept"), &Value::Bool(false));
}
