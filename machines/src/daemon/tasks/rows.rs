//! The rows of tasks.
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `task` | task id ‖ role | [`Task`] |
//! | `task_order` | mailbox ‖ updated (ms) ‖ counter | the `task` key |
//! | `task_history` | task id ‖ role ‖ number | [`Entry`] |
//! | `task_artifact` | task id ‖ role ‖ number | the artifact's canonical text |
//!
//! A task between two sessions of one machine has two records there, one for each side.

use crate::daemon::mail::peer::Peer;
use crate::daemon::mail::thread::{self, Place, With};
use crate::daemon::rows::{self, Key};
use crate::store::{Range, StoreDown, Table, Txn};
use messaging_proto::a2a::TaskState;
use messaging_proto::delegation::Summary;
use messaging_proto::name::SessionName;
use messaging_proto::task::{Role, TaskView};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use serde::{Deserialize, Serialize};
use std::ops::Bound;

pub(crate) const TASK: Table = Table("task");
pub(crate) const ORDER: Table = Table("task_order");
pub(crate) const HISTORY: Table = Table("task_history");
pub(crate) const ARTIFACT: Table = Table("task_artifact");

/// The most messages of a record that are shown: far more than fit the tempo of a task.
const HISTORY_MOST: usize = 1_000;
/// The most artifacts of a record.
pub(crate) const ARTIFACTS_MOST: u64 = 200;
/// The most bytes of a record's artifacts, so that a record fits one line of the local API.
pub(crate) const ARTIFACT_BYTES: u64 = 4 * 1024 * 1024;
/// The most bytes of a record's history, likewise.
pub(crate) const HISTORY_BYTES: u64 = 2 * 1024 * 1024;

/// Where a task stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Status {
    /// The state.
    pub(crate) state: TaskState,
    /// What its executor, or this daemon, says: the canonical text of an array of parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parts: Option<String>,
    /// Since when.
    pub(crate) at: Wall,
}

/// A message that followed the request, on the requester's side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FollowUp {
    /// Its envelope.
    pub(crate) envelope: Ulid,
    /// Its message.
    pub(crate) message: String,
    /// When it was sent.
    pub(crate) at: Wall,
}

/// A task as this machine knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task {
    /// Its id.
    pub(crate) id: Ulid,
    /// This machine's side.
    pub(crate) role: TaskRole,
    /// The local session's mailbox.
    pub(crate) mailbox: u64,
    /// The local session's name when the task was made.
    pub(crate) session: SessionName,
    /// The other side.
    pub(crate) peer: Peer,
    /// Its context.
    pub(crate) context: String,
    /// The envelope of the request.
    pub(crate) request: Ulid,
    /// Where it stands.
    pub(crate) status: Status,
    /// The request in short.
    pub(crate) title: String,
    /// When it was made.
    pub(crate) created: Wall,
    /// When it last changed.
    pub(crate) updated: Wall,
    /// Its place among tasks updated in the same millisecond.
    pub(crate) order: u64,
    /// Its verified chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chain: Option<Summary>,
    /// The chain's grants, on the executor's side: the canonical text of the array, to be delegated on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grants: Option<String>,
    /// The newest follow-ups, oldest first, on the requester's side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) follow_ups: Vec<FollowUp>,
    /// How many messages its history holds.
    pub(crate) messages: u64,
    /// Bytes of its history.
    pub(crate) message_bytes: u64,
    /// How many artifacts it holds.
    pub(crate) artifacts: u64,
    /// Bytes of its artifacts.
    pub(crate) artifact_bytes: u64,
}

/// A side of a task, as a row has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TaskRole {
    /// It asked.
    Requester = 1,
    /// It works.
    Executor = 2,
}

impl TaskRole {
    /// The side's text in the API.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Requester => "requester",
            Self::Executor => "executor",
        }
    }
}

impl From<TaskRole> for Role {
    fn from(role: TaskRole) -> Self {
        match role {
            TaskRole::Requester => Self::Requester,
            TaskRole::Executor => Self::Executor,
        }
    }
}

/// One message of a task's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The envelope it came in.
    pub(crate) id: Ulid,
    /// When.
    pub(crate) at: Wall,
    /// The message's canonical text.
    pub(crate) message: String,
}

/// A side's record of a task.
pub(crate) fn get(txn: &Txn<'_>, id: &Ulid, role: TaskRole) -> Result<Option<Task>, StoreDown> {
    rows::get(txn, TASK, &key(id, role))
}

/// The record of a task that a mailbox is a side of.
pub(crate) fn of_mailbox(txn: &Txn<'_>, id: &Ulid, mailbox: u64) -> Result<Option<Task>, StoreDown> {
    for role in [TaskRole::Requester, TaskRole::Executor] {
        if let Some(task) = get(txn, id, role)?
            && task.mailbox == mailbox
        {
            return Ok(Some(task));
        }
    }
    Ok(None)
}

/// Writes a record as updated now, in its place of the order. `new` has no place yet.
pub(crate) fn put(txn: &mut Txn<'_>, task: &mut Task, now: Wall, new: bool) -> Result<(), StoreDown> {
    if !new {
        rows::delete(txn, ORDER, &order_key(task));
    }
    task.updated = now;
    task.order = rows::next(txn, "task_order")?;
    let key = key(&task.id, task.role);
    rows::put(txn, TASK, &key, task);
    txn.put(ORDER, order_key(task).as_slice(), key.as_slice());
    Ok(())
}

/// Removes a record whole.
pub(crate) fn remove(txn: &mut Txn<'_>, task: &Task) -> Result<(), StoreDown> {
    let key = key(&task.id, task.role);
    for table in [HISTORY, ARTIFACT] {
        for (row, _) in txn.prefix(table, key.as_slice(), HISTORY_MOST)? {
            txn.delete(table, &row);
        }
    }
    if let Some((with, place)) = task.in_thread() {
        thread::remove(txn, task.mailbox, &with, &place);
    }
    rows::delete(txn, ORDER, &order_key(task));
    rows::delete(txn, TASK, &key);
    Ok(())
}

/// A mailbox's records, newest update first, from before `place`, at most `limit`, with their places.
pub(crate) fn newest(
    txn: &Txn<'_>,
    mailbox: u64,
    before: Option<(u64, u64)>,
    limit: usize,
) -> Result<Vec<Task>, StoreDown> {
    let from = Key::new().num(mailbox);
    let to = match before {
        Some((updated, order)) => Key::new().num(mailbox).num(updated).num(order),
        None => Key::new().num(mailbox.saturating_add(1)),
    };
    let range = Range {
        from: Bound::Included(from.as_slice()),
        to: Bound::Excluded(to.as_slice()),
        reverse: true,
        limit,
    };
    let mut tasks = Vec::new();
    for (_, key) in txn.range(ORDER, range)? {
        tasks.extend(txn.get(TASK, &key)?.as_deref().and_then(rows::decode::<Task>));
    }
    Ok(tasks)
}

/// Adds a message to a record's history, unless the history is full.
pub(crate) fn add_message(txn: &mut Txn<'_>, task: &mut Task, entry: &Entry) {
    let bytes = entry.message.len() as u64;
    if task.messages >= HISTORY_MOST as u64 || task.message_bytes + bytes > HISTORY_BYTES {
        return;
    }
    rows::put(txn, HISTORY, &key(&task.id, task.role).num(task.messages), entry);
    task.messages += 1;
    task.message_bytes += bytes;
}

/// A record's history, oldest first.
pub(crate) fn history(txn: &Txn<'_>, task: &Task) -> Result<Vec<Entry>, StoreDown> {
    let rows = rows::list(txn, HISTORY, &key(&task.id, task.role), HISTORY_MOST)?;
    Ok(rows.into_iter().map(|(_, entry)| entry).collect())
}

/// A record's artifacts in the order they began, each as canonical text.
pub(crate) fn artifacts(txn: &Txn<'_>, task: &Task) -> Result<Vec<String>, StoreDown> {
    let rows = rows::list(txn, ARTIFACT, &key(&task.id, task.role), ARTIFACTS_MOST as usize)?;
    Ok(rows.into_iter().map(|(_, text)| text).collect())
}

/// Writes the artifact with this number.
pub(crate) fn put_artifact(txn: &mut Txn<'_>, task: &Task, number: u64, text: &String) {
    rows::put(txn, ARTIFACT, &key(&task.id, task.role).num(number), text);
}

/// The key of a record.
pub(crate) fn key(id: &Ulid, role: TaskRole) -> Key {
    Key::new().text(id.as_str()).bytes(&[role as u8])
}

/// The record a key names.
pub(crate) fn of_key(txn: &Txn<'_>, key: &[u8]) -> Result<Option<Task>, StoreDown> {
    Ok(txn.get(TASK, key)?.as_deref().and_then(rows::decode))
}

fn order_key(task: &Task) -> Key {
    Key::new().num(task.mailbox).num(task.updated.0).num(task.order)
}

impl Task {
    /// Where the task stands in the conversation with its other side.
    pub(crate) fn in_thread(&self) -> Option<(With, Place)> {
        let with = With { person: self.peer.person.clone(), agent: self.peer.agent.clone()? };
        Some((with, Place { at: self.created, id: self.id }))
    }

    /// What the counterpart binding reads of the record.
    pub(crate) fn view(&self) -> TaskView {
        TaskView {
            role: self.role.into(),
            device: self.peer.device,
            request: self.request,
            session: self.session.clone(),
            state: self.status.state,
        }
    }
}
