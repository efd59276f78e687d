//! `send`, `inbox`, `read` and `sent`.

use super::args::{Inbox, Read as ReadArgs, Send, Sent};
use super::chats;
use super::failure::Failure;
use super::outcome::{self, Outcome};
use super::outgoing;
use super::output::{self, FAINT, GOOD, STRONG, WAITING};
use super::parts;
use super::progress::Progress;
use super::save;
use super::shell::{Shell, text_or_stdin};
use super::value::{Read, array, number, object, string};
use serde_json::Value;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Most bytes of one call.
const CALL_BYTES: u64 = 1 << 20;

pub(super) fn send(shell: &mut Shell, args: Send) -> Result<(), Failure> {
    let text = args.text.as_deref().map(text_or_stdin).transpose()?;
    if args.to.is_empty() {
        return Err(Failure::usage("the address is empty").with_remedy(
            "name an agent as <person>/<agent>, a person as <person>, a channel as \"#<channel>\".",
        ));
    }
    if text.as_deref().is_some_and(|text| text.trim().is_empty()) && args.file.is_empty() {
        // An empty pipe most likely: whoever reads the message could make nothing of it.
        return Err(
            Failure::usage("the text is empty").with_remedy("add a text, or look at what the pipe gave.")
        );
    }
    if !args.to.contains('/') {
        return chats::line(shell, &args, text);
    }
    let mut parts: Vec<Value> = text.iter().map(|text| object([("text", string(text))])).collect();
    for path in &args.file {
        parts.push(file_part(path)?);
    }
    if parts.is_empty() {
        return Err(Failure::usage("there is nothing to send").with_remedy("add a text, - or --file."));
    }
    let mut members = vec![
        ("to", string(&args.to)),
        ("kind", string(if args.task { "task" } else { "message" })),
        ("parts", array(parts)),
    ];
    if let Some(id) = &args.reply_to {
        members.push(("replyTo", string(id)));
    }
    if let Some(id) = &args.task_id {
        members.push(("taskId", string(id)));
    }
    if let Some(id) = &args.on_behalf_of {
        members.push(("onBehalfOf", object([("taskId", string(id))])));
    }
    if let Some(key) = &args.key {
        members.push(("idempotencyKey", string(key)));
    }
    if args.no_wake {
        members.push(("wake", Value::Bool(false)));
    }
    if args.task {
        check_takes_tasks(shell, &args.to)?;
    }
    let end = Instant::now() + Duration::from_secs(args.wait.unwrap_or_default());
    let waiting = args.wait.map(|_| Progress::start("waiting for the agent"));
    let result = loop {
        match shell.call_keyed("msg.send", members.clone()) {
            // Refused before anything was stored; an agent that just started may not be known here yet.
            Err(failure) if failure.code == "unknown_session" && Instant::now() < end => {
                shell.event(Some(Duration::from_millis(500)))?;
            }
            other => break other?,
        }
    };
    drop(waiting);
    let first = result.items("results").first().cloned().unwrap_or(Value::Null);
    let id = first.text("envelopeId");
    let outcome = match args.wait {
        Some(_) if first.text("stage") != "rejected" => Outcome::wait(shell, id, first.maybe("taskId"), end)?,
        _ => Outcome::of_result(&first),
    };
    let here = outcome.stage() == "accepted" && !is_connected(shell)?;
    let mut document = result;
    if let (Some(_), Some(members)) = (args.wait, document.as_object_mut()) {
        members.insert("outcome".to_owned(), outcome.to_value());
    }
    shell.out.result(&document, || match outcome.has_failed() {
        true => outcome.describe(id),
        false => describe_result(&first, outcome.stage(), here),
    });
    match outcome.failure() {
        // The document has said it.
        Some(failure) if shell.out.is_json() => Err(failure.quietly()),
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// Whether this machine is connected to the relay.
pub(super) fn is_connected(shell: &mut Shell) -> Result<bool, Failure> {
    Ok(shell.call("daemon.health", object([]))?.text("relay") == "connected")
}

/// A task to a terminal is always refused, so it is not sent.
fn check_takes_tasks(shell: &mut Shell, to: &str) -> Result<(), Failure> {
    let contacts = shell.call("contacts.list", object([]))?;
    let mut clients = contacts
        .items("entries")
        .iter()
        .filter(|entry| is_address(entry.text("address"), to))
        .map(|entry| entry.text("client"))
        .peekable();
    if clients.peek().is_some() && clients.all(|client| client == "cli") {
        return Err(Failure::new("refused", "a terminal takes no tasks").with_remedy(
            "send it as a message, or name an agent of `messaging contacts` that is no `cli`.",
        ));
    }
    Ok(())
}

/// Whether a session's whole address is meant by one that may leave the machine out.
pub(super) fn is_address(whole: &str, given: &str) -> bool {
    whole == given || whole.split('@').next() == Some(given)
}

/// What a send reached, and what that does not promise.
fn describe_result(result: &Value, stage: &str, here: bool) -> String {
    let id = result.text("envelopeId");
    let task = result.maybe("taskId").map(|task| format!(" as task {task}")).unwrap_or_default();
    let meaning = match (stage, result.maybe("expect")) {
        ("delivered", _) => "stored on their machine; not read yet",
        ("held", _) => "their person must agree first",
        ("handed_to_agent", _) => "shown to the agent; not read in full yet",
        ("read" | "replied", _) => "the agent read it",
        (_, Some("offline") | None) if here => {
            "this machine is not connected to the relay; it waits in the outbox here and goes out by itself"
        }
        (_, Some("offline")) => "their machine is not connected; the relay keeps it for a week",
        (_, Some("kept")) => "nobody holds that agent right now; it waits on their machine",
        (_, Some("wake")) => "the agent is being woken",
        (_, Some("on_read")) => "the agent sees it when it checks its inbox",
        (_, Some("next_turn")) => "the agent sees it at its next turn",
        (_, Some("next_prompt")) => "the agent sees it when next prompted",
        _ => "on its way",
    };
    let style = if matches!(stage, "accepted" | "relayed" | "held") { WAITING } else { GOOD };
    format!(
        "{style}{stage}{style:#}{task} to {}: {meaning}.\n{FAINT}Follow it: messaging sent {id}{FAINT:#}",
        output::clean(result.text("to"))
    )
}

/// What is in a file that goes out with a call, named by `flag`.
pub(super) fn file_bytes(path: &Path, flag: &str) -> Result<Vec<u8>, Failure> {
    let cannot = |what: &str| {
        Failure::usage(format!("{what} {}", output::clean(&path.display().to_string())))
            .with_remedy(format!("check the path given to {flag}."))
    };
    let mut bytes = Vec::new();
    // A device may have no end; one byte past what any call takes is enough to say so.
    let read = std::fs::File::open(path).and_then(|file| file.take(CALL_BYTES + 1).read_to_end(&mut bytes));
    if read.map_err(|_| cannot("cannot read"))? as u64 > CALL_BYTES {
        return Err(Failure::new("too_large", "the file is larger than a message may be")
            .with_remedy("send where to find it instead."));
    }
    Ok(bytes)
}

fn file_part(path: &Path) -> Result<Value, Failure> {
    let bytes = file_bytes(path, "--file")?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("file");
    Ok(object([("raw", string(&messaging_proto::b64::encode(&bytes))), ("filename", string(name))]))
}

pub(super) fn inbox(shell: &mut Shell, args: &Inbox) -> Result<(), Failure> {
    let params = || [("unreadOnly", Value::Bool(!args.all)), ("limit", number(args.limit))];
    if args.wait.is_some() {
        // Before the first look, so that nothing arrives unseen between the two.
        let key = shell.key()?;
        shell.call("events.subscribe", object([("key", string(&key))]))?;
    }
    let mut view = shell.view()?;
    let mut list = shell.call_keyed("inbox.list", params())?;
    if let Some(seconds) = args.wait {
        let end = Instant::now() + Duration::from_secs(seconds);
        let _progress = Progress::start("waiting for mail");
        while list.int("unread").unwrap_or_default() == 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            shell.event(Some(left))?;
            view = shell.view()?;
            list = shell.call_keyed("inbox.list", params())?;
        }
    }
    shell.out.result(&list, || describe_inbox(&list, args.all));
    let more = list.maybe("nextCursor").map(|_| "a larger --limit shows older ones");
    shell.as_of(&view, more, true);
    Ok(())
}

fn describe_inbox(list: &Value, all: bool) -> String {
    let items = list.items("items");
    if items.is_empty() {
        return if all { "Nothing here." } else { "Nothing unread." }.to_owned();
    }
    let rows: Vec<Vec<String>> = items
        .iter()
        .map(|item| {
            vec![
                item.text("id").to_owned(),
                output::ago(item.int("at")),
                peer(item.get("from")),
                item.text("kind").to_owned(),
                item.text("stage").to_owned(),
                output::clean(item.text("preview")),
            ]
        })
        .collect();
    let table = output::table(&["ID", "AT", "FROM", "KIND", "STAGE", "PREVIEW"], &rows);
    // A program takes the table alone.
    if super::on_terminal() && items.iter().any(|item| item.text("stage") != "read") {
        format!("{table}\n{FAINT}Unread until you read it: messaging read <id>{FAINT:#}")
    } else {
        table
    }
}

/// The other end of an item.
pub(crate) fn peer(peer: Option<&Value>) -> String {
    let Some(peer) = peer else { return String::new() };
    output::clean(peer.maybe("address").unwrap_or_else(|| peer.text("person")))
}

pub(super) fn read(shell: &mut Shell, args: ReadArgs) -> Result<(), Failure> {
    match (&args.id, &args.with) {
        (Some(_), Some(_)) => Err(Failure::usage("read takes an id or --with, not both")),
        (None, None) => Err(Failure::usage("read needs <id> or --with <conversation>")),
        (None, Some(conversation)) => {
            chats::conversation(shell, conversation, args.before.as_deref(), args.limit)
        }
        (Some(id), None) => {
            let mut item = shell.call_keyed("item.read", [("id", string(id))])?;
            let mut saved = Vec::new();
            if let Some(folder) = &args.save {
                let parts = item.get("message").map(|message| message.items("parts")).unwrap_or_default();
                let paths = save::files(parts, folder)?;
                saved = paths.iter().map(|path| path.display().to_string()).collect();
                if let Some(members) = item.as_object_mut() {
                    members.insert("saved".to_owned(), array(saved.iter().map(|path| string(path))));
                }
            }
            shell.out.result(&item, || {
                let mut text = describe_item(&item);
                for path in &saved {
                    text.push_str(&format!("\n{GOOD}Saved{GOOD:#} {}", output::clean(path)));
                }
                text
            });
            Ok(())
        }
    }
}

fn describe_item(result: &Value) -> String {
    if result.text("kind") == "sent" {
        return outcome::delivery(result, None);
    }
    let item = result.get("item").cloned().unwrap_or(Value::Null);
    let mut text = format!(
        "{STRONG}{}{STRONG:#}  {}\n",
        peer(item.get("from")),
        item.int("at").map(output::when).unwrap_or_default()
    );
    if let Some(task) = item.maybe("taskId") {
        text.push_str(&format!("task {task}\n"));
    }
    if let Some(message) = result.get("message") {
        text.push_str(&parts::text(message.items("parts")));
    }
    text.push_str(&format!(
        "\n{FAINT}Answer:\n    messaging send {} --reply-to {} \"…\"{FAINT:#}",
        peer(item.get("from")),
        item.text("id")
    ));
    text
}

pub(super) fn sent(shell: &mut Shell, args: &Sent) -> Result<(), Failure> {
    let Some(id) = &args.id else { return outgoing::run(shell) };
    let (mut item, task) = match shell.call_keyed("item.read", [("id", string(id))]) {
        Ok(item) => (item, None),
        // The list names a task by its own id.
        Err(failure) if failure.code == "not_found" => match task_request(shell, id)? {
            Some((item, task)) => (item, Some(task)),
            None => return outgoing::one(shell, id, failure),
        },
        Err(failure) => return Err(failure),
    };
    if item.text("kind") != "sent" {
        return Err(Failure::new("not_found", "that is mail you received; `messaging read` shows it"));
    }
    if let (Some(task), Some(members)) = (&task, item.as_object_mut()) {
        members.insert("task".to_owned(), task.clone());
    }
    shell.out.result(&item, || outcome::delivery(&item, task.as_ref()));
    Ok(())
}

/// The delivery of a task that this terminal asked for, and the task.
fn task_request(shell: &mut Shell, id: &str) -> Result<Option<(Value, Value)>, Failure> {
    let found = |result: Result<Value, Failure>| match result {
        Err(failure) if failure.code == "not_found" => Ok(None),
        other => other.map(Some),
    };
    let Some(record) = found(shell.call_keyed("task.get", [("taskId", string(id))]))? else {
        return Ok(None);
    };
    let task = record.get("task").cloned().unwrap_or(Value::Null);
    if task.text("role") != "requester" {
        return Ok(None);
    }
    let item = found(shell.call_keyed("item.read", [("id", string(task.text("requestId")))]))?;
    Ok(item.map(|item| (item, task)))
}
