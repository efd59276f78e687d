//! What goes by its retention (`messaging/1 §8.5`), and what a clock that jumps does to mail.

use crate::daemon::testing::{World, at, key, text};
use messaging_proto::json::Value;

/// Both clocks go on, the wall clock by days.
fn days(world: &mut World, days: u64) {
    world.wall += days * 86_400_000;
    world.pass(70_000);
}

fn rows(world: &World, number: usize, table: &str) -> usize {
    world.nodes[number].base.iter().filter(|(of, ..)| of.0 == table).count()
}

/// bob takes alice's asks without being asked.
fn world(settings: [&str; 2]) -> World {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    for (number, settings) in settings.into_iter().enumerate() {
        world.configure(number, settings);
    }
    let admin = world.connect(1);
    world.ok(1, admin, "grant.set", r#"{"subject":{"person":"alice"},"ask":"open"}"#);
    world
}

fn send(letter: char, to: &str, more: &str) -> String {
    format!(r#"{{"key":"{}","to":"{to}","parts":[{{"text":"x"}}]{more}}}"#, key(letter))
}

#[test]
fn sent_mail_and_ended_tasks_go_after_their_days() {
    let mut world =
        world([r#"{"retention":{"sentDays":1,"taskDays":1}}"#, r#"{"retention":{"taskDays":4}}"#]);
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let mail = world.ok(0, alice, "msg.send", &send('a', "bob/agent", ""));
    let mail = format!(r#"{{"key":"{}","id":"{}"}}"#, key('a'), text(&mail, "results.0.envelopeId"));
    let ask = world.ok(0, alice, "msg.send", &send('a', "bob/agent", r#","kind":"task""#));
    let task = text(&ask, "results.0.taskId").to_owned();
    world.run();
    let of = |letter: char, more: &str| format!(r#"{{"key":"{}","taskId":"{task}"{more}}}"#, key(letter));
    // A task that has not ended is not counted down.
    days(&mut world, 3);
    for state in ["WORKING", "COMPLETED"] {
        let update = of('b', &format!(r#","state":"TASK_STATE_{state}""#));
        world.ok(1, bob, "task.update", &update);
    }
    world.run();
    let seen = world.ok(0, alice, "task.get", &of('a', ""));
    assert_eq!(text(&seen, "task.state"), "TASK_STATE_COMPLETED");
    days(&mut world, 2);
    assert_eq!(world.refused(0, alice, "task.get", &of('a', "")), "not_found");
    world.ok(1, bob, "task.get", &of('b', ""));
    // The record of what was sent stays until its envelope's end, seven days, and its own days after that.
    assert_eq!(text(&world.ok(0, alice, "item.read", &mail), "kind"), "sent");
    days(&mut world, 3);
    world.ok(0, alice, "item.read", &mail);
    assert_eq!(world.refused(1, bob, "task.get", &of('b', "")), "not_found");
    days(&mut world, 2);
    assert_eq!(world.refused(0, alice, "item.read", &mail), "not_found");
    // The last of what bob said of the task ends.
    days(&mut world, 1);
    for table in ["task", "task_order", "task_history", "sent", "outbox"] {
        assert_eq!((rows(&world, 0, table), rows(&world, 1, table)), (0, 0), "{table}");
    }
}

#[test]
fn mail_of_a_session_that_is_gone_goes_after_its_days() {
    let mut world = world(["{}", r#"{"retention":{"orphanedDays":2}}"#]);
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    world.ok(0, alice, "msg.send", &send('a', "bob/agent", ""));
    world.run();
    world.close(1, bob);
    days(&mut world, 1);
    assert_eq!(world.refused(0, alice, "msg.send", &send('a', "bob/agent", "")), "unknown_session");
    // Whoever takes the name now is somebody else.
    let other = world.session(1, 'c', "agent", "codex");
    assert!(world.unread(1, other, 'c').is_empty());
    assert_eq!(rows(&world, 1, "inbox"), 1);
    days(&mut world, 3);
    for table in ["inbox", "inbox_unread", "inbox_id", "inbox_message", "thread"] {
        assert_eq!(rows(&world, 1, table), 0, "{table}");
    }
    let held = world.within(1, |cx| rows_held(cx.txn));
    assert_eq!(held, 0, "and its sender has its quota back");
}

fn rows_held(txn: &crate::store::Txn<'_>) -> u64 {
    txn.prefix(super::inbox::QUOTA, b"", 10)
        .unwrap()
        .iter()
        .filter_map(|(_, row)| crate::daemon::rows::decode::<super::inbox::Held>(row))
        .map(|held| held.items)
        .sum()
}

/// Clocks that are set back and forth lose no mail, change no order and end nothing early.
#[test]
fn a_clock_that_jumps_loses_nothing() {
    let mut world = world(["{}", "{}"]);
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let mut ids = Vec::new();
    for jump in [0_i64, -2, 5, -4] {
        world.wall = world.wall.checked_add_signed(jump * 86_400_000).unwrap();
        world.pass(5_000);
        let sent = world.ok(0, alice, "msg.send", &send('a', "bob/agent", ""));
        ids.push(text(&sent, "results.0.envelopeId").to_owned());
        world.ok(0, alice, "msg.send", &send('a', "bob", ""));
        world.run();
        world.pass(61_000);
    }
    let items = world.unread(1, bob, 'b');
    let order: Vec<_> = items.iter().map(|item| text(item, "id").to_owned()).rev().collect();
    assert_eq!(order, ids);
    for id in &ids {
        assert_eq!(world.stages(0, alice, 'a', id).last().unwrap(), "delivered");
    }
    let lines = world.ok(1, bob, "conv.read", r#"{"conversation":"dm:alice"}"#);
    let lines = at(&lines, "lines").as_array().unwrap();
    assert_eq!(lines.len(), 4);
    assert!(lines.iter().zip(1..).all(|(line, seq)| at(line, "seq") == &Value::int(seq)));
    // A session that was left is kept for its day, whatever the clock said before.
    world.close(1, bob);
    world.wall -= 3 * 86_400_000;
    world.pass(61_000);
    let again = world.session(1, 'b', "agent", "codex");
    assert_eq!(world.unread(1, again, 'b').len(), 4);
}
