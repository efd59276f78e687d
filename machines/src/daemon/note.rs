//! What happens inside the daemon, as the roles tell each other.

use super::author::{Draft, Job, Unwritten};
use super::io::{IpcId, SaveId};
use messaging_proto::Code;
use messaging_proto::address::RoomRef;
use messaging_proto::envelope::Inspected;
use messaging_proto::frame::{Nonce, RelayInbound};
use messaging_proto::json::Value;
use messaging_proto::key::MachineId;
use messaging_proto::name::{PersonId, SessionName};
use messaging_proto::realm::Head;
use messaging_proto::relay_url::RelayUrl;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use std::sync::Arc;

/// What happened inside the daemon. Every role hears every note, in order.
#[derive(Clone, Debug)]
pub enum Note {
    /// The machine starts: load what the store holds. `facts` hold the files; the realm is loaded by
    /// `roster_sync`, the first role to hear this.
    Start,
    /// A team was created, joined or claimed: realm, keys and config are in `facts`, all of it durable.
    Adopted,
    /// The roster has new entries, from this `seq` to its head. Not said for what [`Note::Start`] loads.
    RosterChanged {
        /// The first new entry's `seq`.
        from: u64,
    },
    /// The roster shows this machine removed: it stops (`§12`). Said once, and at every start after it.
    Removed,

    /// The relay accepted the `hello`; `head` is its newest roster entry.
    Welcomed {
        /// The relay's head.
        head: Head,
    },
    /// The roster is up to the welcomed head, or its shortfall is reported.
    CaughtUp,
    /// Welcomed and caught up: send what waits.
    LinkUp,
    /// The link that was up is gone.
    LinkDown,
    /// Another member's machine connected to or left the relay. Not said for those in the welcome: see
    /// `facts.link.online()` at [`Note::LinkUp`].
    Peer {
        /// The machine.
        machine: MachineId,
        /// Whether it is connected.
        online: bool,
    },
    /// A frame on the welcomed link that no other note stands for (answers to roster requests, broadcasts).
    Frame(Arc<RelayInbound>),
    /// A delivery came in, before the head check.
    Arrived(Arc<Inspected>),
    /// A delivery to verify and apply; the roster was first brought up to its anchor, as far as the relay let
    /// us. An anchor that is still ahead means: withhold the ack.
    Deliver(Arc<Inspected>),
    /// An envelope of a current member, signature checked, whose anchor is not on this chain: keep it, raise
    /// the alarm (`§5`, "Roster head check").
    Diverged(Arc<Inspected>),
    /// The relay took an envelope.
    Relayed(Ulid),
    /// The relay refused an envelope.
    Nacked {
        /// The envelope.
        id: Ulid,
        /// Why; nothing for a code this version does not know.
        code: Option<Code>,
        /// When to try again, in milliseconds.
        retry_after_ms: Option<u64>,
    },

    /// Ask the relay for newer roster entries; [`Note::Synced`] follows.
    SyncWanted,
    /// A `roster.sync` ended, with or without new entries.
    Synced,
    /// Write a roster entry; [`Note::Written`] follows.
    Write {
        /// Whose.
        job: Job,
        /// What it says.
        draft: Arc<Draft>,
    },
    /// The relay accepted an entry this machine wrote: apply it.
    Accepted(Arc<Value>),
    /// The outcome of a [`Note::Write`].
    Written {
        /// Whose.
        job: Job,
        /// The entry's `seq`, or why there is none.
        result: Result<u64, Unwritten>,
    },

    /// Connect to this relay for the team role, before there is a team.
    Errand(RelayUrl),
    /// The errand's connection is open and challenged; `facts.link.errand()` is it.
    ErrandOpen {
        /// The relay's id, checked.
        relay: String,
        /// The challenge.
        nonce: Nonce,
    },
    /// A frame on the errand's connection.
    ErrandFrame(Arc<RelayInbound>),
    /// The errand's connection could not be made, or ended. It is made again until [`Note::ErrandDone`].
    ErrandClosed,
    /// The errand goes on with a fresh connection, made at once.
    ErrandAgain,
    /// No errand any more.
    ErrandDone,

    /// A file of [`super::ctx::Ctx::save`] is durable, or could not be written.
    Saved {
        /// Which save.
        save: SaveId,
        /// Whether it is on disk.
        ok: bool,
    },
    /// The encryption key that mail is sealed to changed.
    KeyChanged,
    /// `facts.keys.alarm()` changed.
    AlarmChanged,
    /// A client connected.
    ConnOpened(IpcId),
    /// A client's connection ended; the session keys it held are no longer held by it.
    ConnClosed {
        /// The connection.
        conn: IpcId,
        /// The session keys it had registered.
        keys: Vec<String>,
    },
    /// An envelope was queued: deliver it here, or send it.
    Outgoing,
    /// Sessions of this machine came, went or changed.
    SessionsChanged,
    /// A person's entries of the directory changed.
    ContactsChanged(PersonId),
    /// An item was stored whose session's client should be woken (`§8.6`).
    WakeWanted {
        /// The session key.
        key: String,
        /// The item.
        item: Ulid,
    },
    /// A line was filed in a chat (`§6.8`): arrived, written here, or a notice of this machine.
    LineFiled(Arc<FiledLine>),
    /// A channel ended here, by its local name: this person left it or was put out of it.
    ChannelEnded(RoomRef),
    /// A line of another person or of an own agent was deleted: by retention, a cap, or with its channel.
    LineGone(Ulid),
    /// A request is held for the person (`§6.9`, "Holds").
    RequestHeld(Ulid),
    /// The host woke from sleep (`daemon.woke`).
    Woke,
    /// The daemon was asked to stop.
    StopWanted,
    /// The daemon stops: say what must still be said. The link goes after this note.
    Stopping,
}

/// A line as it was filed. Its text is in the transcript alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiledLine {
    /// Its `messageId`.
    pub id: Ulid,
    /// Its number on this machine.
    pub seq: u64,
    /// Its chat, a channel by its local name.
    pub conversation: RoomRef,
    /// Whose line it is; of a notice, whose change.
    pub person: PersonId,
    /// The session that wrote it.
    pub agent: Option<SessionName>,
    /// Whether it is the person's own. An own agent's line to its person is not.
    pub out: bool,
    /// Whether this machine wrote it about a channel's change.
    pub notice: bool,
    /// Whether the person muted its sender.
    pub silent: bool,
    /// When it was filed.
    pub at: Wall,
}
