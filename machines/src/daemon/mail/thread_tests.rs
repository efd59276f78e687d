//! Conversations between agents, as both read them.

use crate::daemon::testing::{World, at, key, text};
use messaging_proto::json::Value;

fn kinds(answer: &Value) -> Vec<String> {
    let entries = at(answer, "entries").as_array().unwrap().iter();
    entries.map(|entry| format!("{} {}", text(entry, "type"), text(entry, "direction"))).collect()
}

#[test]
fn a_conversation_holds_mail_and_tasks_in_order() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let admin = world.connect(1);
    world.ok(1, admin, "grant.set", r#"{"subject":{"person":"alice"},"ask":"open"}"#);
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let send = |world: &mut World, more: &str| {
        let params = format!(r#"{{"key":"{}","to":"bob/agent","parts":[{{"text":"x"}}]{more}}}"#, key('a'));
        let sent = world.ok(0, alice, "msg.send", &params);
        world.run();
        world.pass(1_000);
        sent
    };
    let first = text(&send(&mut world, ""), "results.0.envelopeId").to_owned();
    let task = text(&send(&mut world, r#","kind":"task""#), "results.0.taskId").to_owned();
    let reply =
        format!(r#"{{"key":"{}","to":"alice/lead","parts":[{{"text":"y"}}],"replyTo":"{first}"}}"#, key('b'));
    world.ok(1, bob, "msg.send", &reply);
    world.run();
    let conversation = |letter: char, with: &str, more: &str| {
        format!(r#"{{"key":"{}","conversation":"agent:{with}"{more}}}"#, key(letter))
    };
    let mine = world.ok(0, alice, "conv.read", &conversation('a', "bob/agent", ""));
    assert_eq!(kinds(&mine), ["mail out", "task out", "mail in"]);
    assert_eq!(text(&mine, "entries.0.stage"), "replied");
    assert_eq!(text(&mine, "entries.1.taskId"), task);
    assert_eq!(text(&mine, "entries.1.state"), "TASK_STATE_SUBMITTED");
    assert_eq!(text(&mine, "entries.2.preview"), "y");
    let theirs = world.ok(1, bob, "conv.read", &conversation('b', "alice/lead", ""));
    assert_eq!(kinds(&theirs), ["mail in", "task in", "mail out"]);

    // Pages meet from either side.
    let latest = world.ok(0, alice, "conv.read", &conversation('a', "bob/agent", r#","limit":2"#));
    assert_eq!(
        (kinds(&latest), at(&latest, "more")),
        (vec!["task out".into(), "mail in".into()], &Value::Bool(true))
    );
    let cursor = format!(
        r#","before":{{"at":{},"id":"{}"}}"#,
        messaging_proto::json::canonicalize(at(&latest, "entries.0.at")).unwrap(),
        text(&latest, "entries.0.id")
    );
    let before = world.ok(0, alice, "conv.read", &conversation('a', "bob/agent", &cursor));
    assert_eq!((kinds(&before), at(&before, "more")), (vec!["mail out".to_owned()], &Value::Bool(false)));
    let after = cursor.replace("before", "after");
    assert_eq!(kinds(&world.ok(0, alice, "conv.read", &conversation('a', "bob/agent", &after))), ["mail in"]);

    // The person sees the same of its own agents, and nothing moves by looking.
    let admin = world.connect(1);
    let agents = world.ok(1, admin, "agents.list", "{}");
    assert_eq!(text(&agents, "agents.0.agent"), "agent");
    assert_eq!(
        (at(&agents, "agents.0.conversations"), at(&agents, "agents.0.unread")),
        (&Value::int(1), &Value::int(2))
    );
    let list = world.ok(1, admin, "agents.read", r#"{"agent":"agent"}"#);
    assert_eq!(text(&list, "conversations.0.conversation"), "agent:alice/lead");
    assert_eq!(at(&list, "conversations.0.unread"), &Value::int(2));
    let read = world.ok(1, admin, "agents.read", r#"{"agent":"agent","conversation":"agent:alice/lead"}"#);
    assert_eq!((text(&read, "kind"), kinds(&read)), ("entries", kinds(&theirs)));
    assert_eq!(world.unread(1, bob, 'b').len(), 2);

    for (params, code) in [
        (conversation('a', "bob/nobody", ""), "no_recipients"),
        (conversation('a', "bob/agent", r#","before":3"#), "invalid_request"),
        (conversation('a', "bob/agent", r#","thread":"01ARZ3NDEKTSV4RRFFQ69G5FAV""#), "invalid_request"),
        (r#"{"conversation":"agent:bob/agent"}"#.to_owned(), "invalid_request"),
        (r#"{"conversation":"channel:eng"}"#.to_owned(), "not_found"),
        (r#"{"conversation":"dm:nobody"}"#.to_owned(), "not_found"),
        (format!(r#"{{"conversation":"dm:bob"{cursor}}}"#), "invalid_request"),
    ] {
        assert_eq!(world.refused(0, alice, "conv.read", &params), code, "{params}");
    }
    for (params, code) in [
        (r#"{"agent":"ghost"}"#, "not_found"),
        (r#"{"agent":"agent","before":{"at":1,"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}}"#, "invalid_request"),
        (r#"{"agent":"agent","conversation":"dm:alice"}"#, "invalid_request"),
    ] {
        assert_eq!(world.refused(1, admin, "agents.read", params), code, "{params}");
    }
    let empty = world.ok(0, alice, "conv.read", r#"{"conversation":"dm:bob"}"#);
    assert_eq!(at(&empty, "lines").as_array().unwrap().len(), 0);
}
