//! What a machine knows of its realm, as the checks of envelopes and delegation chains see it
//! (`messaging/1 §5`, "Realm and anchor"; `§9`).
//!
//! A realm is the trust domain of one daemon home: who its persons and their machines are. The checks read it
//! through [`RealmView`], so they are the same whatever authority the realm has.

use crate::hash::{Hash, RealmId};
use crate::json::{Fields, FromValue, Invalid, Object, Value};
use crate::key::{EncKey, MachineId};
use crate::name::{Label, PersonId};
use serde::{Deserialize, Serialize};

/// The authority a realm has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RealmKind {
    /// A team's roster; its anchors are roster heads.
    Roster,
    /// A key directory; its anchors are signed tree heads.
    Epoch,
}

/// What a member may do in a roster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// May change who is a member.
    Admin,
    /// May speak, and leave.
    Member,
}

impl Role {
    /// The role's text on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }
}

impl FromValue for Role {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        match value.as_str() {
            Some("admin") => Ok(Self::Admin),
            Some("member") => Ok(Self::Member),
            _ => Err(Invalid::new()),
        }
    }
}

/// A roster's newest entry: its position and its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Head {
    /// The entry's `seq`, 0 for the genesis.
    pub seq: u64,
    /// The entry's hash.
    pub hash: Hash,
}

impl Head {
    /// The head as it is written on the wire, `{seq, hash}`.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.push("seq".to_owned(), Value::int(self.seq));
        object.push("hash".to_owned(), Value::text(self.hash.to_string()));
        object.into()
    }
}

impl FromValue for Head {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        Ok(Self { seq: fields.req("seq")?, hash: fields.req("hash")? })
    }
}

/// What a sender had seen of its realm when it built an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Anchor {
    /// The sender's roster head.
    Roster(Head),
    /// The signed tree head the sender had adopted.
    Epoch {
        /// How many epochs the tree had, at least 1.
        size: u64,
        /// The tree's root.
        root: Hash,
    },
}

impl Anchor {
    /// The kind of realm this anchor belongs to.
    #[must_use]
    pub const fn kind(&self) -> RealmKind {
        match self {
            Self::Roster(_) => RealmKind::Roster,
            Self::Epoch { .. } => RealmKind::Epoch,
        }
    }

    /// The roster head, when this is a roster anchor.
    #[must_use]
    pub const fn head(&self) -> Option<Head> {
        match self {
            Self::Roster(head) => Some(*head),
            Self::Epoch { .. } => None,
        }
    }

    /// The anchor as it is written in a header.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        match self {
            Self::Roster(head) => {
                object.push("kind".to_owned(), Value::text("roster"));
                object.push("seq".to_owned(), Value::int(head.seq));
                object.push("hash".to_owned(), Value::text(head.hash.to_string()));
            }
            Self::Epoch { size, root } => {
                object.push("kind".to_owned(), Value::text("epoch"));
                object.push("size".to_owned(), Value::int(*size));
                object.push("root".to_owned(), Value::text(root.to_string()));
            }
        }
        object.into()
    }
}

impl FromValue for Anchor {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        match fields.raw("kind").and_then(Value::as_str) {
            Some("roster") => Head::from_value(value).map(Self::Roster),
            Some("epoch") => {
                let size = fields.req("size")?;
                if size == 0 {
                    return Err(Invalid::at("size"));
                }
                Ok(Self::Epoch { size, root: fields.req("root")? })
            }
            _ => Err(Invalid::at("kind")),
        }
    }
}

/// Where an anchor lies relative to what this machine has verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Past this machine's head: the sender has seen more.
    Ahead,
    /// On this machine's chain, at its head or before it.
    Consistent,
    /// Not on this machine's chain: somebody was shown another one.
    Diverged {
        /// What this machine has at that place.
        mine: Hash,
    },
}

/// A current machine of a realm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device<'a> {
    /// Its id, which is its signing key.
    pub machine: MachineId,
    /// The key to seal to.
    pub enc: EncKey,
    /// Whose machine it is.
    pub person: &'a PersonId,
    /// What it may do to the roster.
    pub role: Role,
    /// The machine's name among its person's machines.
    pub label: &'a Label,
}

/// A realm as this machine has verified it. Answers from what it holds; a caller catches up first.
pub trait RealmView {
    /// The realm's id.
    fn realm(&self) -> RealmId;

    /// The realm's kind.
    fn kind(&self) -> RealmKind;

    /// The current machine with this id; nothing for a removed or unknown one.
    fn device(&self, machine: &MachineId) -> Option<Device<'_>>;

    /// What an envelope sent now is anchored to.
    fn anchor(&self) -> Anchor;

    /// Where `anchor` lies. One of the other realm kind is [`Relation::Ahead`]: nothing held here speaks for or
    /// against it, and the envelope check refuses it before this is asked.
    fn relate(&self, anchor: &Anchor) -> Relation;
}
