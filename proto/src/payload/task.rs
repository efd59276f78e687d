//! The payloads of `task.status`, `task.artifact` and `task.cancel` (`messaging/1 §6.2`).
//!
//! The A2A events are the payload itself.

use crate::a2a::{Artifact, Id, TaskStatus};
use crate::json::{Fields, FromValue, Invalid, Object, Value};
use crate::ulid::Ulid;

/// A task's state changed, or its executor says how it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskStatusUpdateEvent {
    /// `taskId`.
    pub task_id: Ulid,
    /// `contextId`.
    pub context_id: Id,
    /// The new status.
    pub status: TaskStatus,
    /// `metadata`.
    pub metadata: Option<Object>,
}

impl FromValue for TaskStatusUpdateEvent {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        Ok(Self {
            task_id: fields.req("taskId")?,
            context_id: fields.req("contextId")?,
            status: fields.req("status")?,
            metadata: fields.opt("metadata")?,
        })
    }
}

/// A task produced something.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskArtifactUpdateEvent {
    /// `taskId`.
    pub task_id: Ulid,
    /// `contextId`.
    pub context_id: Id,
    /// What was produced.
    pub artifact: Artifact,
    /// Whether its parts follow those of the artifact with the same id.
    pub append: bool,
    /// Whether no more of it follows.
    pub last_chunk: bool,
    /// `metadata`.
    pub metadata: Option<Object>,
}

impl FromValue for TaskArtifactUpdateEvent {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        Ok(Self {
            task_id: fields.req("taskId")?,
            context_id: fields.req("contextId")?,
            artifact: fields.req("artifact")?,
            append: fields.opt("append")?.unwrap_or(false),
            last_chunk: fields.opt("lastChunk")?.unwrap_or(false),
            metadata: fields.opt("metadata")?,
        })
    }
}

/// A requester gives up a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskCancel {
    /// `taskId`.
    pub task_id: Ulid,
    /// Why, for people.
    pub reason: Option<String>,
}

impl TaskCancel {
    /// The payload as it is written.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.push("taskId".to_owned(), Value::text(self.task_id.as_str()));
        if let Some(reason) = &self.reason {
            object.push("reason".to_owned(), Value::text(reason.as_str()));
        }
        object.into()
    }
}

impl FromValue for TaskCancel {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        Ok(Self { task_id: fields.req("taskId")?, reason: fields.opt("reason")? })
    }
}
