//! Counterpart binding (`messaging/1 §5`): who may speak about earlier traffic.
//!
//! Ids are no secret, so an envelope that refers to earlier traffic counts only when it comes from the machine
//! that traffic was with. Everything a decision needs is read through [`Records`].

use super::state::{TaskError, apply_update};
use crate::Code;
use crate::a2a::TaskState;
use crate::key::MachineId;
use crate::name::SessionName;
use crate::ulid::Ulid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Which side of a task a machine is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It asked for the task.
    Requester,
    /// It runs the task, and alone changes its state.
    Executor,
}

/// What binding reads of a task's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// This machine's side.
    pub role: Role,
    /// The other side's machine.
    pub device: MachineId,
    /// The envelope that carried the request.
    pub request: Ulid,
    /// The local session.
    pub session: SessionName,
    /// The state as this machine knows it.
    pub state: TaskState,
}

/// The records of earlier traffic, wherever they are kept.
pub trait Records {
    /// Why the records could not be read; passed on as it is. [`std::convert::Infallible`] for records in memory.
    type Down;

    /// The machine that the envelope with this id was sent to.
    ///
    /// # Errors
    /// When the records could not be read.
    fn sent(&self, envelope: &Ulid) -> Result<Option<MachineId>, Self::Down>;

    /// The record of a task.
    ///
    /// # Errors
    /// When the records could not be read.
    fn task(&self, task: &Ulid) -> Result<Option<TaskView>, Self::Down>;

    /// The device that replaced this one. A roster realm has none: a new machine is a new member.
    ///
    /// # Errors
    /// When the records could not be read.
    fn successor(&self, device: &MachineId) -> Result<Option<MachineId>, Self::Down> {
        let _ = device;
        Ok(None)
    }
}

/// An envelope, as far as binding reads it. Made from an opened, verified envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// A `receipt`.
    Receipt {
        /// The envelope it answers.
        of: &'a Ulid,
    },
    /// A `task.status` or a `task.artifact`.
    Update {
        /// The task.
        task: &'a Ulid,
        /// The header's `replyTo`.
        reply_to: &'a Ulid,
        /// The new state, when it has one.
        state: Option<TaskState>,
        /// Whether it carries an artifact.
        artifact: bool,
    },
    /// A `task.cancel`.
    Cancel {
        /// The task.
        task: &'a Ulid,
    },
    /// A `message` of `kind: "task"`.
    Request {
        /// The id its sender gave the task.
        task: &'a Ulid,
    },
    /// A `message` of `kind: "message"` to an agent or to a person.
    Message {
        /// The task it continues.
        task: Option<&'a Ulid>,
        /// The addressed session.
        to_agent: Option<&'a SessionName>,
        /// The header's `replyTo`.
        reply_to: Option<&'a Ulid>,
    },
}

impl Incoming<'_> {
    /// Whether a drop of this envelope is answered with a `rejected` receipt: all but a receipt's, which nothing
    /// answers (`messaging/1 §6.4`).
    #[must_use]
    pub const fn drop_is_answered(&self) -> bool {
        !matches!(self, Self::Receipt { .. })
    }
}

/// What an envelope is, once its references are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A receipt for something sent: it moves that delivery's stage.
    Receipt,
    /// An update of a task this machine asked for.
    Update {
        /// The task's state after it.
        state: TaskState,
    },
    /// A cancel of a task this machine runs, which ends it.
    Cancel,
    /// A cancel of a task that had ended: nothing changes, and the envelope is acknowledged.
    CancelTooLate {
        /// The state it ended in.
        state: TaskState,
    },
    /// A message that answers this machine's own traffic (`messaging/1 §6.9`, "Evaluation").
    Answer {
        /// The sent envelope that has been replied to.
        replied: Option<Ulid>,
        /// Whether it continues a task this machine runs.
        continues: bool,
    },
    /// Nothing earlier is involved: consent decides by the rules of what it is.
    Ask,
}

/// Why an envelope that refers to earlier traffic is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// Nothing was sent under this id to the sender's machine.
    #[error("ref names nothing sent to this machine")]
    NotSent,
    /// No task of the right side and counterpart has this id.
    #[error("taskId names no task with this machine")]
    NoTask,
    /// The message is for another session than the task's.
    #[error("to.agent is not the task's session")]
    OtherSession,
    /// An update does not name the task's request.
    #[error("replyTo is not the task's request")]
    OtherRequest,
    /// A request reuses the id of a task this machine knows.
    #[error("taskId is in use")]
    TaskExists,
    /// The task's state does not allow it.
    #[error("{0}")]
    State(#[from] TaskError),
}

impl BindError {
    /// The code of the refusal.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::NotSent | Self::NoTask | Self::OtherSession => Code::NotFound,
            Self::OtherRequest | Self::TaskExists => Code::InvalidRequest,
            Self::State(error) => error.code(),
        }
    }
}

/// Whether `device` is `d`, or replaced it, directly or through others (`messaging/1 §5`, the successor rule).
///
/// # Errors
/// When the records could not be read.
pub fn same<R: Records + ?Sized>(records: &R, device: &MachineId, d: &MachineId) -> Result<bool, R::Down> {
    let mut seen = BTreeSet::new();
    let mut at = *d;
    // Every step is a device not met before, so a circle in a bad record ends the walk.
    while at != *device && seen.insert(at) {
        match records.successor(&at)? {
            Some(next) => at = next,
            None => return Ok(false),
        }
    }
    Ok(at == *device)
}

/// Checks an envelope from the machine `from` against the records (`messaging/1 §5`, "Counterpart binding").
///
/// The inner result is the decision: a [`BindError`] drops the envelope.
///
/// # Errors
/// When the records could not be read.
pub fn bind<R: Records + ?Sized>(
    records: &R,
    from: &MachineId,
    what: Incoming<'_>,
) -> Result<Result<Bound, BindError>, R::Down> {
    let seen = Seen { records, from };
    Ok(match what {
        Incoming::Receipt { of } => {
            if seen.was_sent_to(of)? {
                Ok(Bound::Receipt)
            } else {
                Err(BindError::NotSent)
            }
        }
        Incoming::Update { task, reply_to, state, artifact } => {
            seen.task(task, Role::Requester)?.map_or(Err(BindError::NoTask), |record| {
                // §6.2 an update names the envelope of the task's request.
                if *reply_to != record.request {
                    return Err(BindError::OtherRequest);
                }
                Ok(Bound::Update { state: apply_update(record.state, state, artifact)? })
            })
        }
        Incoming::Cancel { task } => match seen.task(task, Role::Executor)? {
            None => Err(BindError::NoTask),
            Some(record) if record.state.is_terminal() => Ok(Bound::CancelTooLate { state: record.state }),
            Some(_) => Ok(Bound::Cancel),
        },
        Incoming::Request { task } => match records.task(task)? {
            None => Ok(Bound::Ask),
            Some(_) => Err(BindError::TaskExists),
        },
        Incoming::Message { task: Some(task), to_agent, reply_to } => {
            match seen.task(task, Role::Executor)? {
                None => Err(BindError::NoTask),
                Some(record) if to_agent != Some(&record.session) => Err(BindError::OtherSession),
                Some(record) if record.state.is_terminal() => Err(TaskError::Ended.into()),
                Some(record) => {
                    // §8.4 a follow-up that names its task's request is no reply; naming anything else may be one.
                    let named = reply_to.filter(|id| **id != record.request);
                    Ok(Bound::Answer { replied: seen.replied(named)?, continues: true })
                }
            }
        }
        Incoming::Message { task: None, reply_to, .. } => match seen.replied(reply_to)? {
            Some(id) => Ok(Bound::Answer { replied: Some(id), continues: false }),
            // §6.9 a reply to anything else is an ask or a line like any other, and moves nothing.
            None => Ok(Bound::Ask),
        },
    })
}

/// The records, as far as they concern the sending machine.
struct Seen<'a, R: ?Sized> {
    records: &'a R,
    from: &'a MachineId,
}

impl<R: Records + ?Sized> Seen<'_, R> {
    fn was_sent_to(&self, envelope: &Ulid) -> Result<bool, R::Down> {
        match self.records.sent(envelope)? {
            Some(device) => same(self.records, self.from, &device),
            None => Ok(false),
        }
    }

    fn replied(&self, reply_to: Option<&Ulid>) -> Result<Option<Ulid>, R::Down> {
        match reply_to {
            Some(id) if self.was_sent_to(id)? => Ok(Some(*id)),
            _ => Ok(None),
        }
    }

    fn task(&self, task: &Ulid, role: Role) -> Result<Option<TaskView>, R::Down> {
        match self.records.task(task)? {
            Some(record) if record.role == role && same(self.records, self.from, &record.device)? => {
                Ok(Some(record))
            }
            _ => Ok(None),
        }
    }
}
