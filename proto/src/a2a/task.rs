//! Tasks: their states, statuses and artifacts.

use super::message::{Id, Message, Part, parts};
use super::stamp::is_timestamp;
use crate::json::{Fields, FromValue, Invalid, Object, Value};
use crate::ulid::Ulid;
use serde::{Deserialize, Serialize};

/// A task's state (`messaging/1 §6.3`). The A2A value "unspecified" is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaskState {
    /// Requested, not taken up.
    #[serde(rename = "TASK_STATE_SUBMITTED")]
    Submitted,
    /// Being worked on.
    #[serde(rename = "TASK_STATE_WORKING")]
    Working,
    /// Done.
    #[serde(rename = "TASK_STATE_COMPLETED")]
    Completed,
    /// Given up by the executor.
    #[serde(rename = "TASK_STATE_FAILED")]
    Failed,
    /// Given up by the requester.
    #[serde(rename = "TASK_STATE_CANCELED")]
    Canceled,
    /// Waiting for the requester to say more.
    #[serde(rename = "TASK_STATE_INPUT_REQUIRED")]
    InputRequired,
    /// Not taken up.
    #[serde(rename = "TASK_STATE_REJECTED")]
    Rejected,
    /// Waiting for an authorisation.
    #[serde(rename = "TASK_STATE_AUTH_REQUIRED")]
    AuthRequired,
}

impl TaskState {
    /// Every state, in the order of the specification.
    pub const ALL: [Self; 8] = [
        Self::Submitted,
        Self::Working,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::InputRequired,
        Self::Rejected,
        Self::AuthRequired,
    ];

    /// The state's name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Canceled => "TASK_STATE_CANCELED",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            Self::Rejected => "TASK_STATE_REJECTED",
            Self::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        }
    }

    /// The state with this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether nothing follows this state.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Whether the task waits for somebody other than its executor.
    #[must_use]
    pub const fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

impl FromValue for TaskState {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        value.as_str().and_then(Self::parse).ok_or_else(Invalid::new)
    }
}

/// A task's state with what its executor says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskStatus {
    /// The state.
    pub state: TaskState,
    /// What the executor says.
    pub message: Option<Message>,
    /// `timestamp`: RFC 3339 with a zone, as received.
    pub timestamp: Option<String>,
}

impl FromValue for TaskStatus {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        let timestamp: Option<String> = fields.opt("timestamp")?;
        if timestamp.as_deref().is_some_and(|text| !is_timestamp(text)) {
            return Err(Invalid::at("timestamp"));
        }
        Ok(Self { state: fields.req("state")?, message: fields.opt("message")?, timestamp })
    }
}

/// Something a task produced.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// `artifactId`.
    pub artifact_id: Id,
    /// `name`.
    pub name: Option<String>,
    /// `description`.
    pub description: Option<String>,
    /// Its content: 1 … [`super::PARTS`] parts.
    pub parts: Vec<Part>,
    /// `metadata`.
    pub metadata: Option<Object>,
    /// `extensions`.
    pub extensions: Vec<String>,
}

impl FromValue for Artifact {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        Ok(Self {
            artifact_id: fields.req("artifactId")?,
            name: fields.opt("name")?,
            description: fields.opt("description")?,
            parts: parts(&fields)?,
            metadata: fields.opt("metadata")?,
            extensions: fields.opt("extensions")?.unwrap_or_default(),
        })
    }
}

/// A whole task, as its record shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// `id`.
    pub id: Ulid,
    /// `contextId`.
    pub context_id: Option<Id>,
    /// The newest status.
    pub status: TaskStatus,
    /// What it produced so far.
    pub artifacts: Vec<Artifact>,
    /// The messages exchanged about it.
    pub history: Vec<Message>,
    /// `metadata`.
    pub metadata: Option<Object>,
}

impl FromValue for Task {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        Ok(Self {
            id: fields.req("id")?,
            context_id: fields.opt("contextId")?,
            status: fields.req("status")?,
            artifacts: fields.opt("artifacts")?.unwrap_or_default(),
            history: fields.opt("history")?.unwrap_or_default(),
            metadata: fields.opt("metadata")?,
        })
    }
}
