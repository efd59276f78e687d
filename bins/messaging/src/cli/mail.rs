//! `send`, `inbox`, `read` and `sent`.

use super::args::{Inbox, Read as ReadArgs, Send, Sent};
use super::chats;
use super::failure::Failure;
use super::outgoing;
use super::output::{self, BAD, FAINT, GOOD, STRONG, WAITING};
use super::parts;
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
    let end = Instant::now() + Duration::from_secs(args.wait.unwrap_or_default());
    let result = loop {
        match shell.call_keyed("msg.send", members.clone()) {
            // Refused before anything was stored; an agent that just started may not be known here yet.
            Err(failure) if failure.code == "unknown_session" && Instant::now() < end => {
                shell.event(Some(Duration::from_millis(500)))?;
            }
            other => break other?,
        }
    };
    let first = result.items("results").first().cloned().unwrap_or(Value::Null);
    let stage = match args.wait {
        Some(_) if first.text("stage") != "rejected" => {
            let left = end.saturating_duration_since(Instant::now());
            wait_for_delivery(shell, first.text("envelopeId"), left)?
        }
        _ => first.text("stage").to_owned(),
    };
    shell.out.result(&result, || describe_result(&first, &stage));
    match (stage.as_str(), first.maybe("code")) {
        ("rejected", Some(code)) => Err(Failure::new(code, "the message was not delivered")),
        _ => Ok(()),
    }
}

/// What a send reached, and what that does not promise.
fn describe_result(result: &Value, stage: &str) -> String {
    let id = result.text("envelopeId");
    let task = result.maybe("taskId").map(|task| format!(" as task {task}")).unwrap_or_default();
    let meaning = match (stage, result.maybe("expect")) {
        ("rejected", _) => return format!("{BAD}rejected{BAD:#} {id}"),
        ("delivered", _) => "stored on their machine; not read yet",
        ("held", _) => "their person must agree first",
        ("handed_to_agent", _) => "shown to the agent; not read in full yet",
        ("read" | "replied", _) => "the agent read it",
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

fn wait_for_delivery(shell: &mut Shell, id: &str, wait: Duration) -> Result<String, Failure> {
    let key = shell.key()?;
    shell.call("events.subscribe", object([("key", string(&key))]))?;
    let end = Instant::now() + wait;
    loop {
        let item = shell.call_keyed("item.read", [("id", string(id))])?;
        let stage = item.text("stage").to_owned();
        let left = end.saturating_duration_since(Instant::now());
        if !matches!(stage.as_str(), "accepted" | "relayed") || left.is_zero() {
            return Ok(stage);
        }
        shell.event(Some(left))?;
    }
}

fn file_part(path: &Path) -> Result<Value, Failure> {
    let cannot = |what: &str| {
        Failure::usage(format!("{what} {}", output::clean(&path.display().to_string())))
            .with_remedy("check the path given to --file.")
    };
    let mut bytes = Vec::new();
    // A device may have no end; one byte past what any call takes is enough to say so.
    let read = std::fs::File::open(path).and_then(|file| file.take(CALL_BYTES + 1).read_to_end(&mut bytes));
    if read.map_err(|_| cannot("cannot read"))? as u64 > CALL_BYTES {
        return Err(Failure::new("too_large", "the file is larger than a message may be")
            .with_remedy("send where to find it instead."));
    }
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
    let mut list = shell.call_keyed("inbox.list", params())?;
    if let Some(seconds) = args.wait {
        let end = Instant::now() + Duration::from_secs(seconds);
        while list.int("unread").unwrap_or_default() == 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            shell.event(Some(left))?;
            list = shell.call_keyed("inbox.list", params())?;
        }
    }
    shell.out.result(&list, || describe_inbox(&list, args.all));
    let more = list.maybe("nextCursor").map(|_| "a larger --limit shows older ones");
    shell.as_of(more, true)
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
    output::table(&["ID", "AT", "FROM", "KIND", "STAGE", "PREVIEW"], &rows)
}

/// The other end of an item.
pub(crate) fn peer(peer: Option<&Value>) -> String {
    let Some(peer) = peer else { return String::new() };
    output::clean(peer.maybe("address").unwrap_or_else(|| peer.text("person")))
}

pub(super) fn read(shell: &mut Shell, args: ReadArgs) -> Result<(), Failure> {
    match (&args.id, &args.with) {
        (Some(_), Some(_)) | (None, None) => Err(Failure::usage("read takes an id or --with, not both")
            .with_remedy("run `messaging read --help`.")),
        (None, Some(conversation)) => {
            chats::conversation(shell, conversation, args.before.as_deref(), args.limit)
        }
        (Some(id), None) => {
            let item = shell.call_keyed("item.read", [("id", string(id))])?;
            shell.out.result(&item, || describe_item(&item));
            Ok(())
        }
    }
}

fn describe_item(result: &Value) -> String {
    if result.text("kind") == "sent" {
        return describe_delivery(result);
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
    let item = shell.call_keyed("item.read", [("id", string(id))])?;
    if item.text("kind") != "sent" {
        return Err(Failure::new("not_found", "that is mail you received; `messaging read` shows it"));
    }
    shell.out.result(&item, || describe_delivery(&item));
    Ok(())
}

fn describe_delivery(item: &Value) -> String {
    let mut lines = vec![format!(
        "{} to {}: {STRONG}{}{STRONG:#}",
        item.text("envelopeId"),
        output::clean(item.text("to")),
        item.text("stage")
    )];
    for step in item.items("history") {
        let code = step.maybe("code").map(|code| format!(" ({})", output::clean(code))).unwrap_or_default();
        let at = step.int("at").map(output::when).unwrap_or_default();
        lines.push(format!("  {at}  {}{code}", step.text("stage")));
    }
    lines.join("\n")
}
