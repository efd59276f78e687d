//! No task leaves a terminal state, nor goes back to being new (`messaging/1 §6.3`).

use super::{Facts, Invariant, rows, word};
use crate::world::{Commit, Who};
use std::collections::BTreeMap;

const TERMINAL: [&str; 4] =
    ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"];

/// The state of every record so far.
#[derive(Default)]
pub(super) struct Terminal(BTreeMap<(usize, Vec<u8>), String>);

impl Invariant for Terminal {
    fn name(&self) -> &'static str {
        "tasks-terminal"
    }

    fn commit(&mut self, commit: &Commit<'_>, _: &Facts) -> Result<(), String> {
        let Who::Daemon(number) = commit.who else { return Ok(()) };
        for (key, task) in rows(commit, "task") {
            let state = word(&task, &["status", "state"]);
            let before = self.0.insert((number, key.to_vec()), state.clone());
            let Some(before) = before.filter(|before| *before != state) else { continue };
            let id = word(&task, &["id"]);
            if TERMINAL.contains(&before.as_str()) {
                return Err(format!("task {id} left {before} for {state}"));
            }
            if state == "TASK_STATE_SUBMITTED" {
                return Err(format!("task {id} was {before} and is new again"));
            }
        }
        Ok(())
    }
}
