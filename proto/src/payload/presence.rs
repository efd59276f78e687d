//! The payload of a `presence` (`messaging/1 §6.5`), and cutting one to its limit.

use crate::json::{Fields, FromValue, Invalid, Object, Value, canonicalize};
use crate::limits::PRESENCE_BYTES;
use crate::name::{AgentKind, Label, SessionName};
use crate::time::Wall;
use crate::units::utf16_len;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Most sessions of one presence.
pub const SESSIONS: usize = 200;
/// Most features of one presence.
pub const FEATURES: usize = 32;
/// Most units of `repo`, `branch` and `doing`.
pub const DETAIL_UNITS: usize = 256;

/// Whether a session is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// It waits.
    Idle,
    /// It works.
    Busy,
}

impl SessionState {
    /// The state's text on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Busy => "busy",
        }
    }
}

impl FromValue for SessionState {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        match value.as_str() {
            Some("idle") => Ok(Self::Idle),
            Some("busy") => Ok(Self::Busy),
            _ => Err(Invalid::new()),
        }
    }
}

/// How a session gets its mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Its client can be told.
    Push,
    /// It has to ask.
    Pull,
}

impl Tier {
    /// The tier's text on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Pull => "pull",
        }
    }
}

impl FromValue for Tier {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        match value.as_str() {
            Some("push") => Ok(Self::Push),
            Some("pull") => Ok(Self::Pull),
            _ => Err(Invalid::new()),
        }
    }
}

/// Which sessions a machine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresencePayload {
    /// Rises with every presence of the machine.
    pub seq: u64,
    /// The machine's label, which must be the roster's.
    pub label: Label,
    /// Its sessions, live ones first. Names are distinct.
    pub sessions: Vec<PresenceSession>,
    /// What it can do beyond the minimum; unknown ones are ignored.
    pub features: Vec<String>,
    /// Whether its person is away from it.
    pub away: bool,
}

/// One session of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresenceSession {
    /// Its name.
    pub name: SessionName,
    /// What kind of agent it is.
    pub client: AgentKind,
    /// Whether it is at work.
    pub state: SessionState,
    /// How it gets its mail.
    pub tier: Tier,
    /// When it started.
    pub since: Wall,
    /// Whether it is gone but kept for a while.
    pub kept: bool,
    /// Whether a sender's hint would wake it now.
    pub wake: bool,
    /// The repository it works in.
    pub repo: Option<String>,
    /// The branch it works on.
    pub branch: Option<String>,
    /// What it works on.
    pub doing: Option<String>,
}

impl PresencePayload {
    /// The payload as it is written. Flags that are off, and what is not shared, are left out.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.push("seq".to_owned(), Value::int(self.seq));
        object.push("label".to_owned(), Value::text(self.label.as_str()));
        let sessions = self.sessions.iter().map(PresenceSession::to_value).collect();
        object.push("sessions".to_owned(), Value::Array(sessions));
        let features = self.features.iter().map(|feature| Value::text(feature.as_str())).collect();
        object.push("features".to_owned(), Value::Array(features));
        if self.away {
            object.push("away".to_owned(), Value::Bool(true));
        }
        object.into()
    }
}

impl PresenceSession {
    /// The session as it is written.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.push("name".to_owned(), Value::text(self.name.as_str()));
        object.push("client".to_owned(), Value::text(self.client.as_str()));
        object.push("state".to_owned(), Value::text(self.state.as_str()));
        object.push("tier".to_owned(), Value::text(self.tier.as_str()));
        object.push("since".to_owned(), Value::int(self.since.0));
        for (name, on) in [("kept", self.kept), ("wake", self.wake)] {
            if on {
                object.push(name.to_owned(), Value::Bool(true));
            }
        }
        for (name, text) in [("repo", &self.repo), ("branch", &self.branch), ("doing", &self.doing)] {
            if let Some(text) = text {
                object.push(name.to_owned(), Value::text(text.as_str()));
            }
        }
        object.into()
    }
}

impl FromValue for PresencePayload {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        at_most(&fields, "sessions", SESSIONS)?;
        at_most(&fields, "features", FEATURES)?;
        let sessions: Vec<PresenceSession> = fields.req("sessions")?;
        let names: BTreeSet<&SessionName> = sessions.iter().map(|session| &session.name).collect();
        if names.len() < sessions.len() {
            return Err(Invalid::at("sessions"));
        }
        let features: Vec<String> = fields.req("features")?;
        if let Some(index) = features.iter().position(|feature| !is_feature(feature)) {
            return Err(Invalid::new().within_index(index).within("features"));
        }
        Ok(Self {
            seq: fields.req("seq")?,
            label: fields.req("label")?,
            sessions,
            features,
            away: fields.opt("away")?.unwrap_or(false),
        })
    }
}

impl FromValue for PresenceSession {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        let session = Self {
            name: fields.req("name")?,
            client: fields.req("client")?,
            state: fields.req("state")?,
            tier: fields.req("tier")?,
            since: Wall(fields.req("since")?),
            kept: fields.opt("kept")?.unwrap_or(false),
            wake: fields.opt("wake")?.unwrap_or(false),
            repo: detail(&fields, "repo")?,
            branch: detail(&fields, "branch")?,
            doing: detail(&fields, "doing")?,
        };
        // §6.5: a kept session does nothing.
        if session.kept && (session.state != SessionState::Idle || session.doing.is_some()) {
            return Err(Invalid::at("kept"));
        }
        Ok(session)
    }
}

fn at_most(fields: &Fields<'_>, name: &'static str, most: usize) -> Result<(), Invalid> {
    match fields.raw(name).and_then(Value::as_array) {
        Some(items) if items.len() <= most => Ok(()),
        _ => Err(Invalid::at(name)),
    }
}

fn detail(fields: &Fields<'_>, name: &'static str) -> Result<Option<String>, Invalid> {
    let text: Option<String> = fields.opt(name)?;
    match &text {
        Some(text) if !(1..=DETAIL_UNITS).contains(&utf16_len(text)) => Err(Invalid::at(name)),
        _ => Ok(text),
    }
}

/// A lower-case letter or digit, then at most 63 of those and `. _ : -`.
fn is_feature(text: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    match text.as_bytes().split_first() {
        Some((first, rest)) => {
            plain(first) && rest.len() <= 63 && rest.iter().all(|byte| plain(byte) || b"._:-".contains(byte))
        }
        None => false,
    }
}

/// Cuts a presence to `presenceBytes`: `doing` of every session goes first, then `branch`, then `repo`, then
/// sessions from the end of the list. Members this version does not know stay.
///
/// # Errors
/// [`Invalid`] when it is not I-JSON.
pub fn trim(payload: Value) -> Result<Value, Invalid> {
    let mut bytes = canonicalize(&payload)?.len();
    let Value::Object(mut members) = payload else { return Ok(payload) };
    let Some(Value::Array(mut sessions)) = members.remove("sessions") else { return Ok(members.into()) };
    for name in ["doing", "branch", "repo"] {
        if bytes > PRESENCE_BYTES {
            bytes -= drop_detail(&mut sessions, name)?;
        }
    }
    while bytes > PRESENCE_BYTES {
        let Some(last) = sessions.pop() else { break };
        // Its text, and the comma before it unless it was the only one.
        bytes -= canonicalize(&last)?.len() + usize::from(!sessions.is_empty());
    }
    members.push("sessions".to_owned(), Value::Array(sessions));
    Ok(members.into())
}

/// Removes the member `name` of every session and says how many bytes of text went with it.
fn drop_detail(sessions: &mut [Value], name: &str) -> Result<usize, Invalid> {
    let mut bytes = 0;
    for session in sessions {
        let Value::Object(members) = session else { continue };
        if let Some(value) = members.remove(name) {
            // The name's quotes and colon, and a comma unless it was the only member.
            bytes += name.len() + 3 + canonicalize(&value)?.len() + usize::from(!members.is_empty());
        }
    }
    Ok(bytes)
}
