//! Framing, tiers, limits and the order of checks of the local API.

use crate::common::{World, at, json, text};
use messaging_machines::daemon::io::{Event, Tier};
use messaging_proto::json::Value;

/// Sends a line and returns what came back on that connection.
fn exchange(world: &mut World, conn: messaging_machines::daemon::io::IpcId, line: &[u8]) -> Vec<Value> {
    let before = world.nodes[0].lines.len();
    world.line(0, conn, line);
    world.nodes[0].lines[before..]
        .iter()
        .filter(|(on, _)| *on == conn)
        .map(|(_, line)| line.clone())
        .collect()
}

fn number(value: &Value) -> i64 {
    match value {
        #[allow(clippy::cast_possible_truncation)]
        Value::Number(number) => *number as i64,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_line_is_the_hello() {
    let mut world = World::new(1);
    world.add();
    for tier in [Tier::Agent, Tier::Admin] {
        let conn = world.connect(0, tier);
        let first = world.nodes[0].lines.iter().find(|(on, _)| *on == conn).unwrap().1.clone();
        let hello = r#"{"jsonrpc":"2.0","method":"hello","params":
            {"daemon":"messagingd","pid":7,"protocol":1,"version":"1.0.0"}}"#;
        let sorted = |value: &Value| messaging_proto::json::canonicalize(value).unwrap();
        assert_eq!(sorted(&first), sorted(&json(hello)));
    }
}

#[test]
fn lines_that_are_no_requests() {
    let mut world = World::new(1);
    world.add();
    let conn = world.nodes[0].admin;
    for (line, code, id, data) in [
        (&b"not json"[..], -32700, None, "invalid_request"),
        (b"", -32700, None, "invalid_request"),
        (br#"{"a":1,"a":2}"#, -32700, None, "invalid_request"),
        (b"\xff", -32700, None, "invalid_request"),
        (b"[]", -32600, None, "invalid_request"),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"daemon.health"}]"#, -32600, None, "invalid_request"),
        (b"7", -32600, None, "invalid_request"),
        (br#"{"jsonrpc":"2.0","id":null,"method":"daemon.health"}"#, -32600, None, "invalid_request"),
        (br#"{"jsonrpc":"2.0","id":-1,"method":"daemon.health"}"#, -32600, None, "invalid_request"),
        (br#"{"jsonrpc":"2.0","id":1.5,"method":"daemon.health"}"#, -32600, None, "invalid_request"),
        (br#"{"jsonrpc":"2.0","id":"","method":"daemon.health"}"#, -32600, None, "invalid_request"),
        (br#"{"jsonrpc":"1.0","id":1,"method":"daemon.health"}"#, -32600, Some(1), "invalid_request"),
        (br#"{"id":1,"method":"daemon.health"}"#, -32600, Some(1), "invalid_request"),
        (br#"{"jsonrpc":"2.0","id":1}"#, -32600, Some(1), "invalid_request"),
        (br#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600, Some(1), "invalid_request"),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"daemon.health","params":[]}"#,
            -32600,
            Some(1),
            "invalid_request",
        ),
        (br#"{"jsonrpc":"2.0","id":1,"method":"daemon.health","x":1}"#, -32600, Some(1), "invalid_request"),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"daemon.health","grant":1}"#,
            -32600,
            Some(1),
            "invalid_request",
        ),
        (br#"{"jsonrpc":"2.0","id":1,"method":"no.such"}"#, -32601, Some(1), "not_found"),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"daemon.health","params":{"x":1}}"#,
            -32602,
            Some(1),
            "invalid_request",
        ),
    ] {
        let lines = exchange(&mut world, conn, line);
        let shown = String::from_utf8_lossy(line);
        assert_eq!(lines.len(), 1, "{shown}");
        let error = at(&lines[0], "error");
        assert_eq!(number(at(error, "code")), code, "{shown}");
        assert_eq!(text(error, "data.code"), data, "{shown}");
        assert!(text(error, "message").starts_with(&format!("{data}: ")), "{shown}");
        assert_eq!(at(&lines[0], "id"), &id.map_or(Value::Null, Value::int), "{shown}");
    }
    assert!(exchange(&mut world, conn, br#"{"jsonrpc":"2.0","method":"daemon.stop"}"#).is_empty());
    assert!(!world.nodes[0].stopped, "a line without an id is not run");
    let good = br#"{"jsonrpc":"2.0","id":"a","method":"daemon.health","grant":"ignored"}"#;
    let lines = exchange(&mut world, conn, good);
    assert_eq!(text(&lines[0], "id"), "a");
    assert!(lines[0].get("result").is_some());
}

#[test]
fn a_line_that_is_too_long_ends_the_connection() {
    let mut world = World::new(1);
    world.add();
    let conn = world.nodes[0].admin;
    world.event(0, Event::IpcTooLong { conn });
    let (_, line) = world.nodes[0].lines.last().unwrap().clone();
    assert_eq!((number(at(&line, "error.code")), text(&line, "error.data.code")), (-32600, "too_large"));
    assert_eq!(world.nodes[0].closed, [conn]);
    assert!(exchange(&mut world, conn, br#"{"jsonrpc":"2.0","id":1,"method":"daemon.health"}"#).is_empty());
}

#[test]
fn the_params_at_fault_are_named_and_never_their_values() {
    let mut world = World::team(1, &["alice/laptop"]);
    for (params, field) in [
        (r#"{"person":"SECRET"}"#, Some("person")),
        (r#"{"person":"bob","ttlMs":"SECRET"}"#, Some("ttlMs")),
        (r#"{}"#, Some("person")),
        (r#"{"person":null}"#, Some("person")),
        (r#"{"person":"bob","SECRET":1}"#, None),
    ] {
        let error = world.call(0, "team.invite", params).unwrap_err();
        assert_eq!(number(at(&error, "code")), -32602, "{params}");
        assert_eq!(at(&error, "data").get("field").and_then(Value::as_str), field, "{params}");
        assert!(!format!("{error:?}").contains("SECRET"), "{params}");
    }
}

#[test]
fn sixty_four_requests_may_be_in_work() {
    let mut world = World::team(1, &["alice/laptop"]);
    let conn = world.nodes[0].admin;
    // An append that the relay does not answer keeps its request in work.
    world.relay.mute = true;
    let asked: Vec<u64> = (0..65).map(|_| world.ask(0, conn, "team.invite", r#"{"person":"bob"}"#)).collect();
    let last = world.answer(0, conn, asked[64]).expect("refused at once").unwrap_err();
    assert_eq!(text(&last, "data.code"), "rate_limited");
    assert!(asked[..64].iter().all(|id| world.answer(0, conn, *id).is_none()));
    world.relay.mute = false;
    world.pass(130_000);
    assert!(asked.iter().all(|id| world.answer(0, conn, *id).is_some()), "each is answered in the end");
    assert!(world.call(0, "daemon.health", "{}").is_ok());
}

#[test]
fn a_socket_takes_256_connections() {
    let mut world = World::new(1);
    world.add();
    for _ in 0..256 {
        world.connect(0, Tier::Agent);
    }
    assert!(world.nodes[0].closed.is_empty(), "each socket counts for itself");
    let over = world.connect(0, Tier::Agent);
    assert_eq!(world.nodes[0].closed, [over]);
    let hello = world.nodes[0].lines.iter().filter(|(on, _)| *on == over).count();
    assert_eq!(hello, 1, "after its hello");
    assert!(exchange(&mut world, over, br#"{"jsonrpc":"2.0","id":1,"method":"daemon.health"}"#).is_empty());
}

#[test]
fn replies_go_where_the_request_came_from() {
    let mut world = World::team(1, &["alice/laptop"]);
    let (one, other) = (world.connect(0, Tier::Admin), world.connect(0, Tier::Admin));
    let first = world.ask(0, one, "team.invite", r#"{"person":"bob"}"#);
    world.event(0, Event::IpcClosed { conn: one });
    let second = world.ask(0, other, "team.invite", r#"{"person":"carol"}"#);
    world.settle();
    assert!(world.answer(0, one, first).is_none(), "its connection is gone");
    assert!(world.answer(0, other, second).unwrap().is_ok());
}

#[test]
fn methods_of_a_directory_realm_are_read_and_refused() {
    let mut world = World::team(1, &["alice/laptop"]);
    let device = text(&world.ok(0, "device.status", "{}"), "device").to_owned();
    let one = format!(r#"{{"device":"{device}"}}"#);
    let login = format!(r#"{{"kind":"server","remove":{{"device":"{device}","reason":"lost"}}}}"#);
    for (method, good, bad) in [
        ("device.bind", r#"{"token":"t","label":"l","kind":"laptop"}"#, r#"{"kind":"laptop"}"#),
        ("device.approve.preview", r#"{"link":"x"}"#, r#"{"link":"x","sas":"12345"}"#),
        ("device.remove.preview", &one, "{}"),
        ("identity.replace.preview", "{}", r#"{"label":"-"}"#),
        ("directory.erase.preview", "{}", r#"{"token":""}"#),
        ("wake.arm", r#"{"url":"u","ticket":"t","agents":["a"]}"#, r#"{"url":"u","ticket":"t"}"#),
        ("wake.disarm", "{}", r#"{"x":1}"#),
        ("device.list", "{}", r#"{"x":1}"#),
        ("device.remove", &one, r#"{"device":"x"}"#),
        ("device.link", "{}", r#"{"kind":"phone"}"#),
        ("device.login", &login, r#"{"kind":"jelly-host"}"#),
        ("device.login", "{}", r#"{"remove":{"reason":"lost"}}"#),
        ("device.login.status", r#"{"waitMs":120000}"#, r#"{"waitMs":120001}"#),
        ("device.login.cancel", "{}", r#"{"x":1}"#),
        ("device.approve", r#"{"link":"x","sas":"123456"}"#, r#"{"link":"x"}"#),
        ("identity.replace", "{}", r#"{"token":7}"#),
        ("directory.erase", "{}", r#"{"x":1}"#),
    ] {
        assert_eq!(world.refused(0, method, good), "invalid_state", "{method}");
        let error = world.call(0, method, bad).unwrap_err();
        assert_eq!(number(at(&error, "code")), -32602, "{method}");
    }
    for method in ["contact.request", "contact.request.preview"] {
        let error = world.call(0, method, r#"{"email":"a@b.example","text":"hi"}"#).unwrap_err();
        assert_eq!((number(at(&error, "code")), text(&error, "data.code")), (-32000, "invalid_request"));
    }
    let agent = world.connect(0, Tier::Agent);
    let call = |world: &mut World, method: &str| {
        text(&world.call_on(0, agent, method, r#"{"token":"t"}"#).unwrap_err(), "data.code").to_owned()
    };
    assert_eq!(call(&mut world, "device.bind"), "invalid_state", "an agent's method");
    assert_eq!(call(&mut world, "device.list"), "forbidden");
}
