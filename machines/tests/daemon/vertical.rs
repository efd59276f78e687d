//! From nothing to two agents that talk.

use crate::common::{World, at, text};
use messaging_machines::daemon::io::Tier;

#[test]
fn a_team_is_founded_joined_and_talks() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let info = world.ok(1, "team.info", "{}");
    assert_eq!(text(&info, "role"), "member");
    assert_eq!(at(&info, "members").as_array().unwrap().len(), 2);
    let status = world.ok(1, "daemon.health", "{}");
    assert_eq!(text(&status, "relay"), "connected");

    let alice = world.connect(0, Tier::Agent);
    let bob = world.connect(1, Tier::Agent);
    let key = |letter: char| letter.to_string().repeat(24);
    for (number, conn, letter) in [(0, alice, 'a'), (1, bob, 'b')] {
        let params = format!(r#"{{"key":"{}","name":"agent","agent":"mcp","tier":"pull"}}"#, key(letter));
        world.call_on(number, conn, "session.register", &params).unwrap();
        world.call_on(number, conn, "events.subscribe", &format!(r#"{{"key":"{}"}}"#, key(letter))).unwrap();
    }
    world.pass(3_000);
    let sent = world
        .call_on(
            0,
            alice,
            "msg.send",
            &format!(r#"{{"key":"{}","to":"bob/agent","parts":[{{"text":"hello"}}]}}"#, key('a')),
        )
        .unwrap();
    assert_eq!(text(&sent, "results.0.stage"), "accepted");
    world.settle();
    let inbox = world.call_on(1, bob, "inbox.list", &format!(r#"{{"key":"{}"}}"#, key('b'))).unwrap();
    // Two persons who never met: the first request is held for bob.
    let items = at(&inbox, "items").as_array().unwrap().len();
    let held = at(&world.ok(1, "request.list", "{}"), "asks").as_array().unwrap().len();
    assert_eq!(items + held, 1, "the message arrived");
}
