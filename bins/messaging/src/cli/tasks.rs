//! `tasks` and `task …`.

use super::args::{TaskUpdate, TaskVerb, Tasks};
use super::failure::Failure;
use super::mail::peer;
use super::output::{self, FAINT, STRONG, WAITING};
use super::parts;
use super::shell::Shell;
use super::value::{Read, array, object, string};
use serde_json::Value;

pub(super) fn list(shell: &mut Shell, args: Tasks) -> Result<(), Failure> {
    let mut members = Vec::new();
    if let Some(role) = &args.role {
        if !matches!(role.as_str(), "requester" | "executor") {
            return Err(Failure::new("invalid_request", "role is not of its form")
                .with_remedy("--role takes requester or executor."));
        }
        members.push(("role", string(role)));
    }
    if let Some(state) = &args.state {
        members.push(("state", array([string(&wire_state(state))])));
    }
    let view = shell.view()?;
    let list = shell.call_keyed("task.list", members)?;
    shell.out.result(&list, || {
        let rows: Vec<Vec<String>> = list
            .items("tasks")
            .iter()
            .map(|task| {
                vec![
                    task.text("taskId").to_owned(),
                    task.text("role").to_owned(),
                    peer(task.get("peer")),
                    short_state(task.text("state")),
                    output::ago(task.int("updatedAt")),
                    output::clean(task.text("title")),
                ]
            })
            .collect();
        if rows.is_empty() {
            return "No tasks.".to_owned();
        }
        output::table(&["TASK", "ROLE", "WITH", "STATE", "UPDATED", "TITLE"], &rows)
    });
    let more = list.maybe("nextCursor").map(|_| "--role and --state narrow it");
    shell.as_of(&view, more, true);
    Ok(())
}

pub(super) fn run(shell: &mut Shell, verb: TaskVerb) -> Result<(), Failure> {
    let is_cancel = matches!(verb, TaskVerb::Cancel(_));
    let result = match verb {
        TaskVerb::Show(args) => shell.call_keyed("task.get", [("taskId", string(&args.id))])?,
        TaskVerb::Update(args) => update(shell, args)?,
        TaskVerb::Cancel(args) => {
            let mut members = vec![("taskId", string(&args.id))];
            if let Some(reason) = &args.reason {
                members.push(("reason", string(reason)));
            }
            shell.call_keyed("task.cancel", members)?
        }
    };
    shell.out.result(&result, || {
        let text = result.get("task").map(describe).unwrap_or_default();
        let asked = "Its agent is asked to stop; the state changes when it answers.";
        if is_cancel { format!("{WAITING}{asked}{WAITING:#}\n{text}") } else { text }
    });
    Ok(())
}

fn update(shell: &mut Shell, args: TaskUpdate) -> Result<Value, Failure> {
    let mut members = vec![("taskId", string(&args.id))];
    if let Some(state) = &args.state {
        members.push(("state", string(&wire_state(state))));
    }
    if let Some(message) = &args.message {
        members.push(("message", array([object([("text", string(message))])])));
    }
    if let Some(path) = &args.artifact {
        let bytes = super::mail::file_bytes(path, "--artifact")?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("artifact");
        let part = match String::from_utf8(bytes) {
            Ok(text) => object([("text", string(&text)), ("filename", string(name))]),
            Err(error) => object([
                ("raw", string(&messaging_proto::b64::encode(error.as_bytes()))),
                ("filename", string(name)),
            ]),
        };
        members.push(("artifact", object([("name", string(name)), ("parts", array([part]))])));
    }
    shell.call_keyed("task.update", members)
}

/// `input_required` as the API names it; a full name stays as it is.
fn wire_state(state: &str) -> String {
    if state.starts_with("TASK_STATE_") {
        state.to_owned()
    } else {
        format!("TASK_STATE_{}", state.to_ascii_uppercase())
    }
}

pub(super) fn short_state(state: &str) -> String {
    state.trim_start_matches("TASK_STATE_").to_ascii_lowercase()
}

fn describe(task: &Value) -> String {
    let other = peer(task.get("peer"));
    let (who, asker, asked) = match task.text("role") {
        "requester" => (format!("you asked {other}"), "you", &*other),
        _ => (format!("{other} asked you"), &*other, "you"),
    };
    let mut text =
        format!("{STRONG}{}{STRONG:#}  {}: {who}\n", short_state(task.text("state")), task.text("taskId"),);
    if let Some(chain) = task.get("chain") {
        let addresses: Vec<String> =
            chain.items("addresses").iter().filter_map(Value::as_str).map(output::clean).collect();
        text.push_str(&format!("{FAINT}asked by {}{FAINT:#}\n", addresses.join(" → ")));
    }
    for entry in task.items("history") {
        if let Some(message) = entry.get("message") {
            text.push_str(&format!(
                "\n{FAINT}{} {asker}{FAINT:#}\n{}\n",
                entry.int("at").map(output::when).unwrap_or_default(),
                parts::text(message.items("parts"))
            ));
        }
    }
    if let Some(status) = task.get("status") {
        let message = parts::text(status.items("message"));
        if !message.is_empty() {
            text.push_str(&format!(
                "\n{FAINT}{} {asked}{FAINT:#}\n{message}\n",
                status.int("at").map(output::when).unwrap_or_default()
            ));
        }
    }
    for artifact in task.items("artifacts") {
        let name = output::said("artifact ", artifact.text("name"));
        text.push_str(&format!("\n{FAINT}{name}{FAINT:#}\n{}\n", parts::text(artifact.items("parts"))));
    }
    for follow_up in task.items("followUps") {
        if follow_up.text("stage") != "read" {
            text.push_str(&format!(
                "\n{FAINT}your follow-up {} is at {}{FAINT:#}\n",
                follow_up.text("envelopeId"),
                follow_up.text("stage")
            ));
        }
    }
    text
}
