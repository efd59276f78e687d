//! What the relay hears and says.

use messaging_proto::Code;
use messaging_proto::frame::{ClientFrame, Received, RelayFrame};
use messaging_proto::hash::RealmId;
use messaging_proto::key::MachineId;
use serde::{Deserialize, Serialize};

/// One WebSocket connection. Never reused within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConnId(pub u64);

/// What happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// The first event of a machine: no connection is open.
    Start,
    /// A client finished its WebSocket upgrade. The adapter applied the pre-auth caps.
    Opened {
        /// The connection.
        conn: ConnId,
        /// The client's address, from the socket or a trusted proxy: for per-address limits only.
        address: String,
    },
    /// A connection that an earlier machine of this process authenticated and that outlived it: the store failed,
    /// the machine was dropped, this one is built over what is durable (`§7`, "Store failures": no socket is
    /// dropped for it). Comes between [`Event::Start`] and anything else of the connection, at most once per
    /// machine id. It gets no `welcome` and no `peer`, but the newest roster entry, whose commit may be what
    /// failed and is there; the link begins afresh, so that its queue is delivered from the start. A machine that is no member any more is closed as at `hello`.
    Resumed {
        /// The connection.
        conn: ConnId,
        /// The client's address, as in [`Event::Opened`].
        address: String,
        /// The team of its `hello`.
        team: RealmId,
        /// The machine of its `hello`.
        machine: MachineId,
    },
    /// A text message arrived, within the size limit in force.
    Frame {
        /// The connection.
        conn: ConnId,
        /// The message as received, parsed and its signature checked.
        frame: Box<Received<ClientFrame>>,
    },
    /// A message that is never parsed.
    Unreadable {
        /// The connection.
        conn: ConnId,
        /// Why.
        why: Unreadable,
    },
    /// The client gave a sign of life that is no frame: a WebSocket ping or pong (contract wire-core §7.1, "Liveness").
    /// At most once a second.
    Alive {
        /// The connection.
        conn: ConnId,
    },
    /// Everything sent to the connection before the latest [`Effect::Mark`] left for its socket (the adapter's
    /// own buffer holds none of it).
    Drained {
        /// The connection.
        conn: ConnId,
    },
    /// The connection ended, by either side. Nothing more comes from it. Also follows every
    /// [`Effect::Close`], within the adapter's own close timeout.
    Closed {
        /// The connection.
        conn: ConnId,
    },
    /// The store takes no writes, or takes them again (`§7`, "Store failures"). While it takes none a machine writes
    /// nothing: what would write is answered with `internal`, and everything that only reads goes on.
    Store {
        /// Whether writes fail.
        failing: bool,
    },
    /// The deadline passed.
    Timer,
    /// The process was asked to stop.
    Stop,
}

/// Why a message was not parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unreadable {
    /// Over the size limit in force: close 1009.
    TooLarge,
    /// Not a text message: close 4002.
    Binary,
}

/// What the world shall do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Effect {
    /// Send a frame.
    Send {
        /// The connection.
        conn: ConnId,
        /// The frame.
        frame: RelayFrame,
    },
    /// The connection said a valid `hello`: it leaves the pre-auth caps, and its frame limit is `frameBytes`.
    Authenticated {
        /// The connection.
        conn: ConnId,
        /// Its team, for [`Event::Resumed`].
        team: RealmId,
        /// Its machine, likewise.
        machine: MachineId,
    },
    /// Report [`Event::Drained`] once everything sent to the connection so far has left for its socket. Never
    /// repeated before that report. So the relay paces backlogs and presence snapshots by what a socket takes,
    /// and a large backlog never meets the buffer limit of one socket.
    Mark {
        /// The connection.
        conn: ConnId,
    },
    /// Close the connection, after everything sent to it. The adapter still reports `Closed`.
    Close {
        /// The connection.
        conn: ConnId,
        /// The WebSocket close code (`messaging/1 §7`, "Close codes").
        code: u16,
    },
    /// Count something (`messaging/1 §7`, "Metrics").
    Count(Count),
    /// Log an event by its name.
    Log(Log),
    /// Everything is said after [`Event::Stop`]: close the listener and exit 0.
    Stopped,
}

/// Something the metrics count. Labels are closed vocabularies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Count {
    /// A frame came in; its type, or `other`.
    FrameIn(&'static str),
    /// A refusal was sent.
    Nack(Code),
    /// A `hello` was refused.
    AuthFailure(Code),
    /// A frame was over a budget.
    RateLimited,
    /// A `send` met a full queue.
    QueueFull,
    /// A `hello` met the connection cap.
    RefusedFull,
    /// Rows purged at expiry, by table (`queue`, `seen`, `presence`).
    Purged(&'static str, u64),
}

/// A log event. Names are part of the operator's interface; nothing in them comes from a peer's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Log {
    /// The whole queue is at its cap (`queue.full`).
    QueueFull,
    /// A team was founded (`team.created`).
    TeamCreated,
    /// Rows of the store did not read (`store.damaged`).
    Damaged {
        /// In which table.
        table: &'static str,
        /// How many.
        rows: u64,
        /// How many envelopes that were taken are lost with them.
        lost: u64,
    },
}
