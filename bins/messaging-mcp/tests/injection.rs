//! Texts that try to leave their fence, through every field another person can write (`messaging/1 §12`).
#![allow(clippy::unwrap_used)]

mod mcp;
#[path = "../../messaging/tests/world/mod.rs"]
mod world;

use mcp::Mcp;
use serde_json::{Value, json};
use std::os::unix::fs::DirBuilderExt;
use world::World;

/// Host tags, their look-alikes, hidden characters in and around them, fences of ours and of others, and terminal controls.
const CORPUS: &str = include_str!("../../../proto/tests/corpus/injection.json");

fn corpus() -> Vec<String> {
    serde_json::from_str(CORPUS).unwrap()
}

/// Fails where a text of a result holds a tag of a host, a hidden character, or a fence that is not one whole.
fn check(value: &Value) -> usize {
    match value {
        Value::String(text) => check_text(text),
        Value::Array(items) => items.iter().map(check).sum(),
        Value::Object(members) => members.values().map(check).sum(),
        _ => 0,
    }
}

fn check_text(text: &str) -> usize {
    let body = match text.strip_prefix("<messaging-peer-") {
        Some(rest) => {
            let nonce = &rest[..16];
            assert!(nonce.bytes().all(|byte| b"abcdefghijklmnopqrstuvwxyz234567".contains(&byte)), "{text}");
            let (_, body) = rest.split_once(">\n").unwrap();
            body.strip_suffix(&format!("\n</messaging-peer-{nonce}>"))
                .unwrap_or_else(|| panic!("cut: {text}"))
        }
        None => text,
    };
    // What is left is as harmless as neutralising can make it: doing it again changes nothing.
    assert_eq!(messaging_proto::text::neutralise(body), body, "something got through in {text}");
    assert!(!body.contains("<messaging") && !body.contains("</messaging"), "{text}");
    usize::from(body.len() < text.len())
}

#[test]
fn nothing_leaves_its_fence_through_the_tools() {
    let mut world = World::new();
    // Alice shares what her agents do, so that those words travel too.
    let home = world.path("alice");
    std::fs::DirBuilder::new().mode(0o700).create(&home).unwrap();
    let config = json!({"presence": {"share": ["repo", "branch", "doing"]}});
    std::fs::write(home.join("config.json"), config.to_string()).unwrap();
    world.pair();
    let mut bob = Mcp::start(&world.path("bob"), &[]);
    bob.ok("inbox", json!({}));
    let mut mallory = world::Agent::new(&world, "alice", "mallory");
    let texts = corpus();
    assert!(texts.len() > 40);
    // One message with every text in every kind of part, one task, and the names of its own session.
    let all = texts.join("\n");
    let doing: String = texts[0].chars().take(100).collect();
    mallory.send("bob/mcp@desk", "hello", "first");
    mallory.call("session.update", json!({"doing": doing, "repo": texts[1], "branch": texts[2]})).unwrap();
    for chunk in texts.chunks(8) {
        let parts: Vec<Value> = chunk
            .iter()
            .flat_map(|text| {
                [
                    json!({"text": text}),
                    json!({"url": text}),
                    json!({"data": {"k": text}}),
                    json!({"raw": "aGk=", "filename": text, "mediaType": text}),
                ]
            })
            .collect();
        mallory.call("msg.send", json!({"to": "bob/mcp@desk", "parts": parts})).unwrap();
    }
    let asked = mallory
        .call("msg.send", json!({"to": "bob/mcp@desk", "parts": [{"text": all}], "kind": "task"}))
        .unwrap();
    let task = asked["results"][0]["taskId"].clone();
    let expected = 2 + texts.chunks(8).count();
    let items = bob.until("inbox", &json!({"limit": 50}), |document| {
        check(document);
        let items = document["items"].as_array()?;
        (items.len() == expected).then(|| items.clone())
    });
    let mut fenced = 0;
    for item in &items {
        let read = bob.ok("read", json!({"id": item["id"]}));
        fenced += check(&read);
        for part in read["parts"].as_array().unwrap() {
            if let Some(path) = part["path"].as_str() {
                assert!(path.bytes().all(|byte| byte.is_ascii_graphic()), "{path}");
            }
        }
    }
    assert!(fenced >= 4 * texts.len(), "{fenced}");
    for (verb, arguments) in
        [("read", json!({"id": task})), ("read", json!({"with": "alice/mallory"})), ("tasks", json!({}))]
    {
        assert!(check(&bob.ok(verb, arguments)) > 0, "{verb} fenced nothing");
    }
    // What a session says of itself comes with the next presence.
    bob.until("contacts", &json!({}), |document| (check(document) > 0).then_some(()));
    // The executor's side writes too: status, artifact and its names, as the requester reads them.
    let mut alice = Mcp::start(&world.path("alice"), &["--name", "asker"]);
    let sent = alice.send(json!({"to": "bob/mcp", "text": "task", "ask": true}));
    let id = sent["taskId"].clone();
    bob.until("read", &json!({"id": id}), |document| (document["kind"] == "task").then_some(()));
    let name: String = texts[3].chars().take(60).collect();
    let artifact = json!({"name": name, "text": all, "files": [{"name": "x", "base64": "aGk="}]});
    bob.ok("task_update", json!({"id": id, "state": "working", "text": all, "artifact": artifact}));
    // Status and history, and the artifact's name, text and file.
    alice.until("read", &json!({"id": id}), |document| (check(document) >= 5).then_some(()));
    // What the executor reads back of its own is neutralised too, and not fenced.
    let own = bob.ok("read", json!({"id": id}));
    assert_eq!(own["artifacts"][0]["author"], "ours");
    check(&own);
}
