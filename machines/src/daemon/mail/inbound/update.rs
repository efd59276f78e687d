//! What answers this machine's own traffic: receipts, news of tasks, cancels (`messaging/1 §5`, "Counterpart
//! binding"; contract delegation-consent §2.2). No consent is asked: the person started it.

use crate::daemon::ctx::Ctx;
use crate::daemon::mail::receipts::{self, Fate};
use crate::daemon::mail::records::Stored;
use crate::daemon::tasks::change::NewArtifact;
use crate::daemon::tasks::{self, TaskRole};
use crate::daemon::text::{AROUND_RECORD, fits_a_line};
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::a2a::TaskState;
use messaging_proto::envelope::Envelope;
use messaging_proto::json::Value;
use messaging_proto::key::MachineId;
use messaging_proto::payload::{Receipt, TaskArtifactUpdateEvent, TaskCancel, TaskStatusUpdateEvent};
use messaging_proto::task::{BindError, Bound, Incoming, bind};
use messaging_proto::ulid::Ulid;

/// A receipt. One that fits nothing sent to its signer is dropped, and nothing answers it.
pub(super) fn receipt(cx: &mut Ctx<'_, '_>, from: MachineId, receipt: &Receipt) -> Result<(), StoreDown> {
    let records = Stored::side(cx.txn, &[]);
    match bind(&records, &from, Incoming::Receipt { of: &receipt.reference })? {
        Ok(_) => receipts::heard(cx, receipt),
        Err(_) => Ok(()),
    }
}

/// A task's new status.
pub(super) fn status(
    cx: &mut Ctx<'_, '_>,
    envelope: &Envelope,
    raw: &Value,
    status: &TaskStatusUpdateEvent,
) -> Result<Fate, StoreDown> {
    let state = status.status.state;
    match update(cx, envelope, &status.task_id, Some(state), false)? {
        Ok(_) => {
            let parts = raw.get("status").and_then(|status| status.get("message")?.get("parts"));
            if parts.is_some_and(|parts| !fits_a_line(parts, AROUND_RECORD)) {
                return Ok(Fate::Rejected(Code::TooLarge));
            }
            tasks::status_arrived(cx, &status.task_id, state, parts)?;
            Ok(Fate::Delivered)
        }
        Err(error) => Ok(Fate::Rejected(error.code())),
    }
}

/// Something a task produced.
pub(super) fn artifact(
    cx: &mut Ctx<'_, '_>,
    envelope: &Envelope,
    raw: &Value,
    artifact: &TaskArtifactUpdateEvent,
) -> Result<Fate, StoreDown> {
    match update(cx, envelope, &artifact.task_id, None, true)? {
        Ok(_) => {
            let new = NewArtifact {
                value: raw.get("artifact").cloned().unwrap_or(Value::Null),
                append: artifact.append,
                last_chunk: artifact.last_chunk,
            };
            Ok(match tasks::artifact_arrived(cx, &artifact.task_id, &new)? {
                Ok(()) => Fate::Delivered,
                Err(code) => Fate::Rejected(code),
            })
        }
        Err(error) => Ok(Fate::Rejected(error.code())),
    }
}

fn update(
    cx: &Ctx<'_, '_>,
    envelope: &Envelope,
    task: &Ulid,
    state: Option<TaskState>,
    artifact: bool,
) -> Result<Result<Bound, BindError>, StoreDown> {
    let records = Stored::side(cx.txn, &[TaskRole::Requester]);
    // The schema asks for a `replyTo`, so one without names no record.
    let Some(reply_to) = &envelope.header.reply_to else { return Ok(Err(BindError::OtherRequest)) };
    bind(&records, &envelope.header.from.device, Incoming::Update { task, reply_to, state, artifact })
}

/// A requester gives up.
pub(super) fn cancel(cx: &mut Ctx<'_, '_>, from: MachineId, cancel: &TaskCancel) -> Result<Fate, StoreDown> {
    let records = Stored::side(cx.txn, &[TaskRole::Executor]);
    match bind(&records, &from, Incoming::Cancel { task: &cancel.task_id })? {
        Ok(Bound::Cancel) => {
            tasks::cancel_arrived(cx, &cancel.task_id, cancel.reason.as_deref())?;
            Ok(Fate::Delivered)
        }
        // §6.2: it had ended, and nothing changes.
        Ok(_) => Ok(Fate::Delivered),
        Err(error) => Ok(Fate::Rejected(error.code())),
    }
}
