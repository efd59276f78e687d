//! `conv`: what a message without an addressed agent is about (`messaging/1 §5`, "Meaning"; `§6.8`).

use crate::json::{Fields, FromValue, Invalid, Value};
use crate::limits::CHANNEL_PERSONS;
use crate::name::{ChannelName, PersonId};
use crate::ulid::Ulid;
use std::collections::BTreeSet;

/// What a message to a person or a device is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conv {
    /// A channel: a change of it, or a post.
    Channel(ChannelConv),
    /// Grants on their way between two devices of one person.
    Sync(SyncWhat),
    /// A request to be let through.
    Request,
    /// A contact card, or a wish for one.
    Card(CardWhat),
}

/// One operation on one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelConv {
    /// The channel.
    pub id: Ulid,
    /// The name its creator gave it.
    pub name: ChannelName,
    /// What is done.
    pub op: ChannelOp,
}

/// What is done to a channel. Persons are 1 … `channelPersons`, each once, in the sender's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelOp {
    /// It begins.
    Create {
        /// Its members.
        persons: Vec<PersonId>,
        /// Who created it.
        creator: PersonId,
    },
    /// Persons join.
    Invite {
        /// Who.
        persons: Vec<PersonId>,
    },
    /// The sender leaves.
    Leave,
    /// Persons are put out.
    Remove {
        /// Who.
        persons: Vec<PersonId>,
    },
    /// A line is written.
    Post,
}

/// Whether a sync carries some grants or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncWhat {
    /// Grants that changed.
    Grant,
    /// Everything the sender holds.
    Snapshot,
}

/// Which way a card goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardWhat {
    /// Here is one.
    Card,
    /// Send me yours.
    Get,
}

impl ChannelOp {
    /// The operation's name on the wire.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Invite { .. } => "invite",
            Self::Leave => "leave",
            Self::Remove { .. } => "remove",
            Self::Post => "post",
        }
    }
}

impl Conv {
    /// `conv` as it is written.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let text = |name: &str, text: &str| (name.to_owned(), Value::text(text));
        let object = match self {
            Self::Channel(channel) => channel.members(),
            Self::Sync(SyncWhat::Grant) => vec![text("kind", "self"), text("what", "grant")],
            Self::Sync(SyncWhat::Snapshot) => vec![text("kind", "self"), text("what", "snapshot")],
            Self::Request => vec![text("kind", "request")],
            Self::Card(CardWhat::Card) => vec![text("kind", "card"), text("what", "card")],
            Self::Card(CardWhat::Get) => vec![text("kind", "card"), text("what", "get")],
        };
        Value::Object(object.into_iter().collect())
    }
}

impl ChannelConv {
    fn members(&self) -> Vec<(String, Value)> {
        let text = |name: &str, text: &str| (name.to_owned(), Value::text(text));
        let mut members = vec![
            text("kind", "channel"),
            text("op", self.op.as_str()),
            text("id", self.id.as_str()),
            text("name", self.name.as_str()),
        ];
        match &self.op {
            ChannelOp::Create { persons, .. }
            | ChannelOp::Invite { persons }
            | ChannelOp::Remove { persons } => {
                let persons = persons.iter().map(|person| Value::text(person.as_str())).collect();
                members.push(("persons".to_owned(), Value::Array(persons)));
            }
            ChannelOp::Leave | ChannelOp::Post => {}
        }
        if let ChannelOp::Create { creator, .. } = &self.op {
            members.push(text("creator", creator.as_str()));
        }
        members
    }
}

impl FromValue for Conv {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        let what = fields.raw("what").and_then(Value::as_str);
        match (fields.raw("kind").and_then(Value::as_str), what) {
            (Some("channel"), _) => channel(&fields).map(Self::Channel),
            (Some("self"), Some("grant")) => Ok(Self::Sync(SyncWhat::Grant)),
            (Some("self"), Some("snapshot")) => Ok(Self::Sync(SyncWhat::Snapshot)),
            (Some("request"), _) => Ok(Self::Request),
            (Some("card"), Some("card")) => Ok(Self::Card(CardWhat::Card)),
            (Some("card"), Some("get")) => Ok(Self::Card(CardWhat::Get)),
            (Some("self" | "card"), _) => Err(Invalid::at("what")),
            _ => Err(Invalid::at("kind")),
        }
    }
}

fn channel(fields: &Fields<'_>) -> Result<ChannelConv, Invalid> {
    let op = match fields.raw("op").and_then(Value::as_str) {
        Some("create") => ChannelOp::Create { persons: persons(fields)?, creator: fields.req("creator")? },
        Some("invite") => ChannelOp::Invite { persons: persons(fields)? },
        Some("leave") => ChannelOp::Leave,
        Some("remove") => ChannelOp::Remove { persons: persons(fields)? },
        Some("post") => ChannelOp::Post,
        _ => return Err(Invalid::at("op")),
    };
    Ok(ChannelConv { id: fields.req("id")?, name: fields.req("name")?, op })
}

fn persons(fields: &Fields<'_>) -> Result<Vec<PersonId>, Invalid> {
    // The count first, so that a long list is not read.
    let count = fields.raw("persons").and_then(Value::as_array).map_or(0, <[Value]>::len);
    if !(1..=CHANNEL_PERSONS).contains(&count) {
        return Err(Invalid::at("persons"));
    }
    let persons: Vec<PersonId> = fields.req("persons")?;
    let distinct: BTreeSet<&PersonId> = persons.iter().collect();
    if distinct.len() == count { Ok(persons) } else { Err(Invalid::at("persons")) }
}
