//! Which states of tasks an agent was told: kept between the runs of its hooks.

use crate::cli::value::Read as _;
use messaging_proto::hash::sha256;
use messaging_smol::handle::private_state;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Longest file that is read.
const FILE_BYTES: usize = 65_536;

/// The states as they were told.
pub(super) struct Seen {
    path: Option<PathBuf>,
    /// Nothing before the first hook of a session: what came before it is no news.
    before: Option<Map<String, Value>>,
    now: Map<String, Value>,
}

impl Seen {
    /// What was told to the session `name` of a home.
    pub(super) fn load(home: &Path, name: &str) -> Self {
        let path = private_state("hooks").ok().map(|folder| {
            let file = sha256(format!("{}\n{name}", home.display()).as_bytes());
            folder.join(format!("{file}.json"))
        });
        let read = path
            .as_deref()
            .and_then(|path| messaging_smol::files::read_private(path, FILE_BYTES).ok().flatten());
        let before = read.and_then(|text| serde_json::from_slice(&text).ok());
        Self { path, before, now: Map::new() }
    }

    /// The tasks that the other side changed since.
    pub(super) fn changed<'a>(&mut self, tasks: &'a [Value]) -> Vec<&'a Value> {
        let mut changed = Vec::new();
        for task in tasks {
            let (id, state) = (task.text("taskId"), task.text("state"));
            self.now.insert(id.to_owned(), Value::from(state));
            let Some(before) = &self.before else { continue };
            let told = before.get(id).and_then(Value::as_str);
            // A request that arrives is an unread item already, and one that leaves is the agent's own; the executor
            // makes every state but the end by a cancel.
            let news = match told {
                None => !matches!(state, "TASK_STATE_SUBMITTED"),
                Some(told) => told != state,
            };
            let by_peer = task.text("role") == "requester" || state == "TASK_STATE_CANCELED";
            if news && by_peer {
                changed.push(task);
            }
        }
        changed
    }

    /// Keeps what was told.
    pub(super) fn save(&self) {
        if let Some(path) = &self.path
            && self.before.as_ref() != Some(&self.now)
        {
            // Lost, it is told once more or not at all; no reason to make the agent wait for the disk.
            let temporary = path.with_extension(std::process::id().to_string());
            let written = std::fs::write(&temporary, Value::Object(self.now.clone()).to_string());
            let _ = written.and_then(|()| std::fs::rename(&temporary, path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_the_other_side_did_is_news() {
        let task = |id: &str, role: &str, state: &str| json!({"taskId": id, "role": role, "state": format!("TASK_STATE_{state}")});
        let mut first = Seen { path: None, before: None, now: Map::new() };
        assert!(first.changed(&[task("a", "requester", "WORKING")]).is_empty(), "the first look is no news");
        let mut seen = Seen { path: None, before: Some(first.now), now: Map::new() };
        let tasks = [
            task("a", "requester", "COMPLETED"),
            task("b", "requester", "SUBMITTED"),
            task("c", "requester", "WORKING"),
            task("d", "executor", "WORKING"),
            task("e", "executor", "CANCELED"),
        ];
        let ids: Vec<&str> = seen.changed(&tasks).iter().map(|task| task.text("taskId")).collect();
        assert_eq!(ids, ["a", "c", "e"]);
    }
}
