//! Every way an agent or a person sends something, with a credential in it (`messaging/1 §8.7`).

use crate::daemon::testing::{World, at, key, text};
use messaging_proto::b64;
use messaging_proto::json::Value;

/// A token by its form alone.
const TOKEN: &str = "npm_abcDEF0123456789abcDEF0123456789abcd";

struct Path {
    number: usize,
    method: &'static str,
    params: String,
    field: &'static str,
}

/// Every path and every place of a value, for a task `task` that bob executes.
fn paths(task: &str) -> Vec<Path> {
    let raw = b64::encode(format!("token = {TOKEN}\n").as_bytes());
    let (a, b) = (key('a'), key('b'));
    let send = |field, rest: String| Path {
        number: 0,
        method: "msg.send",
        params: format!(r#"{{"key":"{a}",{rest}}}"#),
        field,
    };
    let work = |field, rest: String| Path {
        number: 1,
        method: "task.update",
        params: format!(r#"{{"key":"{b}","taskId":"{task}",{rest}}}"#),
        field,
    };
    let person = |field, rest: String| Path {
        number: 0,
        method: "person.send",
        params: format!(r#"{{"conversation":"dm:bob",{rest}}}"#),
        field,
    };
    let to = r#""to":"bob/agent""#;
    let x = r#""parts":[{"text":"x"}]"#;
    vec![
        send("parts[0]", format!(r#"{to},"parts":[{{"text":"my {TOKEN}"}}]"#)),
        send("parts[1]", format!(r#"{to},"parts":[{{"text":"x"}},{{"data":{{"a":[{{"b":"{TOKEN}"}}]}}}}]"#)),
        send("parts[0]", format!(r#"{to},"parts":[{{"data":{{"{TOKEN}":1}}}}]"#)),
        send("parts[0]", format!(r#"{to},"parts":[{{"raw":"{raw}","mediaType":"text/plain"}}]"#)),
        send("parts[0]", format!(r#"{to},"parts":[{{"text":"x","filename":"{TOKEN}"}}]"#)),
        send("metadata", format!(r#"{to},{x},"metadata":{{"deep":{{"er":"{TOKEN}"}}}}"#)),
        send("extensions", format!(r#"{to},{x},"extensions":["{TOKEN}"]"#)),
        send("idempotencyKey", format!(r#"{to},{x},"idempotencyKey":"{TOKEN}""#)),
        send("parts[0]", format!(r#"{to},"kind":"task","parts":[{{"text":"{TOKEN}"}}]"#)),
        send("parts[0]", format!(r#"{to},"replyTo":"{task}","parts":[{{"text":"{TOKEN}"}}]"#)),
        send("parts[0]", format!(r#""to":"bob","parts":[{{"text":"{TOKEN}"}}]"#)),
        send("parts[0]", format!(r##""to":"#nowhere","parts":[{{"text":"{TOKEN}"}}]"##)),
        work("message", format!(r#""state":"TASK_STATE_WORKING","message":[{{"text":"{TOKEN}"}}]"#)),
        work("artifact", format!(r#""artifact":{{"parts":[{{"text":"{TOKEN}"}}]}}"#)),
        work("artifact", format!(r#""artifact":{{"description":"{TOKEN}",{x}}}"#)),
        work("artifact", format!(r#""artifact":{{"name":"log","parts":[{{"raw":"{raw}"}}]}}"#)),
        Path {
            number: 0,
            method: "task.cancel",
            params: format!(r#"{{"key":"{a}","taskId":"{task}","reason":"{TOKEN}"}}"#),
            field: "reason",
        },
        person("text", format!(r#""text":"{TOKEN}""#)),
        person("clientId", format!(r#""text":"x","clientId":"{TOKEN}""#)),
    ]
}

#[test]
fn no_path_sends_a_credential() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let admin = world.connect(1);
    world.ok(1, admin, "grant.set", r#"{"subject":{"person":"alice"},"ask":"open"}"#);
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let a = key('a');
    let ask = format!(r#"{{"key":"{a}","to":"bob/agent","kind":"task","parts":[{{"text":"x"}}]}}"#);
    let task = text(&world.ok(0, alice, "msg.send", &ask), "results.0.taskId").to_owned();
    // The same idempotency key with a credential is refused for that, before the key is looked up.
    let once = |words: &str| {
        format!(r#"{{"key":"{a}","to":"bob/agent","idempotencyKey":"k","parts":[{{"text":"{words}"}}]}}"#)
    };
    world.ok(0, alice, "msg.send", &once("x"));
    world.run();
    let before: Vec<_> = world.nodes.iter().map(|node| (node.base.clone(), node.sends)).collect();
    assert_eq!(world.refused(0, alice, "msg.send", &once(TOKEN)), "secret_refused");
    for path in paths(&task) {
        let conn = if path.number == 0 { alice } else { bob };
        let error = world.call(path.number, conn, path.method, &path.params).unwrap_err();
        assert_eq!(text(&error, "data.code"), "secret_refused", "{}", path.params);
        assert_eq!(text(&error, "data.field"), path.field, "{}", path.params);
        let said = text(&error, "message");
        assert!(said.contains(path.field) && said.contains("npm-token") && !said.contains(TOKEN), "{said}");
    }
    world.run();
    for (node, (base, sends)) in world.nodes.iter().zip(before) {
        assert!(node.base == base && node.sends == sends, "nothing is stored, nothing is sent");
    }
}

#[test]
fn the_check_can_be_turned_off_for_the_whole_daemon_and_never_by_a_call() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let admin = world.connect(1);
    world.ok(1, admin, "grant.set", r#"{"subject":{"person":"alice"},"ask":"open"}"#);
    world.configure(0, r#"{"outbound":{"refuseSecrets":false}}"#);
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let params = format!(r#"{{"key":"{}","to":"bob/agent","parts":[{{"text":"{TOKEN}"}}]}}"#, key('a'));
    world.ok(0, alice, "msg.send", &params);
    world.run();
    assert_eq!(text(&world.unread(1, bob, 'b')[0], "preview"), TOKEN);
    // A session's own key is no content, whatever it looks like.
    let conn = world.connect(1);
    let register = format!(r#"{{"key":"{TOKEN}","name":"odd","agent":"codex","tier":"pull"}}"#);
    world.ok(1, conn, "session.register", &register);
    let line = format!(r#"{{"key":"{TOKEN}","to":"alice","parts":[{{"text":"x"}}]}}"#);
    world.ok(1, conn, "msg.send", &line);
    let inbox = world.ok(1, conn, "inbox.list", &format!(r#"{{"key":"{TOKEN}"}}"#));
    assert_eq!(at(&inbox, "unread"), &Value::int(0));
}
