//! The payload of a `receipt` (`messaging/1 §6.4`).

use crate::Code;
use crate::json::{Fields, FromValue, Invalid, Object, Value};
use crate::time::Wall;
use crate::ulid::Ulid;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A code as a peer wrote it: kept and shown also when this version does not know it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CodeText(String);

impl CodeText {
    /// The code with this text, when it has the form of a code: a lower-case letter, then at most 63 of
    /// `a-z 0-9 _`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (first, rest) = text.as_bytes().split_first()?;
        let fits = first.is_ascii_lowercase()
            && rest.len() <= 63
            && rest.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_');
        fits.then(|| Self(text.to_owned()))
    }

    /// The code's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The code, when this version knows it.
    #[must_use]
    pub fn known(&self) -> Option<Code> {
        Code::from_text(&self.0)
    }
}

impl fmt::Display for CodeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Code> for CodeText {
    fn from(code: Code) -> Self {
        Self(code.as_str().to_owned())
    }
}

impl From<CodeText> for String {
    fn from(code: CodeText) -> Self {
        code.0
    }
}

impl TryFrom<String> for CodeText {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::parse(&text).ok_or_else(Invalid::new)
    }
}

impl FromValue for CodeText {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        value.as_str().and_then(Self::parse).ok_or_else(Invalid::new)
    }
}

/// How far an envelope came at its recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Stored durably.
    Delivered,
    /// Kept for its person to decide.
    Held,
    /// An agent took it.
    HandedToAgent,
    /// Somebody read it.
    Read,
    /// Refused.
    Rejected,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Self; 5] = [Self::Delivered, Self::Held, Self::HandedToAgent, Self::Read, Self::Rejected];

    /// The stage's text on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Held => "held",
            Self::HandedToAgent => "handed_to_agent",
            Self::Read => "read",
            Self::Rejected => "rejected",
        }
    }

    /// The stage with this text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == text)
    }
}

impl FromValue for Stage {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        value.as_str().and_then(Self::parse).ok_or_else(Invalid::new)
    }
}

/// A recipient's proof of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// `ref`: the envelope it is about.
    #[serde(rename = "ref")]
    pub reference: Ulid,
    /// The stage.
    pub stage: Stage,
    /// Why, exactly with [`Stage::Rejected`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeText>,
    /// When the stage was reached.
    pub at: Wall,
}

impl Receipt {
    /// The payload as it is written.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.push("ref".to_owned(), Value::text(self.reference.as_str()));
        object.push("stage".to_owned(), Value::text(self.stage.as_str()));
        if let Some(code) = &self.code {
            object.push("code".to_owned(), Value::text(code.as_str()));
        }
        object.push("at".to_owned(), Value::int(self.at.0));
        object.into()
    }
}

impl FromValue for Receipt {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        let receipt = Self {
            reference: fields.req("ref")?,
            stage: fields.req("stage")?,
            code: fields.opt("code")?,
            at: Wall(fields.req("at")?),
        };
        if receipt.code.is_some() == (receipt.stage == Stage::Rejected) {
            Ok(receipt)
        } else {
            Err(Invalid::at("code"))
        }
    }
}
