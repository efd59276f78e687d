//! What the daemon hears and says.

use messaging_proto::frame::{Received, RelayInbound};
use messaging_proto::identity::IdentityFile;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use serde::{Deserialize, Serialize};

/// One attempt to reach the relay, and the connection it becomes. Chosen by the machine, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LinkId(pub u64);

/// One connection on a Unix socket. Unique across both sockets, never reused within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IpcId(pub u64);

/// One write of a file. Chosen by the machine, never reused within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SaveId(pub u64);

/// One call to a session's host. Chosen by the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WakeId(pub u64);

/// Which socket a connection came in on (`messaging/1 §8.2`, "Two sockets").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tier {
    /// `run/agent.sock`.
    Agent,
    /// `run/admin.sock`.
    Admin,
}

/// What happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// The first event of a machine: no link and no local connection is open.
    Start,
    /// The relay accepted the WebSocket of this link.
    LinkOpened {
        /// The link.
        link: LinkId,
    },
    /// A text message arrived on this link, parsed and its signature checked.
    LinkFrame {
        /// The link.
        link: LinkId,
        /// The message.
        frame: Box<Received<RelayInbound>>,
    },
    /// The link could not be made, or ended. Nothing more comes from it.
    LinkClosed {
        /// The link.
        link: LinkId,
        /// Why.
        why: LinkEnd,
    },
    /// A client connected.
    IpcOpened {
        /// The connection.
        conn: IpcId,
        /// Its socket.
        tier: Tier,
    },
    /// A client sent a line, without its LF.
    IpcLine {
        /// The connection.
        conn: IpcId,
        /// The line's bytes.
        line: Vec<u8>,
    },
    /// A client's line was over `ipcRequestBytes`.
    IpcTooLong {
        /// The connection.
        conn: IpcId,
    },
    /// A client's connection ended. Nothing more comes from it.
    IpcClosed {
        /// The connection.
        conn: IpcId,
    },
    /// The file of an earlier [`Effect::Save`] is durable, or could not be written.
    Saved {
        /// Which write. One of a machine that was dropped since is not this machine's, and ignored.
        save: SaveId,
        /// Whether it is on disk.
        ok: bool,
    },
    /// The copy of an earlier [`Effect::Snapshot`] is made, or could not be.
    Snapshot {
        /// Which one.
        copy: SaveId,
        /// Where it is.
        folder: String,
        /// What is in it; nothing when it failed.
        files: Option<Vec<CopiedFile>>,
    },
    /// The call of an earlier [`Effect::Wake`] ended.
    WakeEnded {
        /// Which one.
        wake: WakeId,
        /// How.
        end: WakeEnd,
    },
    /// The deadline passed.
    Timer,
    /// The process was asked to stop (a signal).
    Stop,
}

/// Why a link ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkEnd {
    /// No connection was made: name resolution, TCP, TLS or the upgrade failed. Fixed words.
    Unreachable(String),
    /// The relay closed with this code.
    Closed(u16),
    /// The connection was lost without a close.
    Lost,
}

/// A file the daemon keeps beside its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileKind {
    /// `identity.json`.
    Identity,
    /// `pairing.json`.
    Pairing,
    /// `config.json`.
    Config,
}

/// What the world shall do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Effect {
    /// Connect to the relay at this URL with sub-protocol `messaging.relay.v1`.
    Dial {
        /// The link's id.
        link: LinkId,
        /// The connect URL, already allowed.
        url: String,
    },
    /// Send a text message on a link. Ignored when the link is gone.
    LinkSend {
        /// The link.
        link: LinkId,
        /// The frame's text.
        text: String,
    },
    /// Close a link, after everything sent to it.
    Hangup {
        /// The link.
        link: LinkId,
        /// The WebSocket close code.
        code: u16,
    },
    /// Write one line to a client; the adapter adds the LF.
    IpcSend {
        /// The connection.
        conn: IpcId,
        /// The line.
        line: String,
    },
    /// Close a client's connection after everything sent to it.
    IpcClose {
        /// The connection.
        conn: IpcId,
    },
    /// Write a file atomically, mode 0600, synced with its folder, then answer [`Event::Saved`]. One file's writes
    /// are done in order.
    Save {
        /// The write's id.
        save: SaveId,
        /// The file.
        file: File,
    },
    /// Copy the home as it is at one moment from now, beside what goes on, and answer [`Event::Snapshot`].
    Snapshot {
        /// The copy's id.
        copy: SaveId,
        /// When it was asked for, for its manifest.
        at: Wall,
    },
    /// Delete the copy of the home, if there is one.
    DropSnapshot,
    /// Ask a session's host to load its client, then answer [`Event::WakeEnded`].
    Wake {
        /// The call's id.
        wake: WakeId,
        /// The host.
        host: HostCall,
        /// The items.
        ids: Vec<Ulid>,
    },
    /// Log an event.
    Log(Log),
    /// Everything is said: close the sockets and the store, and exit 0.
    Stopped,
}

/// A file's new content; nothing deletes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum File {
    /// `identity.json`: this machine's private keys.
    Identity(Option<IdentityFile>),
    /// `pairing.json`: keys that are not adopted yet.
    Pairing(Option<IdentityFile>),
    /// `config.json`: its whole text.
    Config(String),
}

/// A file of a copy of the home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

/// Where a session's client can be woken (`messaging/1 §8.6`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostCall {
    /// The folder to load the client for.
    pub location: String,
    /// The host's own session.
    pub session_id: String,
    /// The host's process.
    pub pid: u64,
}

/// How a call to a host ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WakeEnd {
    /// It answered, whatever it said.
    Answered,
    /// It is not the host the session named, or is not to be called.
    Refused,
    /// No connection, no answer in time, or a failure of its own: it may be asked again.
    Again,
}

impl WakeEnd {
    /// A word for the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Again => "again",
        }
    }
}

/// A log event. Nothing in it comes from a peer's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Log {
    /// How loud.
    pub level: Level,
    /// The event's name, such as `link.connected`.
    pub event: &'static str,
    /// Fixed names with codes, ids or numbers.
    pub fields: Vec<(&'static str, String)>,
}

/// How loud a log event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Level {
    /// Something a person must act on.
    Error,
    /// Something unexpected that was handled.
    Warn,
    /// What happens in normal service.
    Info,
    /// Detail.
    Debug,
}
