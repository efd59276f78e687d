//! What users of other agent mail reported, tried on the command line. The numbers are those of the collection.

#![allow(clippy::unwrap_used)]

mod terminal;
mod world;

use serde_json::json;
use std::process::Command;
use terminal::{Terminal, plain};
use world::{Agent, PATIENCE, PROGRAM, World, wait};

/// Sending to a name nobody holds fails before anything is stored; it never says `accepted`.
#[test]
fn report_1_a_send_to_nobody_is_refused_and_not_stored() {
    let mut world = World::new();
    world.pair();
    let mut builder = Agent::new(&world, "bob", "builder");
    builder.inbox();
    world.until_contact("alice", "bob/builder@desk");
    for (to, codes) in [
        ("bob/nosuch", ["unknown_session", "no_recipients"].as_slice()),
        ("bob/builder@wronglabel", &["unknown_session", "no_recipients"]),
        ("bob/builder ", &["invalid_request"]),
        ("nobody/agent", &["no_recipients", "unknown_session"]),
        ("nobody", &["not_found"]),
        ("#nosuch", &["not_found"]),
    ] {
        let output = world.cli("alice", &["--json", "send", to, "x"]);
        assert_eq!(output.status.code(), Some(1), "{to:?}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let code = document["error"]["code"].as_str().unwrap();
        assert!(codes.contains(&code), "{to:?} gave {code}");
        assert!(document["error"]["remedy"].as_str().unwrap().starts_with("Next: "));
        assert!(!String::from_utf8_lossy(&output.stdout).contains("accepted"));
    }
    let status = world.cli_json("alice", &["status"]);
    assert_eq!(status["outbox"]["waiting"], 0);
    let sent = world.cli_json("alice", &["sent"]);
    assert_eq!((&sent["items"], &sent["complete"]), (&json!([]), &json!(true)));
}

/// A busy agent: the sender sees that the message is on the machine and not with the agent, and for how long.
#[test]
fn report_3_mail_to_a_busy_agent_shows_its_stage_and_age_and_is_not_lost() {
    let mut world = World::new();
    world.pair();
    let mut builder = Agent::new(&world, "bob", "builder");
    builder.call("session.update", json!({"state": "busy"})).unwrap();
    wait("bob's busy agent", || {
        let contacts = world.cli_json("alice", &["contacts"]);
        let entries = contacts["entries"].as_array().unwrap().clone();
        entries.into_iter().find(|e| e["address"] == "bob/builder@desk" && e["state"] == "busy")
    });
    let sent = world.cli_json("alice", &["send", "bob/builder", "the final report"]);
    let id = sent["results"][0]["envelopeId"].as_str().unwrap().to_owned();
    wait("delivery", || (world.cli_json("alice", &["sent", &id])["stage"] == "delivered").then_some(()));
    // Nothing moves while the agent does not look.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let list = world.cli_json("alice", &["sent"]);
    let item = &list["items"][0];
    assert_eq!((&item["id"], &item["stage"]), (&json!(id), &json!("delivered")));
    assert!(item["ageMs"].as_u64().unwrap() > 0);
    assert!(item["why"].as_str().unwrap().contains("busy"), "{item}");
    // The agent's daemon ends and comes back; then the agent looks.
    world.kill_daemon("bob");
    world.start_daemon("bob");
    let item = wait("the report", || builder.inbox().first().cloned());
    assert_eq!(builder.read(item["id"].as_str().unwrap())["message"]["parts"][0]["text"], "the final report");
    wait("the read receipt", || (world.cli_json("alice", &["sent", &id])["stage"] == "read").then_some(()));
    assert_eq!(world.cli_json("alice", &["sent"])["items"], json!([]));
}

/// The same recipient under two spellings, and a retry: one envelope.
#[test]
fn report_11_one_recipient_under_two_names_and_a_retry_send_once() {
    let mut world = World::new();
    world.pair();
    let mut builder = Agent::new(&world, "bob", "builder");
    builder.inbox();
    world.until_contact("alice", "bob/builder@desk");
    let send = |to: &str| world.cli_json("alice", &["send", to, "once", "--key", "k1"]);
    let first = send("bob/builder");
    assert_eq!(first["results"].as_array().unwrap().len(), 1);
    let again = send("bob/builder");
    assert_eq!(first["results"][0]["envelopeId"], again["results"][0]["envelopeId"]);
    // The other spelling under the same key is another call, and refused before anything is stored.
    let other = world.cli("alice", &["--json", "send", "bob/builder@desk", "once", "--key", "k1"]);
    let document: serde_json::Value = serde_json::from_slice(&other.stdout).unwrap();
    assert_eq!(document["error"]["code"], "invalid_request", "{document}");
    // A list of recipients is not a thing one can say.
    let both = world.cli("alice", &["--json", "send", "bob/builder,bob/builder@desk", "once"]);
    let document: serde_json::Value = serde_json::from_slice(&both.stdout).unwrap();
    assert_eq!(document["error"]["code"], "invalid_request", "{document}");
    wait("the message", || builder.inbox().first().cloned());
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(builder.inbox().len(), 1);
}

/// Escape sequences in what others write do nothing to a terminal, and stay escaped in JSON.
#[test]
fn report_41_escape_sequences_of_peers_are_inert() {
    let evil =
        "A\u{1b}[2JB\u{1b}]52;c;aGk=\u{7}C\u{1b}]8;;http://x\u{1b}\\D\u{9b}31mE\rF\u{202e}G\u{200b}H\u{8}";
    let mut world = World::new();
    world.pair();
    let mut builder = Agent::new(&world, "bob", "builder");
    let mut planner = Agent::new(&world, "alice", "planner");
    // In a session's own words, in a message, a task, its status, its artifact's name, a line.
    builder.call("session.update", json!({"doing": evil})).unwrap();
    world.cli_json("alice", &["inbox"]);
    wait("alice's terminal at bob's", || {
        builder.call("msg.send", json!({"to": "alice/cli@laptop", "parts": [{"text": evil}]})).ok()
    });
    let item = wait("the mail", || world.cli_json("alice", &["inbox"])["items"].get(0).cloned());
    let task = wait("the task", || {
        let to = json!({"to": "bob/builder", "kind": "task", "parts": [{"text": evil}]});
        planner.call("msg.send", to).ok()
    });
    let task = task["results"][0]["taskId"].as_str().unwrap().to_owned();
    wait("the task at bob's", || builder.call("task.get", json!({"taskId": task})).ok());
    let artifact = json!({"name": "name\u{1b}[2J", "parts": [{"text": evil}]});
    let update = json!({"taskId": task, "state": "TASK_STATE_COMPLETED", "message": [{"text": evil}], "artifact": artifact});
    builder.call("task.update", update).unwrap();
    wait("the result", || {
        let shown = planner.call("task.get", json!({"taskId": task})).unwrap();
        (shown["task"]["state"] == "TASK_STATE_COMPLETED").then_some(())
    });
    world.admin("bob").call("person.send", json!({"conversation": "dm:alice", "text": evil})).unwrap();
    wait("the line", || {
        let page = world.cli_json("alice", &["read", "--with", "dm:bob"]);
        page["lines"].get(0).cloned()
    });
    let id = item["id"].as_str().unwrap();
    let verbs: [&[&str]; 9] = [
        &["contacts"],
        &["inbox", "--all"],
        &["read", id],
        &["--as", "planner2", "tasks"],
        &["agent", "planner", "--with", "agent:bob/builder"],
        &["read", "--with", "dm:bob"],
        &["search", "A"],
        &["chats"],
        &["send", "bob/\u{1b}[2J", "x"],
    ];
    for verb in verbs {
        // In a terminal, as text: nothing but colours may reach it.
        let mut command = Command::new(PROGRAM);
        command.arg("--home").arg(world.path("alice")).args(verb);
        let (text, _) = Terminal::start(&mut command).finish(PATIENCE);
        inert(verb, &plain(&text));
        // Piped, as text and as JSON.
        let piped = world.cli("alice", verb);
        inert(verb, &String::from_utf8(piped.stdout).unwrap());
        inert(verb, &String::from_utf8(piped.stderr).unwrap());
        let json = world.cli("alice", &[&["--json"], verb].concat());
        inert(verb, &String::from_utf8(json.stdout).unwrap());
    }
    // What JSON escaped is what was sent.
    let read = world.cli_json("alice", &["read", id]);
    assert_eq!(read["message"]["parts"][0]["text"], evil);
    // And the text did come through, labelled.
    let shown = String::from_utf8(world.cli("alice", &["read", id]).stdout).unwrap();
    assert!(shown.contains("A[U+001B][2JB") && shown.contains("[U+202E]G[U+200B]H"), "{shown}");
}

fn inert(verb: &[&str], text: &str) {
    let bad = text.chars().find(|c| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{200b}'..='\u{200f}' | '\u{2066}'..='\u{2069}')
    });
    assert_eq!(bad, None, "{verb:?}: {text:?}");
}
