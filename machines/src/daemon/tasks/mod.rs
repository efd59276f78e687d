//! Tasks (`messaging/1 §6.1–§6.3`): both sides' records, and what moves them.
//!
//! Only the executor changes a task's state. Its record moves by its session's `task.update`, by the requester's
//! cancel and by the idle timeout; the requester's follows what arrives, and ends by itself only when the request
//! never arrived.

pub(crate) mod calls;
pub(crate) mod change;
pub mod params;
pub(crate) mod rows;
pub(crate) mod view;

pub(crate) use calls::call;
pub(crate) use rows::TaskRole;

use super::ctx::Ctx;
use super::mail::arrival::Arrival;
use super::mail::inbox::Item;
use super::mail::thread;
use super::sessions::rows::Session;
use super::text::canonical;
use crate::store::StoreDown;
use change::NewArtifact;
use messaging_proto::Code;
use messaging_proto::a2a::TaskState;
use messaging_proto::delegation::Summary;
use messaging_proto::json::Value;
use messaging_proto::limits::TASK_FOLLOW_UPS;
use messaging_proto::payload::CodeText;
use messaging_proto::task::{
    Ending, delivery_expired as expired_end, delivery_rejected as rejected_end, timeout,
};
use messaging_proto::ulid::Ulid;
use rows::{Entry, FollowUp, Status, Task};
use view::{Delta, Origin};

/// What a new record needs to be made.
#[derive(Debug)]
pub(crate) struct NewTask {
    pub(crate) id: Ulid,
    pub(crate) role: TaskRole,
    pub(crate) mailbox: u64,
    pub(crate) session: messaging_proto::name::SessionName,
    pub(crate) peer: super::mail::peer::Peer,
    pub(crate) context: String,
    pub(crate) request: Ulid,
    pub(crate) title: String,
    pub(crate) chain: Option<Summary>,
    pub(crate) grants: Option<String>,
    /// The request's message, canonical.
    pub(crate) message: String,
    /// How it starts: submitted, or ended with words of this daemon.
    pub(crate) ended: Option<Ending>,
}

/// Makes a record and tells its session.
pub(crate) fn create(cx: &mut Ctx<'_, '_>, new: NewTask, origin: Origin) -> Result<(), StoreDown> {
    let now = cx.now();
    let mut task = Task {
        id: new.id,
        role: new.role,
        mailbox: new.mailbox,
        session: new.session,
        peer: new.peer,
        context: new.context,
        request: new.request,
        status: Status { state: TaskState::Submitted, parts: None, at: now },
        title: new.title,
        created: now,
        updated: now,
        order: 0,
        chain: new.chain,
        grants: new.grants,
        follow_ups: Vec::new(),
        messages: 0,
        message_bytes: 0,
        artifacts: 0,
        artifact_bytes: 0,
    };
    if let Some(ending) = &new.ended {
        change::set_status(&mut task, ending.state, Some(&change::words(&ending.text)), now);
    }
    rows::add_message(cx.txn, &mut task, &Entry { id: new.request, at: now, message: new.message });
    rows::put(cx.txn, &mut task, now, true)?;
    if let Some((with, place)) = task.in_thread() {
        thread::add(cx.txn, task.mailbox, &with, &place, thread::Kind::Task(task.role));
    }
    change::plan(cx, &task);
    view::event(cx, &task, origin, None)
}

/// A task request reached its session here.
pub(crate) fn requested(
    cx: &mut Ctx<'_, '_>,
    arrival: &Arrival,
    session: &Session,
    item: &Item,
    message: &str,
    chain: Option<Summary>,
) -> Result<(), StoreDown> {
    let Some(id) = item.task else { return Ok(()) };
    let new = NewTask {
        id,
        role: TaskRole::Executor,
        mailbox: session.mailbox,
        session: session.name.clone(),
        peer: arrival.from.clone(),
        context: item.context.clone(),
        request: arrival.id,
        title: item.preview.clone(),
        chain,
        grants: arrival.raw.get("delegation").map(canonical),
        message: message.to_owned(),
        ended: None,
    };
    create(cx, new, Origin::Peer)
}

/// A message of the requester continues a task of this machine (`§6.1`).
pub(crate) fn continued(
    cx: &mut Ctx<'_, '_>,
    task: &Ulid,
    item: &Item,
    message: &str,
) -> Result<(), StoreDown> {
    let Some(mut task) = rows::get(cx.txn, task, TaskRole::Executor)? else { return Ok(()) };
    rows::add_message(cx.txn, &mut task, &Entry { id: item.id, at: item.at, message: message.to_owned() });
    change::save(cx, &mut task, Origin::Peer, None)
}

/// The requester's own follow-up, sent (`§6.1`).
pub(crate) fn followed_up(
    cx: &mut Ctx<'_, '_>,
    task: &Ulid,
    follow_up: FollowUp,
    message: &str,
) -> Result<(), StoreDown> {
    let Some(mut task) = rows::get(cx.txn, task, TaskRole::Requester)? else { return Ok(()) };
    let entry = Entry { id: follow_up.envelope, at: follow_up.at, message: message.to_owned() };
    rows::add_message(cx.txn, &mut task, &entry);
    task.follow_ups.push(follow_up);
    if task.follow_ups.len() > TASK_FOLLOW_UPS {
        task.follow_ups.remove(0);
    }
    change::save(cx, &mut task, Origin::Local, None)
}

/// The executor's status reached the requester.
pub(crate) fn status_arrived(
    cx: &mut Ctx<'_, '_>,
    task: &Ulid,
    state: TaskState,
    parts: Option<&Value>,
) -> Result<(), StoreDown> {
    let Some(mut task) = rows::get(cx.txn, task, TaskRole::Requester)? else { return Ok(()) };
    let now = cx.now();
    change::set_status(&mut task, state, parts, now);
    change::save(cx, &mut task, Origin::Peer, Some(Delta { status: true, artifact: None }))
}

/// The executor's artifact reached the requester.
///
/// # Errors
/// `too_large` when the record would hold more than it may.
pub(crate) fn artifact_arrived(
    cx: &mut Ctx<'_, '_>,
    task: &Ulid,
    new: &NewArtifact,
) -> Result<Result<(), Code>, StoreDown> {
    let Some(mut task) = rows::get(cx.txn, task, TaskRole::Requester)? else { return Ok(Ok(())) };
    match change::join_artifact(cx.txn, &task, new)? {
        Ok(joined) => {
            change::put_artifact(cx, &mut task, &joined);
            change::save(cx, &mut task, Origin::Peer, Some(change::artifact_delta(false, new)))?;
            Ok(Ok(()))
        }
        Err(code) => Ok(Err(code)),
    }
}

/// The requester gave up a task that runs here (`§6.2`): it ends, and the requester is told.
pub(crate) fn cancel_arrived(
    cx: &mut Ctx<'_, '_>,
    task: &Ulid,
    reason: Option<&str>,
) -> Result<(), StoreDown> {
    let Some(mut task) = rows::get(cx.txn, task, TaskRole::Executor)? else { return Ok(()) };
    let now = cx.now();
    let words = reason.filter(|reason| !reason.is_empty()).map(change::words);
    change::set_status(&mut task, TaskState::Canceled, words.as_ref(), now);
    change::save(cx, &mut task, Origin::Peer, Some(Delta { status: true, artifact: None }))?;
    change::tell(cx, &task)
}

/// A task's request was refused, by its recipient or by the relay (`§8.2`, "Failed delivery").
pub(crate) fn delivery_rejected(cx: &mut Ctx<'_, '_>, task: &Ulid, code: &CodeText) -> Result<(), StoreDown> {
    let Some(mut task) = rows::get(cx.txn, task, TaskRole::Requester)? else { return Ok(()) };
    match rejected_end(task.status.state, code) {
        Some(ending) => change::end(cx, &mut task, &ending),
        None => Ok(()),
    }
}

/// A task's request expired on the way.
pub(crate) fn delivery_expired(cx: &mut Ctx<'_, '_>, task: &Ulid) -> Result<(), StoreDown> {
    let Some(mut task) = rows::get(cx.txn, task, TaskRole::Requester)? else { return Ok(()) };
    match expired_end(task.status.state) {
        Some(ending) => change::end(cx, &mut task, &ending),
        None => Ok(()),
    }
}

/// An interrupted task may have been left alone for too long (`§6.3`).
pub(crate) fn idle(cx: &mut Ctx<'_, '_>, key: &[u8]) -> Result<(), StoreDown> {
    let Some(mut task) = rows::of_key(cx.txn, key)? else { return Ok(()) };
    match timeout(task.status.state, task.updated, cx.now()) {
        Some(ending) => {
            change::end(cx, &mut task, &ending)?;
            change::tell(cx, &task)
        }
        // It moved since: its newer place on the calendar counts, or the clock went back.
        None => Ok(()),
    }
}

/// A terminal task's retention may be over.
pub(crate) fn retention_over(cx: &mut Ctx<'_, '_>, key: &[u8]) -> Result<(), StoreDown> {
    match rows::of_key(cx.txn, key)? {
        Some(task) if task.status.state.is_terminal() => rows::remove(cx.txn, &task),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
