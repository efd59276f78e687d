//! One chat envelope against the chats of the machine it arrived at (contract delegation-consent §3.2).

use super::chats::{Channel, Chats, People, is_kept, local_name};
use super::error::ChannelError;
use super::line::Line;
use super::{CHANNELS_HELD, notice};
use crate::a2a::Part;
use crate::envelope::End;
use crate::limits::CHANNEL_PERSONS;
use crate::name::PersonId;
use crate::payload::{ChannelConv, ChannelOp, Conv, MessagePayload};
use crate::time::Wall;
use crate::ulid::Ulid;

/// A chat envelope. Its payload has its meaning ([`crate::meaning`]): a line, or a channel's change or post.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The verified sender.
    pub from: &'a End,
    /// `messageId`, the same on every copy.
    pub message: Ulid,
    /// `contextId`: the first line of the thread.
    pub context: Option<Ulid>,
    /// The operation; none for a direct line.
    pub conv: Option<&'a ChannelConv>,
    /// What is said.
    pub parts: &'a [Part],
}

impl<'a> Arrival<'a> {
    /// The chat envelope with this payload; nothing when it is no chat.
    #[must_use]
    pub fn of(from: &'a End, payload: &'a MessagePayload) -> Option<Self> {
        let conv = match &payload.conv {
            None => None,
            Some(Conv::Channel(conv)) => Some(conv),
            Some(_) => return None,
        };
        let context = match &payload.message.context_id {
            None => None,
            Some(id) => Some(Ulid::parse(id.as_str())?),
        };
        let message = Ulid::parse(payload.message.message_id.as_str())?;
        Some(Self { from, message, context, conv, parts: &payload.message.parts })
    }
}

/// What an accepted chat envelope changes. The sender gets a `delivered` receipt for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A line with this `messageId` is held: nothing.
    Duplicate,
    /// A change that changes nothing.
    Unchanged,
    /// A line.
    Filed(Line),
    /// The channel is stored as it is here, and the notice is filed.
    Applied {
        /// The new or changed record.
        channel: Channel,
        /// The notice of the change.
        notice: Line,
    },
    /// This machine's person is out of the channel: it is deleted with its lines and its cursor, and its id is
    /// recorded as ended at `at`.
    Ended {
        /// The record as it was.
        channel: Channel,
        /// Now.
        at: Wall,
    },
}

/// What `arrival` does to the chats of this machine, whose person is `own`.
///
/// # Errors
/// Outside, what [`Chats`] fails with. Inside, the [`ChannelError`] of the first rule that is broken; nothing is to
/// be stored then.
pub fn apply<C: Chats + ?Sized, P: People + ?Sized>(
    own: &PersonId,
    chats: &C,
    people: &P,
    now: Wall,
    arrival: &Arrival<'_>,
) -> Result<Result<Effect, ChannelError>, C::Down> {
    // §6.8 a message that is held changes nothing, whatever else it says.
    if chats.has_line(&arrival.message)? {
        return Ok(Ok(Effect::Duplicate));
    }
    let Some(conv) = arrival.conv else {
        return Ok(Ok(Effect::Filed(Line::direct(own, &arrival.from.person, arrival))));
    };
    let rules = Rules { own, chats, people, now, arrival };
    if let ChannelOp::Create { persons, creator } = &conv.op {
        return rules.create(conv, persons, creator);
    }
    // §6.8 by its id, and under its own name.
    let Some(channel) = chats.channel(&conv.id)?.filter(|channel| channel.name == conv.name) else {
        return Ok(Err(ChannelError::Unknown));
    };
    Ok(rules.held(channel, &conv.op))
}

struct Rules<'a, C: ?Sized, P: ?Sized> {
    own: &'a PersonId,
    chats: &'a C,
    people: &'a P,
    now: Wall,
    arrival: &'a Arrival<'a>,
}

impl<C: Chats + ?Sized, P: People + ?Sized> Rules<'_, C, P> {
    fn create(
        &self,
        conv: &ChannelConv,
        persons: &[PersonId],
        creator: &PersonId,
    ) -> Result<Result<Effect, ChannelError>, C::Down> {
        let by = &self.arrival.from.person;
        if self.chats.channel(&conv.id)?.is_some() {
            return Ok(Err(ChannelError::Known));
        }
        if !persons.contains(by) || !persons.contains(self.own) {
            return Ok(Err(ChannelError::NotListed));
        }
        // §6.8 nobody is brought back by a change from before they left.
        if self.chats.ended(&conv.id)?.is_some_and(|at| is_kept(at, self.now)) {
            return Ok(Err(ChannelError::Ended));
        }
        if !self.admits_all(persons) {
            return Ok(Err(ChannelError::UnknownPerson));
        }
        if self.chats.held()? >= CHANNELS_HELD {
            return Ok(Err(ChannelError::TooMany));
        }
        let Some(local) = local_name(&conv.name, |name| self.chats.is_taken(name))? else {
            return Ok(Err(ChannelError::NamesTaken));
        };
        let text = if by == creator {
            notice::created(&local, by, persons)
        } else {
            notice::added(&local, by, std::slice::from_ref(self.own))
        };
        let channel = Channel {
            id: conv.id,
            name: conv.name.clone(),
            local,
            creator: creator.clone(),
            persons: persons.to_vec(),
        };
        Ok(Ok(self.applied(channel, text)))
    }

    /// An operation on a channel that is held.
    fn held(&self, channel: Channel, op: &ChannelOp) -> Result<Effect, ChannelError> {
        // §6.8 only members speak in a channel and change it.
        require(channel.has(&self.arrival.from.person), ChannelError::NotMember)?;
        match op {
            // What is held is not created again.
            ChannelOp::Create { .. } => Err(ChannelError::Known),
            ChannelOp::Invite { persons } => self.invite(channel, persons),
            ChannelOp::Leave => Ok(self.leave(channel)),
            ChannelOp::Remove { persons } => self.remove(channel, persons),
            ChannelOp::Post => {
                require(channel.has(self.own), ChannelError::NotMember)?;
                Ok(Effect::Filed(Line::post(self.own, &channel, self.arrival)))
            }
        }
    }

    fn invite(&self, mut channel: Channel, persons: &[PersonId]) -> Result<Effect, ChannelError> {
        require(self.admits_all(persons), ChannelError::UnknownPerson)?;
        let new = channel.new_among(persons);
        require(channel.persons.len() + new.len() <= CHANNEL_PERSONS, ChannelError::TooLarge)?;
        if new.is_empty() {
            return Ok(Effect::Unchanged);
        }
        let text = notice::added(&channel.local, &self.arrival.from.person, &new);
        channel.persons.extend(new);
        Ok(self.applied(channel, text))
    }

    fn leave(&self, channel: Channel) -> Effect {
        let by = &self.arrival.from.person;
        if by == self.own {
            return Effect::Ended { channel, at: self.now };
        }
        let text = notice::left(&channel.local, by);
        self.without(channel, std::slice::from_ref(by), text)
    }

    fn remove(&self, channel: Channel, persons: &[PersonId]) -> Result<Effect, ChannelError> {
        let from = self.arrival.from;
        let may = from.person == channel.creator || self.people.is_admin(&from.device);
        require(may, ChannelError::NotAllowed)?;
        require(!persons.contains(&from.person), ChannelError::Itself)?;
        require(persons.iter().all(|person| channel.has(person)), ChannelError::NoSuchMember)?;
        if persons.contains(self.own) {
            return Ok(Effect::Ended { channel, at: self.now });
        }
        let text = notice::removed(&channel.local, &from.person, persons);
        Ok(self.without(channel, persons, text))
    }

    fn without(&self, mut channel: Channel, persons: &[PersonId], text: String) -> Effect {
        channel.persons.retain(|person| !persons.contains(person));
        self.applied(channel, text)
    }

    fn applied(&self, channel: Channel, text: String) -> Effect {
        let notice = Line::change(self.own, &channel, self.arrival, text);
        Effect::Applied { channel, notice }
    }

    fn admits_all(&self, persons: &[PersonId]) -> bool {
        persons.iter().all(|person| self.people.admits(person))
    }
}

fn require(holds: bool, error: ChannelError) -> Result<(), ChannelError> {
    if holds { Ok(()) } else { Err(error) }
}
