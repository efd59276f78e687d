//! The frames a client says.

use super::text::Line;
use super::{Hello, PROTO, Req};
use crate::hash::RealmId;
use crate::key::{MachineId, Sig};
use crate::ulid::Ulid;
use serde::Serialize;
use std::sync::Arc;

/// A frame to a relay. Envelopes and entries are canonical text already, and are not encoded again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ClientOutbound {
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
        /// The last position held; −1 for none.
        after: i64,
    },
    /// Asks for the entries past a position.
    RosterSync {
        /// The request.
        req: Req,
        /// The last position held; −1 for none.
        after: i64,
    },
    /// Asks to append an entry.
    RosterAppend {
        /// The request.
        req: Req,
        /// The entry's canonical text.
        entry: Arc<str>,
    },
    /// Asks to route an envelope.
    Send {
        /// The envelope's canonical text.
        env: Arc<str>,
    },
    /// Says that a delivery is stored or dropped.
    RecvAck {
        /// The envelope's sender.
        from: MachineId,
        /// The envelope's id.
        id: Ulid,
    },
    /// Says which sessions this machine has.
    Presence {
        /// The envelope's canonical text.
        env: Arc<str>,
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
}

impl ClientOutbound {
    /// The frame's type.
    #[must_use]
    pub const fn t(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Join { .. } => "join",
            Self::RosterSync { .. } => "roster.sync",
            Self::RosterAppend { .. } => "roster.append",
            Self::Send { .. } => "send",
            Self::RecvAck { .. } => "recv.ack",
            Self::Presence { .. } => "presence",
            Self::Ping { .. } => "ping",
            Self::Pong { .. } => "pong",
        }
    }

    /// The frame's canonical text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let t = self.t();
        match self {
            Self::Hello(hello) => Line::new(320)
                .text("machine", &hello.machine.to_string())
                .text("proto", PROTO)
                .text("sig", &hello.sig.to_string())
                .text("t", t)
                .text("team", &hello.team.to_string())
                .plain("ts", hello.ts.0),
            Self::Join { req, team, invite_id, proof, after } => Line::new(320)
                .plain("after", after)
                .text("inviteId", invite_id.as_str())
                .text("proof", &proof.to_string())
                .text("req", req.as_str())
                .text("t", t)
                .text("team", &team.to_string()),
            Self::RosterSync { req, after } => {
                Line::new(96).plain("after", after).text("req", req.as_str()).text("t", t)
            }
            Self::RosterAppend { req, entry } => {
                Line::new(entry.len() + 128).raw("entry", entry).text("req", req.as_str()).text("t", t)
            }
            Self::Send { env } | Self::Presence { env } => {
                Line::new(env.len() + 32).raw("env", env).text("t", t)
            }
            // Under 128 bytes, so that a delivery pays for it (`§7`, "Rate limits").
            Self::RecvAck { from, id } => {
                Line::new(128).text("from", &from.to_string()).text("id", id.as_str()).text("t", t)
            }
            Self::Ping { n } | Self::Pong { n } => Line::new(48).opt_plain("n", *n).text("t", t),
        }
        .end()
    }
}
