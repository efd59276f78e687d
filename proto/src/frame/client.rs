//! The frames a relay hears.

use super::received::{Frame, Members};
use super::{Hello, PROTO, Req};
use crate::envelope::Inspected;
use crate::hash::RealmId;
use crate::json::{Fields, Invalid, Value};
use crate::key::{MachineId, Sig};
use crate::time::Wall;
use crate::ulid::Ulid;

/// A frame from a client, as a relay hears it.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientFrame {
    /// Authenticates the connection.
    Hello(Hello),
    /// Asks for a team's roster by the proof of an invite.
    Join {
        /// The request.
        req: Req,
        /// The team.
        team: RealmId,
        /// The invite.
        invite_id: Ulid,
        /// A signature by the invite's seed over [`crate::ticket::JoinClaim`].
        proof: Sig,
        /// The last position the joiner holds; −1 for none.
        after: i64,
    },
    /// Asks for the entries past a position.
    RosterSync {
        /// The request.
        req: Req,
        /// The last position the client holds; −1 for none.
        after: i64,
    },
    /// Asks to append an entry.
    RosterAppend {
        /// The request.
        req: Req,
        /// The entry, any object.
        entry: Value,
    },
    /// Asks to route an envelope.
    Send(Box<Inspected>),
    /// Says that a delivery is stored or dropped.
    RecvAck {
        /// The envelope's sender.
        from: MachineId,
        /// The envelope's id.
        id: Ulid,
    },
    /// Says which sessions the machine has.
    Presence(Box<Inspected>),
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
}

impl Frame for ClientFrame {
    const TYPES: &'static [&'static str] =
        &["hello", "join", "roster.sync", "roster.append", "send", "recv.ack", "presence", "ping", "pong"];

    fn read(t: &'static str, mut members: Members<'_>) -> Result<Self, Invalid> {
        let fields = members.fields();
        Ok(match t {
            "hello" => {
                fields.literal("proto", PROTO)?;
                Self::Hello(Hello {
                    team: fields.req("team")?,
                    machine: fields.req("machine")?,
                    ts: Wall(fields.req("ts")?),
                    sig: fields.req("sig")?,
                })
            }
            "join" => Self::Join {
                req: fields.req("req")?,
                team: fields.req("team")?,
                invite_id: fields.req("inviteId")?,
                proof: fields.req("proof")?,
                after: if fields.raw("after").is_some() { after(&fields)? } else { -1 },
            },
            "roster.sync" => Self::RosterSync { req: fields.req("req")?, after: after(&fields)? },
            "roster.append" => {
                Self::RosterAppend { req: fields.req("req")?, entry: members.take_object("entry")? }
            }
            "send" => Self::Send(members.take_envelope(t)?),
            "recv.ack" => Self::RecvAck { from: fields.req("from")?, id: fields.req("id")? },
            "presence" => Self::Presence(members.take_envelope(t)?),
            "ping" => Self::Ping { n: fields.opt("n")? },
            "pong" => Self::Pong { n: fields.opt("n")? },
            _ => return Err(Invalid::at("t")),
        })
    }

    fn t(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Join { .. } => "join",
            Self::RosterSync { .. } => "roster.sync",
            Self::RosterAppend { .. } => "roster.append",
            Self::Send(_) => "send",
            Self::RecvAck { .. } => "recv.ack",
            Self::Presence(_) => "presence",
            Self::Ping { .. } => "ping",
            Self::Pong { .. } => "pong",
        }
    }

    fn request(&self) -> Option<&str> {
        match self {
            Self::Join { req, .. } | Self::RosterSync { req, .. } | Self::RosterAppend { req, .. } => {
                Some(req.as_str())
            }
            _ => None,
        }
    }
}

/// An integer from −1.
fn after(fields: &Fields<'_>) -> Result<i64, Invalid> {
    if let Some(Value::Number(number)) = fields.raw("after")
        && *number == -1.0
    {
        return Ok(-1);
    }
    let after: u64 = fields.req("after")?;
    i64::try_from(after).map_err(|_| Invalid::at("after"))
}
