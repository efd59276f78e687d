//! Changing a task's record: by its executor's session, by the other side, or by this daemon.
//!
//! The state machine is `proto::task`; here a change is written, told to the session, and put on the calendar.

use super::rows::{self, Status, Task, TaskRole};
use super::view::{self, Delta, Origin};
use crate::daemon::ctx::{Ctx, obj};
use crate::daemon::due::{self, days};
use crate::daemon::io::Level;
use crate::daemon::mail::post::{self, Draft, Ready};
use crate::daemon::text::{AROUND_RECORD, canonical, fits_a_line, parsed};
use crate::machine::Label;
use crate::store::{StoreDown, Txn};
use messaging_proto::Code;
use messaging_proto::a2a::{Role, TaskState};
use messaging_proto::envelope::{End, Kind};
use messaging_proto::json::{Object, Value};
use messaging_proto::task::{Ending, TASK_IDLE_MS};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;

/// An artifact on its way into a record.
#[derive(Clone, Debug)]
pub(crate) struct NewArtifact {
    /// The artifact.
    pub(crate) value: Value,
    /// Whether its parts follow those of the one with the same id.
    pub(crate) append: bool,
    /// Whether no more of it follows.
    pub(crate) last_chunk: bool,
}

/// Sets a record's status in memory.
pub(crate) fn set_status(task: &mut Task, state: TaskState, parts: Option<&Value>, now: Wall) {
    task.status = Status { state, parts: parts.map(canonical), at: now };
}

/// Where an artifact goes in a record, and what it then is.
#[derive(Debug)]
pub(crate) struct Joined {
    number: u64,
    text: String,
    bytes: u64,
}

/// Joins an artifact to a record's. Writes nothing.
///
/// # Errors
/// `too_large` when the record would hold more than it may.
pub(crate) fn join_artifact(
    txn: &Txn<'_>,
    task: &Task,
    new: &NewArtifact,
) -> Result<Result<Joined, Code>, StoreDown> {
    if !fits_a_line(&new.value, AROUND_RECORD) {
        return Ok(Err(Code::TooLarge));
    }
    let id = new.value.get("artifactId").and_then(Value::as_str).unwrap_or_default();
    let held = rows::artifacts(txn, task)?;
    let at = held.iter().position(|text| parsed(text).get("artifactId").and_then(Value::as_str) == Some(id));
    let (number, old) = match at {
        Some(at) => (at as u64, held.get(at).map(String::as_str)),
        None => (task.artifacts, None),
    };
    let text = match old.filter(|_| new.append) {
        Some(old) => canonical(&appended(parsed(old), &new.value)),
        None => canonical(&new.value),
    };
    let bytes = task.artifact_bytes.saturating_sub(old.map_or(0, str::len) as u64) + text.len() as u64;
    if number >= rows::ARTIFACTS_MOST || bytes > rows::ARTIFACT_BYTES {
        return Ok(Err(Code::TooLarge));
    }
    Ok(Ok(Joined { number, text, bytes }))
}

/// Writes a joined artifact.
pub(crate) fn put_artifact(cx: &mut Ctx<'_, '_>, task: &mut Task, joined: &Joined) {
    rows::put_artifact(cx.txn, task, joined.number, &joined.text);
    task.artifacts = task.artifacts.max(joined.number + 1);
    task.artifact_bytes = joined.bytes;
}

/// The held artifact with the new one's parts after its own, and the new one's other members.
fn appended(old: Value, new: &Value) -> Value {
    let Value::Object(mut joined) = old else { return new.clone() };
    let Some(new) = new.as_object() else { return joined.into() };
    for (name, value) in new.iter() {
        match (name, joined.get("parts"), value) {
            ("parts", Some(Value::Array(old)), Value::Array(new)) => {
                joined.set("parts", Value::Array(old.iter().chain(new).cloned().collect()));
            }
            _ => joined.set(name, value.clone()),
        }
    }
    joined.into()
}

/// Writes a changed record, tells its session, and notes when it must be looked at again.
pub(crate) fn save(
    cx: &mut Ctx<'_, '_>,
    task: &mut Task,
    origin: Origin,
    delta: Option<Delta>,
) -> Result<(), StoreDown> {
    let now = cx.now();
    rows::put(cx.txn, task, now, false)?;
    plan(cx, task);
    view::event(cx, task, origin, delta)
}

/// Notes when a record must be looked at again.
pub(crate) fn plan(cx: &mut Ctx<'_, '_>, task: &Task) {
    let key = rows::key(&task.id, task.role);
    let state = task.status.state;
    if state.is_terminal() {
        let after = cx.now().plus(days(cx.facts.config.retention().task_days));
        due::at(cx.txn, after, due::Kind::Task, &key);
    } else if state.is_interrupted() && task.role == TaskRole::Executor {
        due::at(cx.txn, task.updated.plus(TASK_IDLE_MS), due::Kind::TaskIdle, &key);
    }
}

/// Ends a record by this daemon's own decision (`messaging/1 §6.3`, `§8.2`).
pub(crate) fn end(cx: &mut Ctx<'_, '_>, task: &mut Task, ending: &Ending) -> Result<(), StoreDown> {
    let now = cx.now();
    set_status(task, ending.state, Some(&words(&ending.text)), now);
    save(cx, task, Origin::Peer, Some(Delta { status: true, artifact: None }))
}

/// A status message of one text.
pub(crate) fn words(text: &str) -> Value {
    Value::Array(vec![obj([("text", Value::text(text))])])
}

/// What an event says of an artifact that came, with or without a status.
pub(crate) fn artifact_delta(status: bool, new: &NewArtifact) -> Delta {
    Delta { status, artifact: Some((new.value.clone(), new.append, new.last_chunk)) }
}

/// Tells the requester what this daemon decided.
pub(crate) fn tell(cx: &mut Ctx<'_, '_>, task: &Task) -> Result<(), StoreDown> {
    match seal_status(cx, task, false) {
        Ok(ready) => post::queue_update(cx, ready),
        Err(code) => {
            cx.log(Level::Warn, "task.untold", vec![("code", code.to_string())]);
            Ok(())
        }
    }
}

/// Seals the executor's status for the requester (`messaging/1 §6.2`). Nothing when the requester's machine left
/// the team: the record then is this machine's own.
///
/// # Errors
/// The code of what keeps it from being sent.
pub(crate) fn seal_status(cx: &Ctx<'_, '_>, task: &Task, by_session: bool) -> Result<Option<Ready>, Code> {
    let mut status = Object::new();
    status.set("state", Value::text(task.status.state.as_str()));
    if let Some(parts) = &task.status.parts {
        let message = obj([
            ("messageId", Value::text(Ulid::new(cx.now(), cx.step.draw(Label::MessageId)).as_str())),
            ("contextId", Value::text(task.context.as_str())),
            ("taskId", Value::text(task.id.as_str())),
            ("role", Value::text(Role::Agent.as_str())),
            ("parts", parsed(parts)),
        ]);
        status.set("message", message);
    }
    let payload = obj([
        ("taskId", Value::text(task.id.as_str())),
        ("contextId", Value::text(task.context.as_str())),
        ("status", status.into()),
    ]);
    seal_update(cx, task, Kind::TaskStatus, payload, by_session)
}

/// Seals an artifact for the requester, as [`seal_status`] does a status.
///
/// # Errors
/// The code of what keeps it from being sent.
pub(crate) fn seal_artifact(cx: &Ctx<'_, '_>, task: &Task, new: &NewArtifact) -> Result<Option<Ready>, Code> {
    let payload = obj([
        ("taskId", Value::text(task.id.as_str())),
        ("contextId", Value::text(task.context.as_str())),
        ("artifact", new.value.clone()),
        ("append", Value::Bool(new.append)),
        ("lastChunk", Value::Bool(new.last_chunk)),
    ]);
    seal_update(cx, task, Kind::TaskArtifact, payload, true)
}

fn seal_update(
    cx: &Ctx<'_, '_>,
    task: &Task,
    kind: Kind,
    payload: Value,
    by_session: bool,
) -> Result<Option<Ready>, Code> {
    let draft = Draft {
        kind,
        from_agent: by_session.then(|| task.session.clone()),
        to: End { person: task.peer.person.clone(), device: task.peer.device, agent: None },
        reply_to: Some(task.request),
        payload,
    };
    match post::seal(cx, &draft) {
        Ok(ready) => Ok(Some(ready)),
        Err(error) if error.code() == Code::NotMember => Ok(None),
        Err(error) => Err(error.code()),
    }
}
