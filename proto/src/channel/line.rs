//! The lines of a chat, as a machine files them (contract delegation-consent §3.4).

use super::apply::Arrival;
use super::chats::Channel;
use super::notice;
use crate::a2a::Part;
use crate::address::RoomRef;
use crate::envelope::End;
use crate::key::MachineId;
use crate::limits::CHAT_CHARS;
use crate::name::{PersonId, SessionName};
use crate::payload::CodeText;
use crate::ulid::Ulid;
use crate::units::cut_utf16;
use serde::{Deserialize, Serialize};

/// One line of one chat. Its number and time are its machine's to give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Its key: `messageId`.
    pub id: Ulid,
    /// The chat.
    pub room: RoomRef,
    /// Whose line it is.
    pub person: PersonId,
    /// The machine that sent it.
    pub device: MachineId,
    /// The session that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<SessionName>,
    /// What it says, at most `chatChars` UTF-16 units.
    pub text: String,
    /// The first line of its thread, held or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Ulid>,
    /// Whether it is this machine's person's own.
    pub out: bool,
    /// Whether this machine wrote it about a change. Never sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notice: bool,
}

impl Line {
    /// A direct line in the chat with the person `with`: its sender where it arrived, its addressee where it was
    /// written. `own` is this machine's person.
    #[must_use]
    pub fn direct(own: &PersonId, with: &PersonId, line: &Arrival<'_>) -> Self {
        // §6.8 a line of an own agent to its person is for the person to read.
        let to_read = with == own && line.from.agent.is_some();
        let out = line.from.person == *own && !to_read;
        Self::of(line, RoomRef::Dm(with.clone()), out)
    }

    /// A post in a channel.
    #[must_use]
    pub fn post(own: &PersonId, channel: &Channel, post: &Arrival<'_>) -> Self {
        Self::of(post, channel.room(), post.from.person == *own)
    }

    /// The notice of a change that was applied.
    pub(super) fn change(own: &PersonId, channel: &Channel, change: &Arrival<'_>, text: String) -> Self {
        Self { text, thread: None, notice: true, ..Self::post(own, channel, change) }
    }

    /// The notice that `person` did not get a change: every copy of it was refused with `code`. `from` is the own
    /// person on this machine, who sent the change, and `id` is fresh.
    #[must_use]
    pub fn refused(id: Ulid, from: &End, channel: &Channel, person: &PersonId, code: &CodeText) -> Self {
        Self {
            id,
            room: channel.room(),
            person: from.person.clone(),
            device: from.device,
            agent: None,
            text: notice::refused(&channel.local, person, code),
            thread: None,
            out: true,
            notice: true,
        }
    }

    /// Whether the line with this number is unread under the cursor `read_up_to` (`messaging/1 §6.8`, "Order and
    /// read state"): another person's line or change, or an own agent's line to its person.
    #[must_use]
    pub const fn is_unread(&self, seq: u64, read_up_to: u64) -> bool {
        !self.out && seq > read_up_to
    }

    fn of(line: &Arrival<'_>, room: RoomRef, out: bool) -> Self {
        Self {
            id: line.message,
            room,
            person: line.from.person.clone(),
            device: line.from.device,
            agent: line.from.agent.clone(),
            text: line_text(line.parts),
            thread: line.context.filter(|first| *first != line.message),
            out,
            notice: false,
        }
    }
}

/// The text parts in their order, a line break between two, cut to `chatChars` units. Never splits a pair.
#[must_use]
pub fn line_text(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts.iter().filter_map(Part::text).collect();
    cut_utf16(&texts.join("\n"), CHAT_CHARS).to_owned()
}

/// A chat's cursor after it was marked read up to `up_to`: it only rises, and not past `newest`, this machine's
/// newest change number.
#[must_use]
pub fn mark_read(read_up_to: u64, up_to: u64, newest: u64) -> u64 {
    read_up_to.max(up_to.min(newest))
}
