//! What persons and their agents write each other over a relay.

use crate::common::{World, at, text};
use crate::person::{call, chats, lines, members, number, ok, say};
use messaging_proto::json::Value;

/// Issue 5: a direct chat both ways, online and not, over restarts of everything.
#[test]
fn two_persons_write_each_other() {
    let mut world = World::team(31, &["alice/laptop", "bob/desk"]);
    world.pass(3_000);
    say(&mut world, 0, "dm:bob", "hello");
    world.settle();
    say(&mut world, 1, "dm:alice", "hi");
    world.settle();
    assert_eq!(lines(&mut world, 0, "dm:bob"), ["hello delivered", "hi"]);
    assert_eq!(lines(&mut world, 1, "dm:alice"), ["hello", "hi delivered"]);
    assert_eq!(chats(&mut world, 0), ["dm:bob 1"]);
    world.reach_from(1, false);
    world.settle();
    say(&mut world, 0, "dm:bob", "are you there");
    world.pass(5_000);
    world.start(0);
    world.restart_relay();
    world.start(1);
    world.pass(60_000);
    assert_eq!(lines(&mut world, 0, "dm:bob").last().unwrap(), "are you there sent");
    world.reach_from(1, true);
    world.pass(60_000);
    assert_eq!(lines(&mut world, 0, "dm:bob").last().unwrap(), "are you there delivered");
    assert_eq!(lines(&mut world, 1, "dm:alice").last().unwrap(), "are you there");
    // A sender without a relay files its own line at once, and sends it when it can.
    world.reach(false);
    say(&mut world, 1, "dm:alice", "later");
    world.pass(5_000);
    assert_eq!(lines(&mut world, 1, "dm:alice").last().unwrap(), "later sent");
    world.start(1);
    world.reach(true);
    world.pass(120_000);
    assert_eq!(lines(&mut world, 1, "dm:alice").last().unwrap(), "later delivered");
    assert_eq!(lines(&mut world, 0, "dm:bob").last().unwrap(), "later");
}

/// Issue 5: a channel of three persons on five machines, one of them removed from it, one from the team.
#[test]
fn three_persons_share_a_channel() {
    let mut world =
        World::team(32, &["alice/laptop", "alice/phone", "bob/desk", "carol/tower", "carol/phone"]);
    world.pass(3_000);
    ok(&mut world, 0, "channel.create", r#"{"name":"eng","persons":["bob","carol"]}"#);
    world.settle();
    for node in 0..5 {
        assert_eq!(members(&mut world, node, "channel:eng"), "alice bob carol");
    }
    world.reach_from(4, false);
    say(&mut world, 2, "channel:eng", "one");
    world.settle();
    say(&mut world, 1, "channel:eng", "two");
    world.settle();
    // Each person has it on one machine at least; a person's own post is outgoing on their other machines.
    let created = "alice created #eng with bob, carol";
    assert_eq!(lines(&mut world, 2, "channel:eng"), [created, "one delivered", "two"]);
    assert_eq!(lines(&mut world, 1, "channel:eng"), [created, "one", "two delivered"]);
    assert_eq!(lines(&mut world, 0, "channel:eng"), [created, "one", "two"]);
    assert_eq!(chats(&mut world, 0), ["channel:eng 1"]);
    world.reach_from(4, true);
    world.pass(60_000);
    // Of two senders, whose backlog comes first is this machine's own order.
    let mut late = lines(&mut world, 4, "channel:eng");
    late[1..].sort();
    assert_eq!(late, [created, "one", "two"]);
    ok(&mut world, 0, "channel.remove", r#"{"name":"eng","persons":["carol"]}"#);
    world.settle();
    for node in [3, 4] {
        assert!(chats(&mut world, node).is_empty());
        let post = r#"{"conversation":"channel:eng","text":"x"}"#;
        assert_eq!(world.refused(node, "person.send", post), "not_found");
    }
    say(&mut world, 2, "channel:eng", "among us");
    world.settle();
    assert_eq!(lines(&mut world, 2, "channel:eng").last().unwrap(), "among us delivered");
    assert_eq!(members(&mut world, 1, "channel:eng"), "alice bob");
    // bob leaves the team: he is a member of nothing.
    let info = ok(&mut world, 0, "team.info", "{}");
    let list = at(&info, "members").as_array().unwrap();
    let machine = list.iter().find(|member| text(member, "person") == "bob").unwrap();
    let params = format!(r#"{{"machine":"{}"}}"#, text(machine, "machine"));
    ok(&mut world, 0, "team.remove", &params);
    world.pass(5_000);
    for node in [0, 1] {
        assert_eq!(members(&mut world, node, "channel:eng"), "alice");
    }
    assert_eq!(world.refused(0, "person.send", r#"{"conversation":"dm:bob","text":"x"}"#), "not_found");
    // Nobody else is left: a post has nobody to reach, and no state.
    let alone = say(&mut world, 0, "channel:eng", "alone");
    assert!(alone.get("state").is_none());
    world.settle();
    assert_eq!(lines(&mut world, 1, "channel:eng").last().unwrap(), "alone");
}

/// §7 "Delivery", §8.3: what queued up for a machine reaches it at its own pace, in order, all of it, once.
#[test]
fn a_backlog_arrives_whole_and_in_order() {
    let mut world = World::team(33, &["alice/laptop", "bob/desk"]);
    world.pass(3_000);
    world.reach_from(1, false);
    let mut sent = Vec::new();
    for minute in 0..4 {
        for number in 0..50 {
            let words = format!("{minute}-{number}");
            say(&mut world, 0, "dm:bob", &words);
            sent.push(words);
            world.pass(20);
        }
        let more = call(&mut world, 0, "person.send", r#"{"conversation":"dm:bob","text":"x"}"#).unwrap_err();
        assert_eq!(text(&more, "data.code"), "rate_limited");
        world.pass(60_000);
    }
    world.reach_from(1, true);
    world.until("all of it is delivered", 900_000, |world| {
        let read = world.ok(1, "conv.list", "{}");
        at(&read, "conversations")
            .as_array()
            .is_some_and(|chats| chats.first().is_some_and(|chat| number(chat, "unread") == 200))
    });
    let mut got = Vec::new();
    let mut after = 0;
    loop {
        let params = format!(r#"{{"conversation":"dm:alice","after":{after},"limit":100}}"#);
        let page = world.ok(1, "conv.read", &params);
        let lines = at(&page, "lines").as_array().unwrap();
        got.extend(lines.iter().map(|line| text(line, "text").to_owned()));
        after = number(lines.last().unwrap(), "seq");
        if at(&page, "more") == &Value::Bool(false) {
            break;
        }
    }
    assert_eq!(got, sent);
    world.pass(10_000);
    let all = lines(&mut world, 0, "dm:bob");
    assert!(all.iter().all(|line| line.ends_with(" delivered")), "{all:?}");
}

/// §8.2 "Resuming": a client whose daemon was started again goes on where it was.
#[test]
fn a_client_resumes_over_a_restart() {
    let mut world = World::team(34, &["alice/laptop", "bob/desk"]);
    world.pass(3_000);
    say(&mut world, 1, "dm:alice", "one");
    world.settle();
    let first = ok(&mut world, 0, "conv.subscribe", "{}");
    let seq = number(&first, "seq");
    say(&mut world, 1, "dm:alice", "two");
    world.settle();
    world.start(0);
    world.pass(10_000);
    say(&mut world, 1, "dm:alice", "three");
    world.settle();
    let conn = world.nodes[0].admin;
    let resumed = ok(&mut world, 0, "conv.subscribe", &format!(r#"{{"since":{seq}}}"#));
    assert_eq!((number(&resumed, "seq"), at(&resumed, "gap")), (seq + 2, &Value::Bool(false)));
    say(&mut world, 1, "dm:alice", "four");
    world.settle();
    let seqs: Vec<u64> =
        world.nodes[0].events(conn, "conv").iter().map(|event| number(event, "seq")).collect();
    assert_eq!(seqs, [seq + 1, seq + 2, seq + 3]);
}

/// The same seed, the same effects: byte for byte.
#[test]
fn two_runs_of_a_seed_do_the_same() {
    let run = || {
        let mut world = World::team(35, &["alice/laptop", "alice/phone", "bob/desk"]);
        ok(&mut world, 0, "conv.subscribe", "{}");
        ok(&mut world, 0, "channel.create", r#"{"name":"eng","persons":["bob"]}"#);
        for node in 0..3 {
            say(&mut world, node, "channel:eng", "hello");
            say(&mut world, node, "dm:bob", "hello");
            world.pass(1_000);
        }
        world.restart_relay();
        ok(&mut world, 0, "search", r#"{"query":"hello"}"#);
        ok(&mut world, 2, "channel.leave", r#"{"name":"eng"}"#);
        world.pass(60_000);
        world.log
    };
    let (one, other) = (run(), run());
    assert!(one.len() > 100);
    assert!(one == other, "two runs differ");
}
