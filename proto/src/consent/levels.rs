//! What a grant is about, and the levels it sets.

use crate::json::{Fields, FromValue, Invalid, Object, Value};
use crate::name::PersonId;
use crate::time::Wall;
use crate::ulid::Ulid;
use serde::{Deserialize, Serialize};

/// Declares a level: its values and their texts, both ways.
macro_rules! level {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vdoc])* $value,)* }

        impl $name {
            /// The level's text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$value => $text,)* }
            }
        }

        impl FromValue for $name {
            fn from_value(value: &Value) -> Result<Self, Invalid> {
                match value.as_str() {
                    $(Some($text) => Ok(Self::$value),)*
                    _ => Err(Invalid::new()),
                }
            }
        }
    };
}

level! {
    /// Lines from the subject.
    Chat {
        /// They are delivered.
        Open = "open",
        /// They are delivered without a notification.
        Muted = "muted",
        /// They are refused, and so are the subject's agents, asks and channel changes.
        Blocked = "blocked",
    }
}

level! {
    /// Lines from the subject's agents.
    AgentMail {
        /// They are delivered.
        Open = "open",
        /// They are refused.
        Blocked = "blocked",
    }
}

level! {
    /// Mail and tasks from the subject or their agents to the person's agents.
    Ask {
        /// They are delivered.
        Open = "open",
        /// They are held for the person.
        Request = "request",
        /// They are refused.
        No = "no",
    }
}

/// Whom a grant is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    /// One person.
    Person(PersonId),
    /// The members of one channel, while they are members.
    Channel(Ulid),
}

impl FromValue for Subject {
    /// Exactly one of `person` and `channel`; other members are kept and ignored.
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        match (fields.opt("person")?, fields.opt("channel")?) {
            (Some(person), None) => Ok(Self::Person(person)),
            (None, Some(channel)) => Ok(Self::Channel(channel)),
            _ => Err(Invalid::new()),
        }
    }
}

impl Subject {
    /// The subject as a grant writes it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        match self {
            Self::Person(person) => object.set("person", Value::text(person.as_str())),
            Self::Channel(channel) => object.set("channel", Value::text(channel.as_str())),
        }
        Value::Object(object)
    }
}

/// The levels a grant sets. A grant that sets none is a clear: the relation's defaults apply again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Levels {
    /// Lines by the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<Chat>,
    /// Lines by the subject's agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_mail: Option<AgentMail>,
    /// Mail and tasks to the person's agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
    /// Until when asks run with the agent's own permissions; only with [`Ask::Open`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_until: Option<Wall>,
    /// Whether the person can be found by email; only in the person's grant about themself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discoverable: Option<bool>,
}

impl Levels {
    /// Whether no level is set.
    #[must_use]
    pub const fn is_clear(&self) -> bool {
        self.chat.is_none()
            && self.agent_mail.is_none()
            && self.ask.is_none()
            && self.trusted_until.is_none()
            && self.discoverable.is_none()
    }

    /// The restricting levels: those a re-sign keeps when the signer was removed (`messaging/1 §6.9`, "Signers").
    #[must_use]
    pub fn restricting(&self) -> Self {
        Self {
            chat: self.chat.filter(|chat| *chat != Chat::Open),
            agent_mail: self.agent_mail.filter(|mail| *mail == AgentMail::Blocked),
            ask: self.ask.filter(|ask| *ask == Ask::No),
            trusted_until: None,
            discoverable: self.discoverable.filter(|found| !found),
        }
    }

    /// The widening levels: those that lapse then, until the person confirms them again.
    #[must_use]
    pub fn widening(&self) -> Self {
        Self {
            chat: self.chat.filter(|chat| *chat == Chat::Open),
            agent_mail: self.agent_mail.filter(|mail| *mail == AgentMail::Open),
            ask: self.ask.filter(|ask| *ask != Ask::No),
            trusted_until: self.trusted_until,
            discoverable: self.discoverable.filter(|found| *found),
        }
    }

    /// Reads the levels of a grant.
    pub(super) fn read(fields: Fields<'_>) -> Result<Self, Invalid> {
        Ok(Self {
            chat: fields.opt("chat")?,
            agent_mail: fields.opt("agentMail")?,
            ask: fields.opt("ask")?,
            trusted_until: fields.opt("trustedUntil")?.map(Wall),
            discoverable: fields.opt("discoverable")?,
        })
    }

    /// Writes the levels into a grant.
    pub(super) fn write(&self, object: &mut Object) {
        if let Some(chat) = self.chat {
            object.set("chat", Value::text(chat.as_str()));
        }
        if let Some(mail) = self.agent_mail {
            object.set("agentMail", Value::text(mail.as_str()));
        }
        if let Some(ask) = self.ask {
            object.set("ask", Value::text(ask.as_str()));
        }
        if let Some(until) = self.trusted_until {
            object.set("trustedUntil", Value::int(until.0));
        }
        if let Some(discoverable) = self.discoverable {
            object.set("discoverable", Value::Bool(discoverable));
        }
    }
}
