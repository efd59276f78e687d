//! Messages and their parts.

use crate::b64;
use crate::json::{Fields, FromValue, Invalid, Object, Value};
use crate::ulid::Ulid;
use crate::units::utf16_len;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most parts of one message or artifact.
pub const PARTS: usize = 100;

/// Most units of an id.
const ID_UNITS: usize = 128;

/// An A2A identifier: 1 … 128 UTF-16 units, chosen by whoever made the object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Id(String);

impl Id {
    /// The id with this text, when it has the right length.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // A text has at most as many units as bytes, so most need no counting.
        let fits = !text.is_empty() && (text.len() <= ID_UNITS || utf16_len(text) <= ID_UNITS);
        fits.then(|| Self(text.to_owned()))
    }

    /// The id's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Ulid> for Id {
    fn from(id: Ulid) -> Self {
        Self(id.to_string())
    }
}

impl FromValue for Id {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        value.as_str().and_then(Self::parse).ok_or_else(Invalid::new)
    }
}

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// What every sender of this version writes.
    #[serde(rename = "ROLE_USER")]
    User,
    /// Accepted.
    #[serde(rename = "ROLE_AGENT")]
    Agent,
}

impl Role {
    /// The role's name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "ROLE_USER",
            Self::Agent => "ROLE_AGENT",
        }
    }
}

impl FromValue for Role {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        match value.as_str() {
            Some("ROLE_USER") => Ok(Self::User),
            Some("ROLE_AGENT") => Ok(Self::Agent),
            _ => Err(Invalid::new()),
        }
    }
}

/// One A2A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// `messageId`.
    pub message_id: Id,
    /// `contextId`.
    pub context_id: Option<Id>,
    /// `taskId`: a ULID in Messaging.
    pub task_id: Option<Ulid>,
    /// Who speaks.
    pub role: Role,
    /// What is said: 1 … [`PARTS`] parts.
    pub parts: Vec<Part>,
    /// `metadata`.
    pub metadata: Option<Object>,
    /// `extensions`.
    pub extensions: Vec<String>,
    /// `referenceTaskIds`.
    pub reference_task_ids: Vec<Id>,
}

impl FromValue for Message {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        Ok(Self {
            message_id: fields.req("messageId")?,
            context_id: fields.opt("contextId")?,
            task_id: fields.opt("taskId")?,
            role: fields.req("role")?,
            parts: parts(&fields)?,
            metadata: fields.opt("metadata")?,
            extensions: fields.opt("extensions")?.unwrap_or_default(),
            reference_task_ids: fields.opt("referenceTaskIds")?.unwrap_or_default(),
        })
    }
}

/// The member `parts` of a message or an artifact.
pub(super) fn parts(fields: &Fields<'_>) -> Result<Vec<Part>, Invalid> {
    let count = fields.raw("parts").and_then(Value::as_array).map_or(0, <[Value]>::len);
    if (1..=PARTS).contains(&count) { fields.req("parts") } else { Err(Invalid::at("parts")) }
}

/// One part of a message or an artifact.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its one content.
    pub content: PartContent,
    /// `metadata`.
    pub metadata: Option<Object>,
    /// `filename`.
    pub filename: Option<String>,
    /// `mediaType`.
    pub media_type: Option<String>,
}

/// What a part holds.
#[derive(Clone, Debug, PartialEq)]
pub enum PartContent {
    /// `text`.
    Text(String),
    /// `raw`: bytes, as the standard base64 that was received.
    Raw(String),
    /// `url`.
    Url(String),
    /// `data`: any value, `null` included.
    Data(Value),
}

impl Part {
    /// The text, when this is a text part.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            PartContent::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl FromValue for Part {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        let present = ["text", "raw", "url", "data"].map(|name| fields.raw(name).is_some());
        let content = match present {
            [true, false, false, false] => PartContent::Text(fields.req("text")?),
            [false, true, false, false] => {
                let text: String = fields.req("raw")?;
                if b64::decode(&text).is_none() {
                    return Err(Invalid::at("raw"));
                }
                PartContent::Raw(text)
            }
            [false, false, true, false] => PartContent::Url(fields.req("url")?),
            [false, false, false, true] => PartContent::Data(fields.req("data")?),
            _ => return Err(Invalid::new()),
        };
        Ok(Self {
            content,
            metadata: fields.opt("metadata")?,
            filename: fields.opt("filename")?,
            media_type: fields.opt("mediaType")?,
        })
    }
}
