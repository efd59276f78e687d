//! What an agent was told: kept between the runs of its hooks.

use crate::cli::value::Read as _;
use messaging_proto::hash::sha256;
use messaging_smol::handle::private_state;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Longest file that is read.
const FILE_BYTES: usize = 65_536;

/// What is in the file.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Kept {
    /// The state of each task as it was told. Nothing before the first hook of a session: what came before it is no news.
    tasks: Option<Map<String, Value>>,
    /// What the newest end of a turn was held up for.
    ends: BTreeSet<String>,
}

/// What was told, and what is so now.
pub(super) struct Seen {
    path: Option<PathBuf>,
    before: Kept,
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
        let before = read.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        Self { path, before, now: Map::new() }
    }

    /// The tasks that the other side changed since.
    pub(super) fn changed<'a>(&mut self, tasks: &'a [Value]) -> Vec<&'a Value> {
        let mut changed = Vec::new();
        for task in tasks {
            let (id, state) = (task.text("taskId"), task.text("state"));
            self.now.insert(id.to_owned(), Value::from(state));
            let Some(before) = &self.before.tasks else { continue };
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

    /// Whether the end of a turn is held up for these: each message, and each change of a task, holds up one.
    pub(super) fn hold_up(&self, items: &[&Value], changed: &[&Value]) -> bool {
        let items = items.iter().map(|item| item.text("id").to_owned());
        let changes = changed.iter().map(|task| format!("{} {}", task.text("taskId"), task.text("state")));
        let ends: BTreeSet<String> = items.chain(changes).collect();
        let new = !ends.is_subset(&self.before.ends);
        if new {
            // No state of a task was told.
            self.write(&Kept { tasks: self.before.tasks.clone(), ends });
        }
        new
    }

    /// Keeps what was told.
    pub(super) fn save(&self) {
        self.write(&Kept { tasks: Some(self.now.clone()), ends: self.before.ends.clone() });
    }

    fn write(&self, kept: &Kept) {
        if let Some(path) = &self.path
            && self.before != *kept
            && let Ok(text) = serde_json::to_vec(kept)
        {
            // Lost, it is told once more or not at all; no reason to make the agent wait for the disk.
            let temporary = path.with_extension(std::process::id().to_string());
            let _ = std::fs::write(&temporary, text).and_then(|()| std::fs::rename(&temporary, path));
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
        let mut first = Seen { path: None, before: Kept::default(), now: Map::new() };
        assert!(first.changed(&[task("a", "requester", "WORKING")]).is_empty(), "the first look is no news");
        let before = Kept { tasks: Some(first.now), ..Kept::default() };
        let mut seen = Seen { path: None, before, now: Map::new() };
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
    #[test]
    fn nothing_holds_up_two_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seen.json");
        let (one, two) = (json!({"id": "1"}), json!({"id": "2"}));
        let task = json!({"taskId": "t", "state": "TASK_STATE_COMPLETED"});
        let end = |items: &[&Value], tasks: &[&Value]| {
            let before = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
            let seen = Seen { path: Some(path.clone()), before: before.unwrap_or_default(), now: Map::new() };
            seen.hold_up(items, tasks)
        };
        assert!(end(&[&one], &[]));
        assert!(!end(&[&one], &[]));
        assert!(end(&[&one, &two], &[]), "another one is new");
        assert!(!end(&[&two], &[]), "what was read is none");
        assert!(end(&[&two], &[&task]));
        assert!(!end(&[&two], &[&task]));
        assert!(!end(&[], &[]));
    }
}
