//! `echo`: an agent that answers, to try a team with before real agents are in it.

use super::args::Echo;
use super::failure::Failure;
use super::output::{self, FAINT};
use super::shell::Shell;
use super::value::{Read, array, object, string};
use serde_json::Value;
use std::time::Duration;

/// Looked for again this often, besides what events say.
const LOOK: Duration = Duration::from_secs(5);

pub(super) fn run(shell: &mut Shell, args: &Echo) -> Result<(), Failure> {
    let key = super::fresh_key()?;
    let params = [("key", &*key), ("name", &*args.name), ("agent", "echo"), ("tier", "push")];
    let session =
        shell.call("session.register", object(params.map(|(member, text)| (member, string(text)))))?;
    shell.call("events.subscribe", object([("key", string(&key))]))?;
    shell.out.result(&session, || {
        format!(
            "The agent {} answers every message with what it said, until you press Ctrl-C.",
            output::clean(session.text("address"))
        )
    });
    loop {
        let unread = object([("key", string(&key)), ("unreadOnly", Value::Bool(true))]);
        let list = shell.call("inbox.list", unread)?;
        for item in list.items("items").iter().rev() {
            answer(shell, &key, item)?;
        }
        shell.event(Some(LOOK))?;
    }
}

/// Reads one item, answers it, and says so.
fn answer(shell: &mut Shell, key: &str, item: &Value) -> Result<(), Failure> {
    let id = item.text("id");
    let read = shell.call("item.read", object([("key", string(key)), ("id", string(id))]))?;
    let parts = read.get("message").map(|message| message.items("parts")).unwrap_or_default();
    let said: Vec<&str> = parts.iter().filter_map(|part| part.maybe("text")).collect();
    let text = array([object([("text", string(&format!("You said: {}", said.join(" "))))])]);
    let result = match item.maybe("taskId").filter(|_| item.text("kind") == "task") {
        Some(task) => shell.call(
            "task.update",
            object([
                ("key", string(key)),
                ("taskId", string(task)),
                ("state", string("TASK_STATE_COMPLETED")),
                ("message", text),
            ]),
        ),
        None => {
            let from = item.get("from").map(|from| from.text("address").to_owned()).unwrap_or_default();
            shell.call(
                "msg.send",
                object([
                    ("key", string(key)),
                    ("to", string(&from)),
                    ("parts", text),
                    ("replyTo", string(id)),
                    ("idempotencyKey", string(&format!("echo:{id}"))),
                ]),
            )
        }
    };
    let document = object([("answered", string(id)), ("ok", Value::Bool(result.is_ok()))]);
    shell.out.result(&document, || match &result {
        Ok(_) => format!("{FAINT}answered {id} from {}{FAINT:#}", super::mail::peer(item.get("from"))),
        Err(failure) => format!("{FAINT}{id} could not be answered: {}{FAINT:#}", failure.code),
    });
    Ok(())
}
