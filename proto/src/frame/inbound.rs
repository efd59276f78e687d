//! The frames a client hears.

use super::received::{Frame, Members};
use super::{Nonce, Req};

use crate::envelope::Inspected;
use crate::json::{Invalid, Value};
use crate::key::MachineId;
use crate::limits;
use crate::payload::CodeText;
use crate::realm::Head;
use crate::ulid::Ulid;

/// A frame from a relay, as a client hears it. Nothing in it is trusted but what is signed.
#[derive(Clone, Debug, PartialEq)]
pub enum RelayInbound {
    /// What this connection's `hello` or `join` must sign.
    Challenge {
        /// The relay's protocol; a client closes when it is not [`super::PROTO`].
        proto: String,
        /// The relay's id; a client closes when it is not the origin of the URL it dialled.
        relay: String,
        /// Fresh for this connection.
        nonce: Nonce,
    },
    /// The `hello` was accepted.
    Welcome {
        /// The relay's newest roster entry.
        head: Head,
        /// The other members online.
        online: Vec<MachineId>,
    },
    /// Entries of the roster.
    RosterEntries {
        /// The request.
        req: Req,
        /// At most a page of objects.
        entries: Vec<Value>,
        /// Whether there are more.
        more: bool,
    },
    /// The append was accepted.
    RosterOk {
        /// The request.
        req: Req,
        /// The appended entry.
        head: Head,
    },
    /// An entry somebody else appended.
    Roster {
        /// The entry, any object.
        entry: Value,
    },
    /// The envelope is stored at the relay.
    Ack {
        /// The envelope's id.
        id: Ulid,
    },
    /// A refusal.
    Nack {
        /// The envelope's id, or the request's.
        id: String,
        /// Why.
        code: CodeText,
        /// After how many milliseconds to ask again, at least 1.
        retry_after_ms: Option<u64>,
    },
    /// An envelope for this machine, or a presence. Any object: one of a later version is answered, too.
    Deliver(Box<Inspected>),
    /// A member came or went.
    Peer {
        /// The member's machine.
        machine: MachineId,
        /// Whether it is there.
        online: bool,
    },
    /// Asks for a sign of life.
    Ping {
        /// What the pong echoes.
        n: Option<u64>,
    },
    /// Gives one.
    Pong {
        /// The ping's `n`.
        n: Option<u64>,
    },
    /// A refusal of the connection or of a frame without an id.
    Error {
        /// Why.
        code: CodeText,
    },
}

impl Frame for RelayInbound {
    const TYPES: &'static [&'static str] = &[
        "challenge",
        "welcome",
        "roster.entries",
        "roster.ok",
        "roster",
        "ack",
        "nack",
        "deliver",
        "peer",
        "ping",
        "pong",
        "error",
    ];

    fn read(t: &'static str, mut members: Members<'_>) -> Result<Self, Invalid> {
        let fields = members.fields();
        Ok(match t {
            "challenge" => Self::Challenge {
                proto: fields.req("proto")?,
                relay: fields.req("relay")?,
                nonce: fields.req("nonce")?,
            },
            "welcome" => Self::Welcome { head: fields.req("head")?, online: fields.req("online")? },
            "roster.entries" => {
                let req = fields.req("req")?;
                let more = match fields.raw("more") {
                    None => false,
                    Some(Value::Bool(true)) => true,
                    Some(_) => return Err(Invalid::at("more")),
                };
                let entries = members.take_objects("entries", limits::ROSTER_PAGE_ENTRIES)?;
                Self::RosterEntries { req, entries, more }
            }
            "roster.ok" => Self::RosterOk { req: fields.req("req")?, head: fields.req("head")? },
            "roster" => Self::Roster { entry: members.take_object("entry")? },
            "ack" => {
                fields.literal("stage", "relayed")?;
                Self::Ack { id: fields.req("id")? }
            }
            "nack" => {
                let retry_after_ms = fields.opt("retryAfterMs")?;
                if retry_after_ms == Some(0) {
                    return Err(Invalid::at("retryAfterMs"));
                }
                fields.opt::<String>("message")?;
                Self::Nack { id: fields.req("id")?, code: fields.req("code")?, retry_after_ms }
            }
            "deliver" => Self::Deliver(members.take_envelope(t)?),
            "peer" => Self::Peer { machine: fields.req("machine")?, online: fields.req("online")? },
            "ping" => Self::Ping { n: fields.opt("n")? },
            "pong" => Self::Pong { n: fields.opt("n")? },
            "error" => {
                fields.opt::<String>("message")?;
                Self::Error { code: fields.req("code")? }
            }
            _ => return Err(Invalid::at("t")),
        })
    }

    fn t(&self) -> &'static str {
        match self {
            Self::Challenge { .. } => "challenge",
            Self::Welcome { .. } => "welcome",
            Self::RosterEntries { .. } => "roster.entries",
            Self::RosterOk { .. } => "roster.ok",
            Self::Roster { .. } => "roster",
            Self::Ack { .. } => "ack",
            Self::Nack { .. } => "nack",
            Self::Deliver(_) => "deliver",
            Self::Peer { .. } => "peer",
            Self::Ping { .. } => "ping",
            Self::Pong { .. } => "pong",
            Self::Error { .. } => "error",
        }
    }
}
