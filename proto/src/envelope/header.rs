//! The members of an envelope and how they must agree (`messaging/1 §5`).

use super::ends::{End, To};
use crate::b64u;
use crate::hash::RealmId;
use crate::json::{Fields, FromValue, Invalid, Value};
use crate::key::{EncKey, Sig};
use crate::realm::Anchor;
use crate::time::Wall;
use crate::ulid::Ulid;
use serde::{Deserialize, Serialize};

/// `v` of every envelope this crate reads.
pub(super) const VERSION: &str = "messaging/1";

/// What an envelope carries: its `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A message, a task request or a chat line.
    #[serde(rename = "message")]
    Message,
    /// Proof of a delivery stage.
    #[serde(rename = "receipt")]
    Receipt,
    /// A change of a task's state.
    #[serde(rename = "task.status")]
    TaskStatus,
    /// Something a task produced.
    #[serde(rename = "task.artifact")]
    TaskArtifact,
    /// The requester gives up a task.
    #[serde(rename = "task.cancel")]
    TaskCancel,
    /// Which sessions a machine has. The only type that is not sealed.
    #[serde(rename = "presence")]
    Presence,
}

impl Kind {
    /// Every type, in the order of the specification.
    pub const ALL: [Self; 6] = [
        Self::Message,
        Self::Receipt,
        Self::TaskStatus,
        Self::TaskArtifact,
        Self::TaskCancel,
        Self::Presence,
    ];

    /// The type's text on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Receipt => "receipt",
            Self::TaskStatus => "task.status",
            Self::TaskArtifact => "task.artifact",
            Self::TaskCancel => "task.cancel",
            Self::Presence => "presence",
        }
    }

    /// The type with this text, if this version has it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl FromValue for Kind {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        value.as_str().and_then(Self::parse).ok_or_else(Invalid::new)
    }
}

/// How the two persons of a sealed envelope stand to each other, said in the header (`messaging/1 §5`, "Class").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Two devices of one person.
    #[serde(rename = "self")]
    Own,
    /// Two persons.
    Contact,
    /// A person asks another person to be let through.
    Request,
}

impl Class {
    /// The class's text on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "self",
            Self::Contact => "contact",
            Self::Request => "request",
        }
    }
}

impl FromValue for Class {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        match value.as_str() {
            Some("self") => Ok(Self::Own),
            Some("contact") => Ok(Self::Contact),
            Some("request") => Ok(Self::Request),
            _ => Err(Invalid::new()),
        }
    }
}

/// What the recipient needs to derive the seal's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealParams {
    /// The ephemeral public key.
    pub epk: EncKey,
    /// The AES-GCM nonce.
    pub nonce: [u8; 12],
}

/// Every known member of an envelope but `body` and `sig`. The schema and the agreement hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Unique per sending machine.
    pub id: Ulid,
    /// `type`.
    pub kind: Kind,
    /// The sender's realm.
    pub realm: RealmId,
    /// What the sender had seen of its realm.
    pub anchor: Anchor,
    /// The signing machine and, on it, the author.
    pub from: End,
    /// Whom it is for.
    pub to: To,
    /// When it was built.
    pub ts: Wall,
    /// When it ends.
    pub exp: Wall,
    /// Present exactly when sealed.
    pub class: Option<Class>,
    /// The envelope this one answers.
    pub reply_to: Option<Ulid>,
    /// Present exactly when sealed (`enc`, `epk`, `nonce`).
    pub seal: Option<SealParams>,
}

/// An envelope's `body`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Ciphertext and tag, decoded.
    Sealed(Vec<u8>),
    /// A presence object, in the raw value.
    Presence,
}

/// One envelope's known members. The raw value they were read from is kept beside it, never rebuilt from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The signed and authenticated part.
    pub header: Header,
    /// The payload, sealed or plain.
    pub body: Body,
    /// The signature, not judged here.
    pub sig: Sig,
}

impl FromValue for Header {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        fields.literal("v", VERSION)?;
        let kind: Kind = fields.req("type")?;
        let sealed = kind != Kind::Presence;
        let header = Self {
            id: fields.req("id")?,
            kind,
            realm: fields.req("realm")?,
            anchor: fields.req("anchor")?,
            from: fields.req("from")?,
            to: fields.req("to")?,
            ts: Wall(fields.req("ts")?),
            exp: Wall(fields.req("exp")?),
            class: fields.opt("class")?,
            reply_to: fields.opt("replyTo")?,
            seal: if sealed { Some(seal_params(&fields)?) } else { None },
        };
        if sealed {
            header.agrees()?;
        } else {
            fields.literal("enc", "none")?;
            ["class", "replyTo", "epk", "nonce"].into_iter().try_for_each(|name| fields.absent(name))?;
            if header.to != To::Team {
                return Err(Invalid::at("to"));
            }
        }
        Ok(header)
    }
}

fn seal_params(fields: &Fields<'_>) -> Result<SealParams, Invalid> {
    fields.literal("enc", "seal")?;
    let nonce = fields
        .raw("nonce")
        .and_then(Value::as_str)
        .and_then(b64u::decode)
        .and_then(|bytes| <[u8; 12]>::try_from(bytes).ok())
        .ok_or_else(|| Invalid::at("nonce"))?;
    Ok(SealParams { epk: fields.req("epk")?, nonce })
}

impl Header {
    /// §5 Class: what the ends, the type and `replyTo` of a sealed envelope say of its class.
    fn agrees(&self) -> Result<(), Invalid> {
        let Some(to) = self.to.end() else { return Err(Invalid::at("to")) };
        let own = self.from.person == to.person;
        let class_holds = match self.class {
            Some(Class::Own) => own,
            Some(Class::Contact) => !own,
            Some(Class::Request) => {
                !own && self.kind == Kind::Message
                    && self.from.agent.is_none()
                    && to.agent.is_none()
                    && self.reply_to.is_none()
            }
            None => false,
        };
        if !class_holds {
            return Err(Invalid::at("class"));
        }
        // §6.2: an update names the request it belongs to in the signed header.
        if matches!(self.kind, Kind::TaskStatus | Kind::TaskArtifact) && self.reply_to.is_none() {
            return Err(Invalid::at("replyTo"));
        }
        Ok(())
    }
}

impl FromValue for Envelope {
    /// Reads an envelope: schema and agreement. I-JSON is judged where the canonical text is made.
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let header = Header::from_value(value)?;
        let fields = Fields::of(value)?;
        let body = match (header.kind, fields.raw("body")) {
            (Kind::Presence, Some(Value::Object(_))) => Body::Presence,
            (Kind::Presence, _) => return Err(Invalid::at("body")),
            (_, body) => body
                .and_then(Value::as_str)
                .and_then(b64u::decode)
                .filter(|bytes| !bytes.is_empty())
                .map(Body::Sealed)
                .ok_or_else(|| Invalid::at("body"))?,
        };
        Ok(Self { header, body, sig: fields.req("sig")? })
    }
}
