//! Each refusal of the methods that write lines, in the contract's order (contract ipc §3.1, §4).

use super::{Chat, id, ulid};
use crate::daemon::testing::{at, key, text};

/// A token of no account, in the form of one.
const TOKEN: &str = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5";

fn long() -> String {
    "a".repeat(8_001)
}

#[test]
fn person_send_refuses() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    let before = chat.world.nodes[0].base.clone();
    let thread = ulid(1);
    let long = long();
    for (params, code) in [
        (r#"{"conversation":"dm:bob"}"#.to_owned(), "invalid_request"),
        (r#"{"conversation":"dm:bob","text":""}"#.to_owned(), "invalid_request"),
        (r#"{"conversation":"bob","text":"x"}"#.to_owned(), "invalid_request"),
        (r#"{"conversation":"agent:bob/x","text":"x"}"#.to_owned(), "invalid_request"),
        (r#"{"conversation":"dm:bob","text":"x","thread":"x"}"#.to_owned(), "invalid_request"),
        (r#"{"conversation":"dm:bob","text":"x","clientId":""}"#.to_owned(), "invalid_request"),
        (r#"{"conversation":"dm:bob","text":"x","y":1}"#.to_owned(), "invalid_request"),
        // The credential before all else, then the length, then whom it is for.
        (format!(r#"{{"conversation":"dm:nobody","text":"{TOKEN}{long}"}}"#), "secret_refused"),
        (format!(r#"{{"conversation":"dm:bob","text":"{TOKEN}"}}"#), "secret_refused"),
        (format!(r#"{{"conversation":"dm:bob","text":"x","clientId":"{TOKEN}"}}"#), "secret_refused"),
        (format!(r#"{{"conversation":"dm:nobody","text":"{long}"}}"#), "too_large"),
        (r#"{"conversation":"dm:nobody","text":"x"}"#.to_owned(), "not_found"),
        (r#"{"conversation":"channel:eng","text":"x"}"#.to_owned(), "not_found"),
        (format!(r#"{{"conversation":"dm:bob","text":"x","thread":"{thread}"}}"#), "not_found"),
    ] {
        assert_eq!(chat.refused(0, "person.send", &params), code, "{params}");
    }
    assert!(chat.world.nodes[0].base == before, "nothing was stored");
    // What a line may just hold: in UTF-16 units.
    let wide = "\u{1F600}".repeat(4_000);
    let line = chat.say(0, "dm:bob", &wide, "");
    assert_eq!(text(&line, "text"), wide);
    assert_eq!(chat.texts(1, "dm:alice"), [wide]);
    chat.world.configure(0, r#"{"outbound":{"refuseSecrets":false}}"#);
    chat.admin[0] = chat.world.connect(0);
    chat.say(0, "dm:bob", TOKEN, "");
}

#[test]
fn msg_send_refuses_what_is_no_line() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    let conn = chat.world.session(0, 'a', "lead", "codex");
    let key = key('a');
    let call = |to: &str, more: &str| format!(r#"{{"key":"{key}","to":"{to}"{more}}}"#);
    let one = r#","parts":[{"text":"x"}]"#;
    let before = chat.world.nodes[0].base.clone();
    let (task, long) = (ulid(1), long());
    let behalf = format!(r#","onBehalfOf":{{"taskId":"{task}"}}"#);
    for (more, field) in [
        (r#","parts":[{"text":"x"}],"kind":"task""#.to_owned(), "kind"),
        (r#","parts":[{"text":"x"},{"text":"y"}]"#.to_owned(), "parts"),
        (r#","parts":[{"text":""}]"#.to_owned(), "parts"),
        (r#","parts":[{"text":"x","mediaType":"text/plain"}]"#.to_owned(), "parts"),
        (r#","parts":[{"data":1}]"#.to_owned(), "parts"),
        (format!(r#"{one},"contextId":"{task}""#), "contextId"),
        (format!(r#"{one},"taskId":"{task}""#), "taskId"),
        (format!(r#"{one},"messageId":"{task}""#), "messageId"),
        (format!(r#"{one},"metadata":{{}}"#), "metadata"),
        (format!(r#"{one},"extensions":[]"#), "extensions"),
        (format!(r#"{one},"referenceTaskIds":[]"#), "referenceTaskIds"),
        (format!("{one}{behalf}"), "onBehalfOf"),
        (format!(r#"{one},"wake":true"#), "wake"),
        (format!(r#"{one},"request":{{"contact":"a@example.com"}}"#), "request"),
    ] {
        for to in ["bob", "#eng", "alice", "nobody"] {
            let error = chat.world.call(0, conn, "msg.send", &call(to, &more)).unwrap_err();
            assert_eq!(
                (text(&error, "data.code"), text(&error, "data.field")),
                ("invalid_request", field),
                "{to} {more}"
            );
        }
    }
    for (to, more, code) in [
        ("Bob", one.to_owned(), "invalid_request"),
        ("#", one.to_owned(), "invalid_request"),
        ("#Eng", one.to_owned(), "invalid_request"),
        ("dm:bob", one.to_owned(), "invalid_request"),
        ("nobody", format!(r#","parts":[{{"text":"{long}"}}]"#), "too_large"),
        ("nobody", format!(r#","parts":[{{"text":"{TOKEN}{long}"}}],"kind":"task""#), "secret_refused"),
        ("nobody", one.to_owned(), "not_found"),
        ("#eng", one.to_owned(), "not_found"),
        ("bob", format!(r#"{one},"replyTo":"{task}""#), "not_found"),
    ] {
        assert_eq!(chat.world.refused(0, conn, "msg.send", &call(to, &more)), code, "{to} {more}");
    }
    assert!(chat.world.nodes[0].base == before, "nothing was stored");
    // The thread is the `contextId` of the result.
    let first = chat.agent_says(0, conn, 'a', "bob", "first");
    let line = text(&first, "messageId").to_owned();
    assert_eq!(text(&first, "contextId"), line);
    let reply = chat.world.ok(0, conn, "msg.send", &call("bob", &format!(r#"{one},"replyTo":"{line}""#)));
    assert_eq!(text(&reply, "results.0.contextId"), line);
    assert_ne!(text(&reply, "results.0.messageId"), line);
}

/// §8.2: one call with a `clientId` is one line, for a week, by each sender.
#[test]
fn a_client_id_is_one_line() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    let first = chat.say(0, "dm:bob", "once", r#","clientId":"c""#);
    let again = chat.say(0, "dm:bob", "once", r#","clientId":"c""#);
    assert_eq!(first, again);
    let reply = chat.say(0, "dm:bob", "reply", &format!(r#","thread":"{}","clientId":"d""#, id(&first)));
    // Any line of the thread is the same thread.
    let more = format!(r#","thread":"{}","clientId":"d""#, id(&reply));
    assert_eq!(chat.say(0, "dm:bob", "reply", &more), reply);
    for params in [
        r#"{"conversation":"dm:bob","text":"other","clientId":"c"}"#.to_owned(),
        r#"{"conversation":"dm:alice","text":"once","clientId":"c"}"#.to_owned(),
        format!(r#"{{"conversation":"dm:bob","text":"once","clientId":"c","thread":"{}"}}"#, id(&first)),
        // Also before it is found too long or to be for nobody.
        format!(r#"{{"conversation":"dm:nobody","text":"{}","clientId":"c"}}"#, long()),
    ] {
        let conn = chat.admin[0];
        let error = chat.world.call(0, conn, "person.send", &params).unwrap_err();
        assert_eq!((text(&error, "data.code"), text(&error, "data.field")), ("invalid_request", "clientId"));
    }
    assert_eq!(chat.texts(1, "dm:alice"), ["once", "reply"]);
    // A session has its own, shared with its mail.
    let conn = chat.world.session(0, 'a', "lead", "codex");
    let key = key('a');
    let line = |to: &str, words: &str, id: &str| {
        format!(r#"{{"key":"{key}","to":"{to}","parts":[{{"text":"{words}"}}],"idempotencyKey":"{id}"}}"#)
    };
    let one = chat.world.ok(0, conn, "msg.send", &line("bob", "once", "c"));
    let two = chat.world.ok(0, conn, "msg.send", &line("bob", "once", "c"));
    assert_eq!(one, two);
    assert_ne!(text(&one, "results.0.messageId"), id(&first));
    let other = chat.world.refused(0, conn, "msg.send", &line("bob", "twice", "c"));
    assert_eq!(other, "invalid_request");
    chat.world.run();
    assert_eq!(chat.texts(1, "dm:alice"), ["once", "reply", "once"]);
    assert_eq!(at(&one, "results").as_array().unwrap().len(), 1);
    // Over a restart, and until its time is over.
    chat.world.start(0);
    chat.admin[0] = chat.world.connect(0);
    assert_eq!(chat.say(0, "dm:bob", "once", r#","clientId":"c""#), first);
    chat.world.wall += 604_800_000;
    chat.world.pass(60_000);
    let fresh = chat.say(0, "dm:bob", "once", r#","clientId":"c""#);
    assert_ne!(id(&fresh), id(&first));
}

#[test]
fn conv_methods_refuse() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    let entry = format!(r#"{{"at":1,"id":"{}"}}"#, ulid(1));
    for (method, params, code) in [
        ("conv.read", r#"{"conversation":"dm:bob","before":1,"after":2}"#.to_owned(), "invalid_request"),
        ("conv.read", format!(r#"{{"conversation":"dm:bob","before":{entry}}}"#), "invalid_request"),
        ("conv.read", format!(r#"{{"conversation":"dm:nobody","after":{entry}}}"#), "invalid_request"),
        ("conv.read", r#"{"conversation":"dm:bob","limit":0}"#.to_owned(), "invalid_request"),
        ("conv.read", r#"{"conversation":"dm:bob","limit":101}"#.to_owned(), "invalid_request"),
        ("conv.read", r#"{"conversation":"room:bob"}"#.to_owned(), "invalid_request"),
        ("conv.read", r#"{"conversation":"dm:nobody"}"#.to_owned(), "not_found"),
        ("conv.read", r#"{"conversation":"channel:eng"}"#.to_owned(), "not_found"),
        ("conv.read", format!(r#"{{"conversation":"dm:bob","thread":"{}"}}"#, ulid(1)), "not_found"),
        ("conv.read", format!(r#"{{"key":"{}","conversation":"dm:bob"}}"#, key('z')), "not_found"),
        ("conv.list", r#"{"limit":201}"#.to_owned(), "invalid_request"),
        ("conv.list", r#"{"limit":0}"#.to_owned(), "invalid_request"),
        ("conv.list", r#"{"x":0}"#.to_owned(), "invalid_request"),
        ("conv.markRead", r#"{"conversation":"dm:bob"}"#.to_owned(), "invalid_request"),
        ("conv.markRead", r#"{"conversation":"dm:bob","upTo":-1}"#.to_owned(), "invalid_request"),
        ("conv.markRead", r#"{"conversation":"dm:bob","upTo":0.5}"#.to_owned(), "invalid_request"),
        ("conv.markRead", r#"{"conversation":"dm:nobody","upTo":1}"#.to_owned(), "not_found"),
        ("conv.markRead", r#"{"conversation":"channel:eng","upTo":1}"#.to_owned(), "not_found"),
        ("conv.subscribe", r#"{"since":-1}"#.to_owned(), "invalid_request"),
        ("conv.subscribe", r#"{"x":1}"#.to_owned(), "invalid_request"),
        ("channel.invite", r#"{"name":"eng","persons":["bob"]}"#.to_owned(), "not_found"),
        ("channel.invite", r#"{"name":"eng","persons":[]}"#.to_owned(), "invalid_request"),
        ("channel.leave", r#"{"name":"eng"}"#.to_owned(), "not_found"),
        ("channel.leave", r#"{}"#.to_owned(), "invalid_request"),
        ("channel.remove", r#"{"name":"eng","persons":["bob"]}"#.to_owned(), "not_found"),
        ("channel.remove", r#"{"name":"eng"}"#.to_owned(), "invalid_request"),
    ] {
        assert_eq!(chat.refused(0, method, &params), code, "{method} {params}");
    }
    // A person of the team nothing was exchanged with has an empty chat.
    assert!(chat.lines(0, "dm:bob").is_empty());
    let read = chat.ok(0, "conv.read", r#"{"conversation":"dm:bob"}"#);
    assert_eq!(at(&read, "more"), &messaging_proto::json::Value::Bool(false));
}

/// §8.2: a machine that left its team holds its chats, and writes nothing.
#[test]
fn a_removed_machine_writes_nothing() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "carol/box"]);
    chat.ok(0, "channel.create", r#"{"name":"eng","persons":["bob"]}"#);
    let machine = chat.world.machine(1);
    chat.world.reroster(|author| author.member_remove(&machine).unwrap());
    for (method, params) in [
        ("person.send", r#"{"conversation":"dm:alice","text":"x"}"#),
        ("channel.create", r#"{"name":"ops","persons":["alice"]}"#),
        ("channel.leave", r#"{"name":"eng"}"#),
    ] {
        assert_eq!(chat.refused(1, method, params), "no_identity", "{method}");
    }
}
