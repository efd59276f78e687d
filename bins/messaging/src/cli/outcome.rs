//! What became of something that was sent: how far it got, what its task came to, and what they said about it.

use super::failure::Failure;
use super::output::{self, BAD, FAINT, STRONG};
use super::parts;
use super::progress::Progress;
use super::shell::Shell;
use super::value::{Read, array, object, string};
use serde_json::Value;
use std::time::{Duration, Instant};

/// States of a task that did not come to what was asked for.
const FAILED: [&str; 3] = ["TASK_STATE_REJECTED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED"];

/// How something that was sent ended, or where it is.
pub(super) struct Outcome {
    stage: String,
    code: Option<String>,
    /// The task's status, when it is one.
    task: Option<Value>,
}

impl Outcome {
    /// As a send answered.
    pub(super) fn of_result(result: &Value) -> Self {
        Self {
            stage: result.text("stage").to_owned(),
            code: result.maybe("code").map(str::to_owned),
            task: None,
        }
    }

    /// As the daemon knows it now.
    pub(super) fn look(shell: &mut Shell, id: &str, task: Option<&str>) -> Result<Self, Failure> {
        let item = shell.call_keyed("item.read", [("id", string(id))])?;
        let task = match task {
            Some(task) => {
                let record = shell.call_keyed("task.get", [("taskId", string(task))])?;
                record.get("task").and_then(|task| task.get("status")).cloned()
            }
            None => None,
        };
        Ok(Self { stage: item.text("stage").to_owned(), code: code_of(&item), task })
    }

    /// Waits until it is on their machine or has ended, at most until `end`.
    pub(super) fn wait(
        shell: &mut Shell,
        id: &str,
        task: Option<&str>,
        end: Instant,
    ) -> Result<Self, Failure> {
        let key = shell.key()?;
        shell.call("events.subscribe", object([("key", string(&key))]))?;
        let _progress = Progress::start("waiting for their machine");
        loop {
            let outcome = Self::look(shell, id, task)?;
            let left = end.saturating_duration_since(Instant::now());
            let on_its_way = matches!(outcome.stage.as_str(), "accepted" | "relayed");
            if !on_its_way || outcome.has_failed() || left.is_zero() {
                return Ok(outcome);
            }
            shell.event(Some(left.min(Duration::from_secs(1))))?;
        }
    }

    pub(super) fn stage(&self) -> &str {
        &self.stage
    }

    fn state(&self) -> &str {
        self.task.as_ref().map(|status| status.text("state")).unwrap_or_default()
    }

    /// Whether it ended without what was asked for.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.stage.as_str(), "rejected" | "expired") || FAILED.contains(&self.state())
    }

    /// For a program.
    pub(super) fn to_value(&self) -> Value {
        let mut members = vec![("stage", string(&self.stage))];
        members.extend(self.code.as_ref().map(|code| ("code", string(code))));
        if let Some(status) = &self.task {
            let mut task = vec![("state", string(status.text("state")))];
            let message = status.items("message");
            task.extend((!message.is_empty()).then(|| ("message", array(message.iter().cloned()))));
            members.push(("task", object(task)));
        }
        object(members)
    }

    /// What failed, and what they said about it.
    pub(super) fn describe(&self, id: &str) -> String {
        let code = self.code.as_ref().map(|code| format!(" ({})", output::clean(code))).unwrap_or_default();
        let mut text = match self.state() {
            state if FAILED.contains(&state) && self.stage != "rejected" => {
                format!("{BAD}{}{BAD:#} {id}{code}", super::tasks::short_state(state))
            }
            _ => format!("{BAD}{}{BAD:#} {id}{code}", self.stage),
        };
        if let Some(said) = self.said() {
            text.push_str(&format!("\n{said}"));
        }
        text
    }

    /// Their words about the task's state.
    fn said(&self) -> Option<String> {
        let message = self.task.as_ref()?.items("message");
        (!message.is_empty()).then(|| parts::text(message))
    }

    /// The same in one short line.
    pub(super) fn first_words(&self) -> Option<String> {
        let message = self.task.as_ref()?.items("message");
        let text = message.iter().find_map(|part| part.maybe("text"))?;
        Some(super::table::cut(&output::clean(text), 60))
    }

    /// The error that a failed outcome is.
    pub(super) fn failure(&self) -> Option<Failure> {
        if !self.has_failed() {
            return None;
        }
        let code = match (&self.code, self.stage.as_str(), self.state()) {
            (Some(code), ..) => code.clone(),
            (None, "expired", _) => "expired".to_owned(),
            (None, _, "TASK_STATE_FAILED" | "TASK_STATE_CANCELED") => "invalid_state".to_owned(),
            _ => "refused".to_owned(),
        };
        let text = match self.state() {
            "" => "it was not delivered",
            "TASK_STATE_FAILED" => "the task failed",
            "TASK_STATE_CANCELED" => "the task was canceled",
            _ => "the task was rejected",
        };
        let failure = Failure::new(&code, text);
        Some(if self.code.is_none() && self.task.is_some() {
            failure.with_remedy("read what they said, then ask anew or ask somebody else.")
        } else {
            failure
        })
    }
}

/// The code its last stage came with.
fn code_of(item: &Value) -> Option<String> {
    item.items("history").last().and_then(|step| step.maybe("code")).map(str::to_owned)
}

/// How far a delivery got, step by step; `task` is the task it asked for.
pub(super) fn delivery(item: &Value, task: Option<&Value>) -> String {
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
    if let Some(task) = task {
        let state = super::tasks::short_state(task.text("state"));
        lines.push(format!("Task {}: {STRONG}{state}{STRONG:#}", task.text("taskId")));
        let message = task.get("status").map(|status| status.items("message")).unwrap_or_default();
        if !message.is_empty() {
            lines.push(parts::text(message));
        }
        lines.push(format!("{FAINT}All of it: messaging task show {}{FAINT:#}", task.text("taskId")));
    }
    lines.join("\n")
}
