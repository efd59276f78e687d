//! Tasks as clients see them (contract ipc §2, `TaskSummary`, `TaskRecord`).

use super::rows::{self, Status, Task, TaskRole};
use crate::daemon::ctx::{Ctx, obj};
use crate::daemon::mail::peer::set;
use crate::daemon::mail::sent;
use crate::daemon::sessions::rows as sessions;
use crate::daemon::text::{parsed, preview_of};
use crate::store::{StoreDown, Txn};
use messaging_proto::delegation::Summary;
use messaging_proto::json::{Object, Value};

/// Whose act an event follows (`messaging/1 §8.2`, "`task` events").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The subscriber's own call.
    Local,
    /// The other side, or this daemon.
    Peer,
}

/// What an update changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delta {
    /// Whether it set the status.
    pub(crate) status: bool,
    /// The artifact as it came, and how it joins what is held.
    pub(crate) artifact: Option<(Value, bool, bool)>,
}

/// A chain's summary.
pub(crate) fn chain(summary: &Summary) -> Value {
    let mut chain = Object::new();
    let addresses = summary.addresses.iter().map(|address| Value::text(address.to_string())).collect();
    chain.set("addresses", Value::Array(addresses));
    chain.set("depth", Value::int(summary.depth as u64));
    chain.set("maxDepth", Value::int(summary.max_depth));
    let scope = summary.scope.as_ref();
    set(
        &mut chain,
        "scope",
        scope.map(|scope| Value::Array(scope.iter().map(|label| Value::text(label.as_str())).collect())),
    );
    chain.set("exp", Value::int(summary.exp.0));
    chain.into()
}

fn status(status: &Status) -> Value {
    let mut view = Object::new();
    view.set("state", Value::text(status.state.as_str()));
    set(&mut view, "message", status.parts.as_deref().map(parsed));
    view.set("at", Value::int(status.at.0));
    view.into()
}

/// `TaskSummary`.
pub(crate) fn summary(task: &Task) -> Object {
    let Value::Object(mut view) = obj([
        ("taskId", Value::text(task.id.as_str())),
        ("contextId", Value::text(task.context.as_str())),
        ("role", Value::text(task.role.as_str())),
        ("session", Value::text(task.session.as_str())),
        ("peer", task.peer.to_value()),
        ("state", Value::text(task.status.state.as_str())),
        ("title", Value::text(task.title.as_str())),
    ]) else {
        return Object::new();
    };
    set(
        &mut view,
        "statusPreview",
        task.status.parts.as_deref().map(|parts| Value::text(preview_of(&parsed(parts)))),
    );
    view.set("requestId", Value::text(task.request.as_str()));
    view.set("createdAt", Value::int(task.created.0));
    view.set("updatedAt", Value::int(task.updated.0));
    view
}

/// `TaskRecord`.
pub(crate) fn record(txn: &Txn<'_>, task: &Task) -> Result<Value, StoreDown> {
    let mut view = summary(task);
    view.set("status", status(&task.status));
    let history = rows::history(txn, task)?
        .into_iter()
        .map(|entry| {
            obj([
                ("id", Value::text(entry.id.as_str())),
                ("at", Value::int(entry.at.0)),
                ("message", parsed(&entry.message)),
            ])
        })
        .collect();
    view.set("history", Value::Array(history));
    view.set(
        "artifacts",
        Value::Array(rows::artifacts(txn, task)?.iter().map(|text| parsed(text)).collect()),
    );
    set(&mut view, "chain", task.chain.as_ref().map(chain));
    if task.role == TaskRole::Requester {
        set(&mut view, "followUps", follow_ups(txn, task)?);
    }
    Ok(view.into())
}

/// §6.1: the follow-ups that still have a delivery record, each with how far it came.
fn follow_ups(txn: &Txn<'_>, task: &Task) -> Result<Option<Value>, StoreDown> {
    let mut shown = Vec::new();
    for follow_up in &task.follow_ups {
        let Some(sent) = sent::get(txn, &follow_up.envelope)? else { continue };
        let Some(last) = sent.last() else { continue };
        shown.push(obj([
            ("envelopeId", Value::text(follow_up.envelope.as_str())),
            ("messageId", Value::text(follow_up.message.as_str())),
            ("at", Value::int(follow_up.at.0)),
            ("stage", Value::text(last.stage.as_str())),
            ("stageAt", Value::int(last.at.0)),
        ]));
    }
    Ok((!shown.is_empty()).then_some(Value::Array(shown)))
}

/// Tells the task's session.
pub(crate) fn event(
    cx: &mut Ctx<'_, '_>,
    task: &Task,
    origin: Origin,
    delta: Option<Delta>,
) -> Result<(), StoreDown> {
    let Some(key) = sessions::mailbox(cx.txn, task.mailbox)?.key else { return Ok(()) };
    // A record may hold megabytes: it is read for those who hear of it.
    if !cx.facts.conns.wants_key(&key) {
        return Ok(());
    }
    let mut event = Object::new();
    event.set("type", Value::text("task"));
    event.set("key", Value::text(key.as_str()));
    event.set("task", record(cx.txn, task)?);
    event.set("origin", Value::text(if origin == Origin::Local { "local" } else { "peer" }));
    if let Some(delta) = delta {
        let mut update = Object::new();
        if delta.status {
            update.set("status", status(&task.status));
        }
        if let Some((artifact, append, last_chunk)) = delta.artifact {
            update.set("artifact", artifact);
            update.set("append", Value::Bool(append));
            update.set("lastChunk", Value::Bool(last_chunk));
        }
        event.set("update", update.into());
    }
    cx.event_key(&key, &event.into());
    Ok(())
}
