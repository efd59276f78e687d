//! An agent that answers messages with their own text and executes tasks by echoing them.
//!
//! ```text
//! cargo run -p messaging-examples --example echo_agent            # $MESSAGING_HOME, else ~/.messaging
//! messaging send me/echo "hello"                                   # from another terminal of the same person
//! ```
//!
//! It shows what every agent does: register a session, subscribe to its events, take what waits, report on tasks, and
//! come back when the daemon does. It is safe to leave running: it does nothing but echo, it never answers an answer, and it
//! acts on an item only once, because reading one marks it.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use messaging_proto::Code;
use messaging_proto::text::clean_peer_text;
use messaging_smol::client::{Client, ClientError, Options};
use messaging_smol::entropy::Entropy;
use messaging_smol::home::Home;
use serde_json::{Value, json};
use std::time::Duration;

/// How long to wait before the daemon is tried again.
const RETRY: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = Home::from_env().ok_or("neither $MESSAGING_HOME nor $HOME is set")?;
    // The key is the session's credential: whoever has it acts as this session. A fresh one takes over the name and the
    // unread mail of an earlier run.
    let key = messaging_proto::b64u::encode(&Entropy::new().draw()?);
    loop {
        match serve(&home, &key) {
            // The daemon is away, or there is no team yet: both may change without this program's doing.
            Err(error) if matches!(error.code, Code::DaemonUnavailable | Code::NoIdentity) => {
                println!("waiting: {error}");
                std::thread::sleep(RETRY);
            }
            Err(error) => return Err(error.into()),
            Ok(never) => match never {},
        }
    }
}

/// Serves one connection until it ends.
fn serve(home: &Home, key: &str) -> Result<std::convert::Infallible, ClientError> {
    // Agents use the agent socket: it serves no method that changes the team or what a person agreed to.
    let client = Client::connect(&Options::agent(home.clone()))?;
    let register = json!({"key": key, "name": "echo", "agent": "echo", "tier": "push"});
    let session = client.call("session.register", register)?;
    client.call("events.subscribe", json!({ "key": key }))?;
    println!("registered as {}", session["address"].as_str().unwrap_or_default());
    loop {
        take_unread(&client, key)?;
        // Any event may be about new mail; what matters is asked for, not taken from the event.
        client.next_event(None)?;
        while client.next_event(Some(Duration::ZERO))?.is_some() {}
    }
}

/// Handles everything that is unread, oldest first.
fn take_unread(client: &Client, key: &str) -> Result<(), ClientError> {
    let unread = client.call("inbox.list", json!({"key": key, "unreadOnly": true, "limit": 200}))?;
    for item in unread["items"].as_array().into_iter().flatten().rev() {
        let read = client.call("item.read", json!({"key": key, "id": item["id"]}))?;
        let text = text_of(&read["message"]);
        println!(
            "{}: {}",
            item["from"]["address"].as_str().unwrap_or("?"),
            clean_peer_text(&text, Some(200))
        );
        let handled = match item["taskId"].as_str() {
            Some(task) if item["kind"] == "task" => execute(client, key, task, &text),
            // Part of a task that is under way or over, or an answer: nothing to do, and two echoes end here.
            _ if item["taskId"].is_string() || item["replyTo"].is_string() => Ok(()),
            _ => reply(client, key, item, &text),
        };
        match handled {
            // One refusal, such as a task cancelled meanwhile or a sender that is gone, is not the agent's end.
            Err(error) if error.code != Code::DaemonUnavailable => println!("not done: {error}"),
            other => other?,
        }
    }
    Ok(())
}

/// Executes a task: says that it began, hands over the result, says that it is done.
///
/// An agent with powers looks at `item.consent` first: `guarded` means that its person has not agreed to run what this sender
/// asks with the agent's own permissions. An echo needs none.
fn execute(client: &Client, key: &str, task: &str, text: &str) -> Result<(), ClientError> {
    let update = |mut members: Value| {
        members["key"] = json!(key);
        members["taskId"] = json!(task);
        client.call("task.update", members)
    };
    update(json!({"state": "TASK_STATE_WORKING", "message": [{"text": "Echoing"}]}))?;
    update(json!({"artifact": {"name": "echo", "parts": [{ "text": text }]}}))?;
    update(json!({"state": "TASK_STATE_COMPLETED", "message": [{"text": "Done"}]}))?;
    Ok(())
}

/// Answers a message in its own context. The key makes a repeated call send once.
fn reply(client: &Client, key: &str, item: &Value, text: &str) -> Result<(), ClientError> {
    let id = item["id"].as_str().unwrap_or_default();
    let answer = json!({
        "key": key,
        "to": item["from"]["address"],
        "parts": [{"text": format!("You said: {text}")}],
        "replyTo": id,
        "contextId": item["contextId"],
        "idempotencyKey": format!("echo:{id}"),
    });
    client.call("msg.send", answer)?;
    Ok(())
}

/// The text parts of a message.
fn text_of(message: &Value) -> String {
    let parts = message["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}
