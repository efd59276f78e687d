//! The task state machine (`messaging/1 §6.3`): one declared list, and what moves along it.

use crate::Code;
use crate::a2a::TaskState::{
    self, AuthRequired, Canceled, Completed, Failed, InputRequired, Rejected, Submitted, Working,
};
use crate::payload::CodeText;
use crate::time::Wall;

/// §6.3 every allowed move, by the state it starts from. A terminal state has no row.
///
/// `Working` to itself is progress. Every other state changes or stays as it is.
pub const TRANSITIONS: &[(TaskState, &[TaskState])] = &[
    (Submitted, &[Working, InputRequired, AuthRequired, Completed, Failed, Canceled, Rejected]),
    (Working, &[Working, InputRequired, AuthRequired, Completed, Failed, Canceled]),
    (InputRequired, &[Working, Completed, Failed, Canceled]),
    (AuthRequired, &[Working, Completed, Failed, Canceled]),
];

/// How long an interrupted task may lie untouched, in milliseconds: 24 hours (`messaging/1 §6.3`).
pub const TASK_IDLE_MS: u64 = 86_400_000;

/// An update that a task's state does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// The update has neither a state nor an artifact.
    #[error("the update has neither state nor artifact")]
    Empty,
    /// The task has ended.
    #[error("the task has ended")]
    Ended,
    /// The task does not move from its state to the update's.
    #[error("the task's state does not lead to the update's")]
    Transition,
}

impl TaskError {
    /// The code of a refusal for this reason.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::Empty => Code::InvalidRequest,
            Self::Ended | Self::Transition => Code::InvalidState,
        }
    }
}

/// Whether a task may move from `from` to `to` (`canTransition`, `messaging/1 §6.3`).
#[must_use]
pub fn can_transition(from: TaskState, to: TaskState) -> bool {
    TRANSITIONS.iter().any(|(state, next)| *state == from && next.contains(&to))
}

/// The state of a task after an update (`messaging/1 §6.2`): the executor's own, or one the requester received.
///
/// # Errors
/// [`TaskError`] when the update says nothing, the task has ended, or the table does not lead there. Then the
/// task stays as it was.
pub fn apply_update(state: TaskState, to: Option<TaskState>, artifact: bool) -> Result<TaskState, TaskError> {
    match to {
        None if !artifact => Err(TaskError::Empty),
        _ if state.is_terminal() => Err(TaskError::Ended),
        // §6.3 an artifact alone fits every state that is not terminal.
        None => Ok(state),
        Some(to) if can_transition(state, to) => Ok(to),
        Some(_) => Err(TaskError::Transition),
    }
}

/// How the machine itself ends a task: the state, and the text of its status message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The terminal state.
    pub state: TaskState,
    /// Our own words for the reason.
    pub text: String,
}

/// The end of an executor's interrupted task that nobody touched for [`TASK_IDLE_MS`] (`messaging/1 §6.3`).
///
/// `updated_at` moves with every status, artifact and continuation. A clock set back ends nothing.
#[must_use]
pub fn timeout(state: TaskState, updated_at: Wall, now: Wall) -> Option<Ending> {
    let idle = now.0.saturating_sub(updated_at.0);
    let interrupted = matches!(state, InputRequired | AuthRequired);
    (interrupted && idle >= TASK_IDLE_MS)
        .then(|| Ending { state: Failed, text: "timed out waiting for input".to_owned() })
}

/// The end of a requester's record whose request was refused, by a receipt or by the relay (`§8.2`, `§11`).
///
/// `code` is the refusal's, which may be one this release does not know. Only a task nobody has answered yet ends
/// this way: once the executor spoke, the request had arrived.
#[must_use]
pub fn delivery_rejected(state: TaskState, code: &CodeText) -> Option<Ending> {
    (state == Submitted).then(|| Ending { state: Rejected, text: format!("delivery rejected: {code}") })
}

/// The end of a requester's record whose request expired on the way (`§8.2`, `§11`).
#[must_use]
pub fn delivery_expired(state: TaskState) -> Option<Ending> {
    (state == Submitted).then(|| Ending { state: Failed, text: "delivery failed: expired".to_owned() })
}
