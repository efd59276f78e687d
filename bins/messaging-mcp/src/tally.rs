//! Which tasks changed since the agent last saw them: MCP cannot push, so every result says it (`§11`).

use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most tasks counted; past it the number says "at least".
const TASKS: usize = 1_000;

/// The tasks that changed by the other side or the daemon.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    changed: Mutex<BTreeSet<String>>,
}

impl Tally {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event of the daemon.
    pub(crate) fn event(&self, event: &Value) {
        if event["type"] == "task" && event["origin"] == "peer" {
            self.changed_task(&event["task"]);
        }
    }

    /// A task changed while nobody listened.
    pub(crate) fn changed_task(&self, task: &Value) {
        if let Some(id) = task["taskId"].as_str() {
            let mut changed = self.lock();
            if changed.len() < TASKS {
                changed.insert(id.to_owned());
            }
        }
    }

    /// The agent is shown this task as it is now.
    pub(crate) fn seen(&self, id: &str) {
        self.lock().remove(id);
    }

    /// How many changed.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }
}
