//! What a machine holds of its chats, and what its realm says of persons.

use crate::address::RoomRef;
use crate::key::MachineId;
use crate::limits::{CLOCK_SKEW_MS, TTL_MS};
use crate::name::{ChannelName, PersonId};
use crate::payload::{ChannelConv, ChannelOp};
use crate::realm::Role;
use crate::roster::Roster;
use crate::time::Wall;
use crate::ulid::Ulid;
use serde::{Deserialize, Serialize};

/// One machine's record of one channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// Chosen by the creator.
    pub id: Ulid,
    /// The channel's own name, the same for every member: what envelopes carry.
    pub name: ChannelName,
    /// The name it has on this machine, unlike that of any other channel here.
    pub local: ChannelName,
    /// Who created it; need not be a member any more.
    pub creator: PersonId,
    /// The members as this machine knows them, at most `channelPersons`, in the order they came.
    pub persons: Vec<PersonId>,
}

impl Channel {
    /// Whether `person` is a member.
    #[must_use]
    pub fn has(&self, person: &PersonId) -> bool {
        self.persons.contains(person)
    }

    /// The channel as a chat on this machine.
    #[must_use]
    pub fn room(&self) -> RoomRef {
        RoomRef::Channel(self.local.clone())
    }

    /// Those of `persons` who are not members yet, in their order.
    #[must_use]
    pub fn new_among(&self, persons: &[PersonId]) -> Vec<PersonId> {
        persons.iter().filter(|person| !self.has(person)).cloned().collect()
    }

    /// The channel without the members that `lost` picks; nothing when it picks none. For those who have no machine
    /// left in the roster (`messaging/1 §6.8`): there is no notice, and the channel stays.
    #[must_use]
    pub fn without(&self, lost: impl Fn(&PersonId) -> bool) -> Option<Self> {
        let persons: Vec<_> = self.persons.iter().filter(|person| !lost(person)).cloned().collect();
        (persons.len() < self.persons.len()).then(|| Self { persons, ..self.clone() })
    }

    /// An operation on this channel, under its own name.
    #[must_use]
    pub fn conv(&self, op: ChannelOp) -> ChannelConv {
        ChannelConv { id: self.id, name: self.name.clone(), op }
    }
}

/// The chats a machine holds, wherever they are kept.
pub trait Chats {
    /// Why they could not be read; passed on as it is. [`std::convert::Infallible`] for chats in memory.
    type Down;

    /// The held channel with this id.
    ///
    /// # Errors
    /// When the chats could not be read.
    fn channel(&self, id: &Ulid) -> Result<Option<Channel>, Self::Down>;

    /// Whether a held channel has this local name.
    ///
    /// # Errors
    /// When the chats could not be read.
    fn is_taken(&self, local: &ChannelName) -> Result<bool, Self::Down>;

    /// How many channels are held.
    ///
    /// # Errors
    /// When the chats could not be read.
    fn held(&self) -> Result<usize, Self::Down>;

    /// When the channel with this id last ended here. May forget what [`is_kept`] no longer asks for.
    ///
    /// # Errors
    /// When the chats could not be read.
    fn ended(&self, id: &Ulid) -> Result<Option<Wall>, Self::Down>;

    /// Whether a line with this `messageId` is held, in any chat, notices included.
    ///
    /// # Errors
    /// When the chats could not be read.
    fn has_line(&self, message: &Ulid) -> Result<bool, Self::Down>;
}

/// What the realm says of persons. A roster answers from its members; a directory realm admits every hosted id.
pub trait People {
    /// Whether `person` may become a member of a channel here.
    fn admits(&self, person: &PersonId) -> bool;

    /// Whether this device has the role `admin` in a roster. Never in a directory realm.
    fn is_admin(&self, device: &MachineId) -> bool;

    /// The current machines of `person`, in any order.
    fn machines(&self, person: &PersonId) -> Vec<MachineId>;
}

impl People for Roster {
    fn admits(&self, person: &PersonId) -> bool {
        self.machines_of(person).next().is_some()
    }

    fn is_admin(&self, device: &MachineId) -> bool {
        self.member(device).is_some_and(|member| member.role == Role::Admin)
    }

    fn machines(&self, person: &PersonId) -> Vec<MachineId> {
        self.machines_of(person).map(|member| member.machine).collect()
    }
}

/// Whether a channel that ended here at `at` may still not be created again (`ttlMs + clockSkewMs`): so long a
/// `create` of before the end can be on its way. The record can be forgotten afterwards.
#[must_use]
pub const fn is_kept(at: Wall, now: Wall) -> bool {
    now.0.saturating_sub(at.0) <= TTL_MS + CLOCK_SKEW_MS
}

/// Most units of a channel's name that its local name begins with, when it gets a number.
const CUT: usize = 28;

/// The local name for a channel of this name: the name itself, or cut and with the lowest free number from 2
/// (`messaging/1 §6.8`). Nothing when 2 to 99 are all taken.
///
/// # Errors
/// What `is_taken` fails with.
pub fn local_name<E>(
    name: &ChannelName,
    is_taken: impl Fn(&ChannelName) -> Result<bool, E>,
) -> Result<Option<ChannelName>, E> {
    if !is_taken(name)? {
        return Ok(Some(name.clone()));
    }
    let text = name.as_str();
    let cut = text.get(..CUT).unwrap_or(text);
    for number in 2..=99 {
        let local = ChannelName::parse(&format!("{cut}-{number}"));
        if let Some(local) = local
            && !is_taken(&local)?
        {
            return Ok(Some(local));
        }
    }
    Ok(None)
}
