//! The few members that can be read of an envelope this version does not know (`messaging/1 §5`, `§7`).

use super::header::{Kind, VERSION};
use crate::json::{FromValue, Value};
use crate::key::MachineId;
use crate::name::PersonId;
use crate::ulid::Ulid;

/// What could be read of an envelope, each member for itself, whatever is wrong with the others.
///
/// Enough to acknowledge an envelope of a later version and to answer it, which never breaks a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loose {
    /// `v`.
    pub v: LooseVersion,
    /// `id`, when it is a ULID.
    pub id: Option<Ulid>,
    /// `type`.
    pub type_: LooseType,
    /// `from.device`, when it is a machine id.
    pub from_device: Option<MachineId>,
    /// `from.person`, when it is a person id.
    pub from_person: Option<PersonId>,
}

/// What `v` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LooseVersion {
    /// This version.
    Current,
    /// Another version.
    Other,
    /// Nothing, or no text.
    #[default]
    Missing,
}

/// What `type` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LooseType {
    /// A type of this version.
    Known(Kind),
    /// Another type.
    Unknown,
    /// Nothing, or no text.
    #[default]
    Missing,
}

impl Loose {
    /// Reads what can be read.
    #[must_use]
    pub fn of(raw: &Value) -> Self {
        let from = raw.get("from");
        let from_member = |name| from.and_then(|from| from.get(name));
        Self {
            v: match raw.get("v").and_then(Value::as_str) {
                Some(VERSION) => LooseVersion::Current,
                Some(_) => LooseVersion::Other,
                None => LooseVersion::Missing,
            },
            id: read(raw.get("id")),
            type_: match raw.get("type").and_then(Value::as_str) {
                Some(text) => Kind::parse(text).map_or(LooseType::Unknown, LooseType::Known),
                None => LooseType::Missing,
            },
            from_device: read(from_member("device")),
            from_person: read(from_member("person")),
        }
    }

    /// Whether this is an envelope of a later version: acknowledged and, where its sender is known, answered.
    #[must_use]
    pub const fn is_later(&self) -> bool {
        matches!(self.v, LooseVersion::Other) || matches!(self.type_, LooseType::Unknown)
    }
}

fn read<T: FromValue>(value: Option<&Value>) -> Option<T> {
    value.and_then(|value| T::from_value(value).ok())
}
