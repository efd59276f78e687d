//! The payload of a `message` (`messaging/1 §6.1`).

use super::conv::Conv;
use crate::a2a::Message;
use crate::delegation::Grant;
use crate::json::{Fields, FromValue, Invalid, Value};
use crate::limits::DELEGATION_DEPTH;
use serde::{Deserialize, Serialize};

/// What a message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageKind {
    /// Something is said.
    Message,
    /// A task is asked for.
    Task,
}

impl MessageKind {
    /// The kind's text on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Task => "task",
        }
    }
}

impl FromValue for MessageKind {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        match value.as_str() {
            Some("message") => Ok(Self::Message),
            Some("task") => Ok(Self::Task),
            _ => Err(Invalid::new()),
        }
    }
}

/// A message, and what Messaging says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct MessagePayload {
    /// Whether it asks for a task.
    pub kind: MessageKind,
    /// The A2A message.
    pub message: Message,
    /// What it is about, when no agent is addressed and it is not a line between two persons.
    pub conv: Option<Conv>,
    /// The chain of grants, root first: exactly with a task. Each has its shape, nothing more is judged here.
    pub delegation: Option<Vec<Grant>>,
    /// The sender's hint that the addressed agent should be woken; no hint means yes.
    pub wake: bool,
}

impl FromValue for MessagePayload {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        let kind = fields.req("kind")?;
        let delegation = match kind {
            MessageKind::Task => Some(chain(&fields)?),
            // §6.7: no other message carries a chain.
            MessageKind::Message => fields.absent("delegation").map(|()| None)?,
        };
        let message: Message = fields.req("message")?;
        if kind == MessageKind::Task && message.task_id.is_none() {
            return Err(Invalid::at("taskId").within("message"));
        }
        let wake = fields.opt("wake")?.unwrap_or(true);
        Ok(Self { kind, message, conv: fields.opt("conv")?, delegation, wake })
    }
}

/// 1 … `delegationDepth` grants. Their size in bytes is judged with the chain.
fn chain(fields: &Fields<'_>) -> Result<Vec<Grant>, Invalid> {
    let count = fields.raw("delegation").and_then(Value::as_array).map_or(0, <[Value]>::len);
    if (1..=DELEGATION_DEPTH).contains(&count) {
        fields.req("delegation")
    } else {
        Err(Invalid::at("delegation"))
    }
}
