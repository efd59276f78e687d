//! Addresses of sessions, of an agent's tools and of conversations (contract wire-core §2; `messaging/1 §3`,
//! `§8.2`, `§11`).

use crate::Code;
use crate::key::MachineId;
use crate::name::{ChannelName, Label, PersonId, SessionName};
use crate::text_form::text_form;
use std::fmt;

/// `person/session` with or without `@label`: one session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// Whose session it is.
    pub person: PersonId,
    /// The session.
    pub session: SessionName,
    /// The machine it runs on, where that must be said.
    pub label: Option<Label>,
}

impl Address {
    /// Reads an address.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (person, rest) = text.split_once('/')?;
        let (session, label) = session_and_label(rest)?;
        Some(Self { person: PersonId::parse(person)?, session, label })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.person, self.session)?;
        self.label.iter().try_for_each(|label| write!(f, "@{label}"))
    }
}

text_form!(Address, "an address");

/// `person/session@label`: one session on one machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionAddress {
    /// Whose session it is.
    pub person: PersonId,
    /// The session.
    pub session: SessionName,
    /// The machine it runs on.
    pub label: Label,
}

impl SessionAddress {
    /// Reads an address, which must have its label.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let Address { person, session, label } = Address::parse(text)?;
        Some(Self { person, session, label: label? })
    }
}

impl fmt::Display for SessionAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.person, self.session, self.label)
    }
}

text_form!(SessionAddress, "an address with a label");

impl From<SessionAddress> for Address {
    fn from(SessionAddress { person, session, label }: SessionAddress) -> Self {
        Self { person, session, label: Some(label) }
    }
}

/// What an agent's tool may address (`§11`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolAddress {
    /// `me`: the own person.
    Own,
    /// `me/agent`: one of the own person's sessions.
    OwnAgent {
        /// The session.
        agent: SessionName,
        /// The machine, where it was said.
        label: Option<Label>,
    },
    /// `#channel`.
    Channel(ChannelName),
    /// `person`.
    Person(PersonId),
    /// `person/agent`: another person's session, or the own one's by its name.
    Agent {
        /// The person.
        person: PersonId,
        /// The session.
        agent: SessionName,
        /// The machine, where it was said.
        label: Option<Label>,
    },
}

impl ToolAddress {
    /// Reads a tool address. `me` always means the own person, also where a person of that name exists.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "me" {
            return Some(Self::Own);
        }
        if let Some(rest) = text.strip_prefix("me/") {
            return session_and_label(rest).map(|(agent, label)| Self::OwnAgent { agent, label });
        }
        if let Some(name) = text.strip_prefix('#') {
            return ChannelName::parse(name).map(Self::Channel);
        }
        if let Some(person) = PersonId::parse(text) {
            return Some(Self::Person(person));
        }
        let Address { person, session, label } = Address::parse(text)?;
        Some(Self::Agent { person, agent: session, label })
    }

    /// This address as its user `own` means it: `me` and the own name are one person.
    #[must_use]
    pub fn seen_by(self, own: &PersonId) -> Self {
        match self {
            Self::Person(person) if person == *own => Self::Own,
            Self::OwnAgent { agent, label } => Self::Agent { person: own.clone(), agent, label },
            other => other,
        }
    }
}

impl fmt::Display for ToolAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (agent, label) = match self {
            Self::Own => return f.write_str("me"),
            Self::Channel(name) => return write!(f, "#{name}"),
            Self::Person(person) => return person.fmt(f),
            Self::OwnAgent { agent, label } => {
                f.write_str("me")?;
                (agent, label)
            }
            Self::Agent { person, agent, label } => {
                person.fmt(f)?;
                (agent, label)
            }
        };
        write!(f, "/{agent}")?;
        label.iter().try_for_each(|label| write!(f, "@{label}"))
    }
}

text_form!(ToolAddress, "a tool address");

/// A chat: `dm:person` or `channel:name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoomRef {
    /// The chat with one person.
    Dm(PersonId),
    /// A channel.
    Channel(ChannelName),
}

impl RoomRef {
    /// Reads a reference.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(':')?;
        match kind {
            "dm" => PersonId::parse(name).map(Self::Dm),
            "channel" => ChannelName::parse(name).map(Self::Channel),
            _ => None,
        }
    }
}

impl fmt::Display for RoomRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dm(person) => write!(f, "dm:{person}"),
            Self::Channel(name) => write!(f, "channel:{name}"),
        }
    }
}

text_form!(RoomRef, "a chat reference");

/// A conversation: a chat, or `agent:person/session`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConvRef {
    /// A chat.
    Room(RoomRef),
    /// What was said with one session.
    Agent {
        /// The person.
        person: PersonId,
        /// The session, on whichever machine.
        agent: SessionName,
    },
}

impl ConvRef {
    /// Reads a reference.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let Some(rest) = text.strip_prefix("agent:") else {
            return RoomRef::parse(text).map(Self::Room);
        };
        match Address::parse(rest)? {
            Address { person, session, label: None } => Some(Self::Agent { person, agent: session }),
            Address { label: Some(_), .. } => None,
        }
    }
}

impl fmt::Display for ConvRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Room(room) => room.fmt(f),
            Self::Agent { person, agent } => write!(f, "agent:{person}/{agent}"),
        }
    }
}

text_form!(ConvRef, "a conversation reference");

/// One current machine of an address's person, as the resolving machine knows it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The machine.
    pub machine: MachineId,
    /// Its label in the roster.
    pub label: &'a Label,
    /// Whether it lists the addressed session: the own sessions, or those of its last presence when that has
    /// the label of the roster.
    pub lists: bool,
}

/// Why an address names no one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The person has no current machine, or none with the label.
    #[error("the address names nobody")]
    NoRecipients,
    /// More than one machine lists the session.
    #[error("the session is on more than one machine")]
    Ambiguous,
    /// No machine of the person lists the session.
    #[error("the session is unknown")]
    UnknownSession,
}

impl ResolveError {
    /// The code of §13.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::NoRecipients => Code::NoRecipients,
            Self::Ambiguous => Code::AmbiguousAddress,
            Self::UnknownSession => Code::UnknownSession,
        }
    }
}

/// The machine an address means (`§3`, "Resolution"). `candidates` are all current machines of its person.
///
/// # Errors
/// [`ResolveError`] when there is not exactly one.
pub fn resolve<'a>(
    label: Option<&Label>,
    candidates: impl IntoIterator<Item = Candidate<'a>>,
) -> Result<MachineId, ResolveError> {
    let mut nobody = true;
    let mut listing = Vec::new();
    for candidate in candidates {
        nobody = false;
        match label {
            // §3: the label's machine answers for the session, whether or not it lists it.
            Some(label) if label == candidate.label => return Ok(candidate.machine),
            None if candidate.lists => listing.push(candidate.machine),
            _ => {}
        }
    }
    match *listing {
        _ if nobody || label.is_some() => Err(ResolveError::NoRecipients),
        [] => Err(ResolveError::UnknownSession),
        [machine] => Ok(machine),
        _ => Err(ResolveError::Ambiguous),
    }
}

fn session_and_label(text: &str) -> Option<(SessionName, Option<Label>)> {
    match text.split_once('@') {
        Some((session, label)) => Some((SessionName::parse(session)?, Some(Label::parse(label)?))),
        None => SessionName::parse(text).map(|session| (session, None)),
    }
}
