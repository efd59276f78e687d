//! Registering, keeping, taking over, forgetting; what presence makes of it.

use crate::daemon::io::IpcId;
use crate::daemon::testing::{World, at, key, text};
use messaging_proto::json::Value;

fn register(world: &mut World, conn: IpcId, letter: char, name: &str, agent: &str) -> Value {
    let params = format!(r#"{{"key":"{}","name":"{name}","agent":"{agent}","tier":"pull"}}"#, key(letter));
    world.ok(0, conn, "session.register", &params)
}

fn entries(world: &mut World, number: usize) -> Vec<Value> {
    let conn = world.connect(number);
    at(&world.ok(number, conn, "contacts.list", "{}"), "entries").as_array().unwrap().to_vec()
}

#[test]
fn names_are_suffixed_and_kept_ones_taken_over_by_their_kind() {
    let mut world = World::new(&["alice/desk"]);
    let one = world.connect(0);
    let first = register(&mut world, one, 'a', "agent", "codex");
    assert_eq!(text(&first, "address"), "alice/agent@desk");
    assert_eq!(at(&first, "resumed"), &Value::Bool(false));
    let two = world.connect(0);
    assert_eq!(text(&register(&mut world, two, 'b', "agent", "codex"), "name"), "agent-2");
    assert_eq!(text(&register(&mut world, two, 'c', "agent", "mcp"), "name"), "agent-3");
    // The same key again keeps its address, and takes what it now says.
    let again = register(&mut world, two, 'b', "agent", "codex");
    assert_eq!((text(&again, "name"), at(&again, "resumed")), ("agent-2", &Value::Bool(true)));
    // Mail waits for the kept session, and goes to whoever takes it over.
    world.close(0, one);
    world.ok(
        0,
        two,
        "msg.send",
        &format!(r#"{{"key":"{}","to":"alice/agent","parts":[{{"text":"x"}}]}}"#, key('b')),
    );
    let three = world.connect(0);
    assert_eq!(text(&register(&mut world, three, 'd', "agent", "mcp"), "name"), "agent-4", "another kind");
    let taken = register(&mut world, three, 'e', "agent", "codex");
    assert_eq!((text(&taken, "name"), at(&taken, "resumed")), ("agent", &Value::Bool(true)));
    assert_eq!(at(&taken, "unread"), &Value::int(1));
    assert_eq!(world.unread(0, three, 'e').len(), 1);
    // The old key is nobody's now.
    let old = register(&mut world, three, 'a', "agent", "codex");
    assert_eq!(at(&old, "resumed"), &Value::Bool(false));
    assert_ne!(text(&old, "name"), "agent");
    assert_eq!(at(&old, "unread"), &Value::int(0));
}

#[test]
fn a_session_is_kept_a_day_and_a_terminal_for_ever() {
    let mut world = World::new(&["alice/desk"]);
    let conn = world.connect(0);
    register(&mut world, conn, 'a', "agent", "codex");
    register(&mut world, conn, 'b', "cli", "cli");
    world.close(0, conn);
    let names = |world: &mut World| -> Vec<(String, bool)> {
        entries(world, 0)
            .iter()
            .map(|entry| (text(entry, "agent").to_owned(), at(entry, "kept") == &Value::Bool(true)))
            .collect()
    };
    assert_eq!(names(&mut world), [("agent".to_owned(), true), ("cli".to_owned(), false)]);
    world.link(0, false);
    world.pass(86_399_000);
    assert_eq!(names(&mut world).len(), 2);
    world.pass(62_000);
    assert_eq!(names(&mut world), [("cli".to_owned(), false)]);
    let conn = world.connect(0);
    let back = register(&mut world, conn, 'a', "agent", "codex");
    assert_eq!(at(&back, "resumed"), &Value::Bool(false));
}

#[test]
fn forgetting_a_session_forgets_its_unread_mail() {
    let mut world = World::new(&["alice/desk"]);
    let conn = world.connect(0);
    register(&mut world, conn, 'a', "agent", "codex");
    register(&mut world, conn, 'b', "other", "codex");
    let mail = format!(r#"{{"key":"{}","to":"alice/agent","parts":[{{"text":"x"}}]}}"#, key('b'));
    world.ok(0, conn, "msg.send", &mail);
    world.ok(0, conn, "session.unregister", &format!(r#"{{"key":"{}","keep":false}}"#, key('a')));
    let list = format!(r#"{{"key":"{}"}}"#, key('a'));
    assert_eq!(world.refused(0, conn, "inbox.list", &list), "not_found");
    assert_eq!(world.refused(0, conn, "msg.send", &mail), "unknown_session");
    world.pass(61_000);
    let back = register(&mut world, conn, 'a', "agent", "codex");
    assert_eq!((at(&back, "resumed"), at(&back, "unread")), (&Value::Bool(false), &Value::int(0)));
}

#[test]
fn keys_belong_to_the_connections_that_registered_them() {
    let mut world = World::new(&["alice/desk"]);
    let one = world.connect(0);
    register(&mut world, one, 'a', "agent", "codex");
    let two = world.connect(0);
    let list = format!(r#"{{"key":"{}"}}"#, key('a'));
    assert_eq!(world.refused(0, two, "inbox.list", &list), "not_found");
    register(&mut world, two, 'a', "agent", "codex");
    world.ok(0, two, "inbox.list", &list);
    world.close(0, one);
    world.ok(0, two, "inbox.list", &list);
    let live: Vec<Value> = entries(&mut world, 0);
    assert_eq!(at(&live[0], "kept"), &Value::Bool(false));
    world.ok(0, two, "session.unregister", &format!(r#"{{"key":"{}"}}"#, key('a')));
    assert_eq!(world.refused(0, two, "inbox.list", &list), "not_found");
    let kept: Vec<Value> = entries(&mut world, 0);
    assert_eq!((at(&kept[0], "kept"), text(&kept[0], "state")), (&Value::Bool(true), "offline"));
}

#[test]
fn params_of_a_registration() {
    let mut world = World::new(&["alice/desk"]);
    let conn = world.connect(0);
    let base = format!(r#""key":"{}","name":"agent","tier":"push""#, key('a'));
    for (more, field) in [
        (
            r#""agent":"codex","host":{"kind":"opencode","location":"/x","sessionID":"s","pid":1}"#,
            "host.kind",
        ),
        (r#""agent":"codex","ticket":"t""#, "ticket"),
        (
            r#""agent":"opencode","host":{"kind":"opencode","location":"x","sessionID":"s","pid":1}"#,
            "host.location",
        ),
        (
            r#""agent":"opencode","host":{"kind":"other","location":"/x","sessionID":"s","pid":1}"#,
            "host.kind",
        ),
        (r#""agent":"Codex""#, "agent"),
        (r#""agent":"codex","features":[""]"#, "features[0]"),
    ] {
        let error = world.call(0, conn, "session.register", &format!("{{{base},{more}}}")).unwrap_err();
        assert_eq!((text(&error, "data.code"), text(&error, "data.field")), ("invalid_request", field));
    }
    let host = r#""agent":"opencode","host":{"kind":"opencode","location":"/x","sessionID":"s","pid":1}"#;
    world.ok(0, conn, "session.register", &format!("{{{base},{host}}}"));
}

/// §6.5: others learn of sessions within two seconds, of a kept one last and bare, and only what is shared.
#[test]
fn presence_tells_sessions_and_no_more_than_is_shared() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    world.configure(0, r#"{"presence":{"share":["repo"]}}"#);
    let conn = world.connect(0);
    let params = format!(
        r#"{{"key":"{}","name":"agent","agent":"codex","tier":"push","repo":"r","branch":"b","doing":"d"}}"#,
        key('a')
    );
    world.ok(0, conn, "session.register", &params);
    world.pass(2_000);
    let seen = entries(&mut world, 1);
    assert_eq!(seen.len(), 1);
    assert_eq!(text(&seen[0], "address"), "alice/agent@desk");
    assert_eq!((text(&seen[0], "repo"), seen[0].get("branch"), seen[0].get("doing")), ("r", None, None));
    assert_eq!((text(&seen[0], "state"), text(&seen[0], "expect")), ("idle", "wake"));
    let own = entries(&mut world, 0);
    assert_eq!((text(&own[0], "doing"), at(&own[0], "local")), ("d", &Value::Bool(true)));
    world.close(0, conn);
    world.pass(2_000);
    let seen = entries(&mut world, 1);
    assert_eq!((at(&seen[0], "kept"), text(&seen[0], "expect")), (&Value::Bool(true), "kept"));
    world.link(0, false);
    let seen = entries(&mut world, 1);
    assert_eq!((text(&seen[0], "expect"), at(&seen[0], "online")), ("offline", &Value::Bool(false)));
}

/// Report 27: a session the daemon did not start itself goes on after a restart of the daemon.
#[test]
fn report_27_a_live_session_survives_the_daemon() {
    let mut world = World::new(&["alice/desk"]);
    let conn = world.connect(0);
    register(&mut world, conn, 'a', "agent", "codex");
    register(&mut world, conn, 'b', "other", "codex");
    let mail = format!(r#"{{"key":"{}","to":"alice/agent","parts":[{{"text":"x"}}]}}"#, key('b'));
    world.ok(0, conn, "msg.send", &mail);
    world.start(0);
    let conn = world.connect(0);
    let back = register(&mut world, conn, 'a', "agent", "codex");
    assert_eq!((text(&back, "name"), at(&back, "resumed")), ("agent", &Value::Bool(true)));
    assert_eq!(at(&back, "unread"), &Value::int(1));
}
