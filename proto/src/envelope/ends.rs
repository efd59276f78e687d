//! Who wrote an envelope and whom it is for (`messaging/1 §5`, "Ends").

use crate::json::{Fields, FromValue, Invalid, Object, Value};
use crate::key::MachineId;
use crate::name::{PersonId, SessionName};

/// A person's device, and the agent session on it, if one is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// The person.
    pub person: PersonId,
    /// One of the person's machines: the signer, or the one the envelope is sealed to.
    pub device: MachineId,
    /// The session that wrote it, or is addressed; none when the person or the device itself is.
    pub agent: Option<SessionName>,
}

impl End {
    /// The end as it is written in a header.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.push("person".to_owned(), Value::text(self.person.as_str()));
        object.push("device".to_owned(), Value::text(self.device.to_string()));
        if let Some(agent) = &self.agent {
            object.push("agent".to_owned(), Value::text(agent.as_str()));
        }
        object.into()
    }
}

impl FromValue for End {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        Ok(Self { person: fields.req("person")?, device: fields.req("device")?, agent: fields.opt("agent")? })
    }
}

/// Whom an envelope is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// One device.
    Device(End),
    /// Every machine of the team: presence only.
    Team,
}

impl To {
    /// The addressed device, if it is one.
    #[must_use]
    pub const fn end(&self) -> Option<&End> {
        match self {
            Self::Device(end) => Some(end),
            Self::Team => None,
        }
    }

    /// The end as it is written in a header.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Device(end) => end.to_value(),
            Self::Team => Value::Object(std::iter::once(("team".to_owned(), Value::Bool(true))).collect()),
        }
    }
}

impl FromValue for To {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        match fields.raw("team") {
            // A device end says nothing of a team, not even that there is none.
            None => End::from_value(value).map(Self::Device),
            Some(Value::Bool(true)) => {
                ["person", "device", "agent"].into_iter().try_for_each(|name| fields.absent(name))?;
                Ok(Self::Team)
            }
            Some(_) => Err(Invalid::at("team")),
        }
    }
}
