//! What envelopes carry (`messaging/1 §6`): one schema for each envelope type.
//!
//! The typed forms hold the known members. The raw value stays beside them, with everything a newer peer added,
//! for hashing, storing and showing.

mod conv;
mod message;
pub mod presence;
mod receipt;
mod task;

pub use conv::{CardWhat, ChannelConv, ChannelOp, Conv, SyncWhat};
pub use message::{MessageKind, MessagePayload};
pub use presence::{PresencePayload, PresenceSession, SessionState, Tier};
pub use receipt::{CodeText, Receipt, Stage};
pub use task::{TaskArtifactUpdateEvent, TaskCancel, TaskStatusUpdateEvent};

use crate::envelope::Kind;
use crate::json::{FromValue, Invalid, Value};

/// One payload that matches the schema of its envelope's type.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload {
    raw: Value,
    typed: Typed,
}

/// The known members of a payload.
#[derive(Clone, Debug, PartialEq)]
pub enum Typed {
    /// Of a `message`.
    Message(Box<MessagePayload>),
    /// Of a `receipt`.
    Receipt(Receipt),
    /// Of a `task.status`.
    TaskStatus(Box<TaskStatusUpdateEvent>),
    /// Of a `task.artifact`.
    TaskArtifact(Box<TaskArtifactUpdateEvent>),
    /// Of a `task.cancel`.
    TaskCancel(TaskCancel),
    /// Of a `presence`.
    Presence(PresencePayload),
}

impl Typed {
    /// Reads the payload of an envelope of this type.
    ///
    /// # Errors
    /// [`Invalid`] with the first member that does not match.
    pub fn read(kind: Kind, raw: &Value) -> Result<Self, Invalid> {
        Ok(match kind {
            Kind::Message => Self::Message(Box::new(MessagePayload::from_value(raw)?)),
            Kind::Receipt => Self::Receipt(Receipt::from_value(raw)?),
            Kind::TaskStatus => Self::TaskStatus(Box::new(TaskStatusUpdateEvent::from_value(raw)?)),
            Kind::TaskArtifact => Self::TaskArtifact(Box::new(TaskArtifactUpdateEvent::from_value(raw)?)),
            Kind::TaskCancel => Self::TaskCancel(TaskCancel::from_value(raw)?),
            Kind::Presence => Self::Presence(PresencePayload::from_value(raw)?),
        })
    }
}

impl Payload {
    /// Reads the payload of an envelope of this type and keeps its raw value.
    ///
    /// # Errors
    /// [`Invalid`] with the first member that does not match.
    pub fn read(kind: Kind, raw: Value) -> Result<Self, Invalid> {
        let typed = Typed::read(kind, &raw)?;
        Ok(Self { raw, typed })
    }

    /// The value as it was received.
    #[must_use]
    pub const fn raw(&self) -> &Value {
        &self.raw
    }

    /// The known members.
    #[must_use]
    pub const fn typed(&self) -> &Typed {
        &self.typed
    }

    /// Both parts.
    #[must_use]
    pub fn into_parts(self) -> (Value, Typed) {
        (self.raw, self.typed)
    }
}
