//! Issue 5, "kill -9": a daemon dies at any event of an exchange, before its commit, after it, or after some of what it
//! said left. The end is the undisturbed one.

use crate::common::{Crash, World, text};
use crate::person::{call, chats, lines, members, ok};

/// What everybody holds in the end.
#[derive(Debug, PartialEq)]
struct End {
    direct: [Vec<String>; 2],
    channel: [Vec<String>; 3],
    chats: [Vec<String>; 3],
    members: String,
}

/// Calls a method that a repeat refuses, since it is done.
fn once(world: &mut World, node: usize, method: &str, params: &str, done: &str) {
    if let Err(error) = call(world, node, method, params) {
        assert_eq!(text(&error, "data.code"), done, "{method}");
    }
}

/// Runs the exchange with a crash. Whether it happened.
fn exchange(crash: Option<(usize, Crash)>) -> (End, bool) {
    let mut world = World::team(36, &["alice/laptop", "bob/desk", "carol/tower"]);
    world.pass(3_000);
    if let Some((node, crash)) = crash {
        world.crash(node, crash);
    }
    let say = |world: &mut World, node: usize, room: &str, words: &str| {
        let params = format!(r#"{{"conversation":"{room}","text":"{words}","clientId":"{words}"}}"#);
        ok(world, node, "person.send", &params);
        world.pass(3_000);
    };
    say(&mut world, 0, "dm:bob", "direct");
    let create = r#"{"name":"eng","persons":["bob","carol"]}"#;
    once(&mut world, 0, "channel.create", create, "invalid_request");
    // A machine that was away gets the channel before anybody's posts in it.
    world.pass(15_000);
    say(&mut world, 1, "channel:eng", "post");
    world.pass(15_000);
    let remove = r#"{"name":"eng","persons":["carol"]}"#;
    once(&mut world, 0, "channel.remove", remove, "not_found");
    world.pass(15_000);
    say(&mut world, 1, "dm:alice", "answer");
    ok(&mut world, 0, "conv.markRead", r#"{"conversation":"channel:eng","upTo":1000}"#);
    world.pass(15_000);
    let happened = crash.is_some_and(|(node, _)| world.nodes[node].crash.is_none());
    let end = End {
        direct: [lines(&mut world, 0, "dm:bob"), lines(&mut world, 1, "dm:alice")],
        channel: [lines(&mut world, 0, "channel:eng"), lines(&mut world, 1, "channel:eng"), Vec::new()],
        chats: [0, 1, 2].map(|node| chats(&mut world, node)),
        members: members(&mut world, 1, "channel:eng"),
    };
    (end, happened)
}

#[test]
fn chats_survive_a_crash_at_any_event() {
    let (undisturbed, _) = exchange(None);
    assert_eq!(undisturbed.direct[0], ["direct delivered", "answer"]);
    let notices = ["alice created #eng with bob, carol", "alice removed carol from #eng"];
    assert_eq!(undisturbed.channel[0], [notices[0], "post", notices[1]]);
    assert_eq!(undisturbed.channel[1], [notices[0], "post delivered", notices[1]]);
    assert_eq!(undisturbed.chats[0], ["dm:bob 1", "channel:eng 0"]);
    assert_eq!(undisturbed.chats[2], [""; 0]);
    assert_eq!(undisturbed.members, "alice bob");
    for node in [0, 1, 2] {
        let mut step = 1;
        loop {
            let mut happened = false;
            for (committed, effects) in [(false, 0), (true, 0), (true, 1)] {
                let crash = Crash { at: step, committed, effects };
                let (end, crashed) = exchange(Some((node, crash)));
                happened |= crashed;
                assert_eq!(end, undisturbed, "machine {node}, {crash:?}");
            }
            if !happened {
                break;
            }
            step += 1;
        }
        assert!(step > 8, "only {step} events");
    }
}
