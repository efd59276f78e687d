//! The frames a relay says.

use super::text::Line;
use super::{Nonce, PROTO, Req};
use crate::Code;
use crate::key::MachineId;
use crate::realm::Head;
use crate::ulid::Ulid;
use serde::Serialize;
use std::sync::Arc;

/// A frame to a client. Envelopes and entries are canonical text already, and are not encoded again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum RelayFrame {
    /// What this connection's `hello` or `join` must sign.
    Challenge {
        /// The relay's id: the origin of its connect URL.
        relay: Arc<str>,
        /// Fresh for this connection.
        nonce: Nonce,
    },
    /// The `hello` was accepted.
    Welcome {
        /// The newest roster entry.
        head: Head,
        /// The other members online, ascending.
        online: Vec<MachineId>,
    },
    /// Entries of the roster.
    RosterEntries {
        /// The request.
        req: Req,
        /// The entries' canonical texts, ascending.
        entries: Vec<Arc<str>>,
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
        /// The entry's canonical text.
        entry: Arc<str>,
    },
    /// The envelope is stored.
    Ack {
        /// The envelope's id.
        id: Ulid,
    },
    /// A refusal.
    Nack {
        /// The envelope's id, or the request's, as the client wrote it.
        id: String,
        /// Why.
        code: Code,
        /// Fixed words.
        message: Option<&'static str>,
        /// After how many milliseconds to ask again; 0 is written as 1.
        retry_after_ms: Option<u64>,
    },
    /// An envelope for the machine, or a presence.
    Deliver {
        /// The envelope's canonical text.
        env: Arc<str>,
    },
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
        code: Code,
        /// Fixed words.
        message: Option<&'static str>,
    },
}

impl RelayFrame {
    /// A refusal without words.
    #[must_use]
    pub fn nack(id: impl Into<String>, code: Code) -> Self {
        Self::Nack { id: id.into(), code, message: None, retry_after_ms: None }
    }

    /// A refusal of the connection without words.
    #[must_use]
    pub const fn error(code: Code) -> Self {
        Self::Error { code, message: None }
    }

    /// The frame's type.
    #[must_use]
    pub const fn t(&self) -> &'static str {
        match self {
            Self::Challenge { .. } => "challenge",
            Self::Welcome { .. } => "welcome",
            Self::RosterEntries { .. } => "roster.entries",
            Self::RosterOk { .. } => "roster.ok",
            Self::Roster { .. } => "roster",
            Self::Ack { .. } => "ack",
            Self::Nack { .. } => "nack",
            Self::Deliver { .. } => "deliver",
            Self::Peer { .. } => "peer",
            Self::Ping { .. } => "ping",
            Self::Pong { .. } => "pong",
            Self::Error { .. } => "error",
        }
    }

    /// The bytes of a `roster.entries` frame around its entries, for a `req` of the longest form: a page holds
    /// entries of at most the frame limit less this, each with one byte for its comma.
    pub const ENTRIES_OVERHEAD: usize = 128;

    /// The frame's canonical text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let t = self.t();
        match self {
            Self::Challenge { relay, nonce } => Line::new(192)
                .text("nonce", &nonce.to_string())
                .text("proto", PROTO)
                .text("relay", relay)
                .text("t", t),
            Self::Welcome { head, online } => Line::new(128 + 48 * online.len())
                .raw("head", &head_text(head))
                .names("online", online)
                .text("t", t),
            Self::RosterEntries { req, entries, more } => {
                let size: usize = entries.iter().map(|entry| entry.len() + 1).sum();
                Line::new(size + Self::ENTRIES_OVERHEAD)
                    .list("entries", entries)
                    .opt_plain("more", more.then_some(true))
                    .text("req", req.as_str())
                    .text("t", t)
            }
            Self::RosterOk { req, head } => {
                Line::new(192).raw("head", &head_text(head)).text("req", req.as_str()).text("t", t)
            }
            Self::Roster { entry } => Line::new(entry.len() + 32).raw("entry", entry).text("t", t),
            Self::Ack { id } => Line::new(80).text("id", id.as_str()).text("stage", "relayed").text("t", t),
            Self::Nack { id, code, message, retry_after_ms } => Line::new(192)
                .text("code", code.as_str())
                .text("id", id)
                .opt_text("message", *message)
                .opt_plain("retryAfterMs", retry_after_ms.map(|ms| ms.max(1)))
                .text("t", t),
            Self::Deliver { env } => Line::new(env.len() + 32).raw("env", env).text("t", t),
            Self::Peer { machine, online } => {
                Line::new(112).text("machine", &machine.to_string()).plain("online", online).text("t", t)
            }
            Self::Ping { n } | Self::Pong { n } => Line::new(48).opt_plain("n", *n).text("t", t),
            Self::Error { code, message } => {
                Line::new(128).text("code", code.as_str()).opt_text("message", *message).text("t", t)
            }
        }
        .end()
    }
}

fn head_text(head: &Head) -> String {
    Line::new(80).text("hash", &head.hash.to_string()).plain("seq", head.seq).end()
}
