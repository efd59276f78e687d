//! Which machines a chat envelope goes to (contract delegation-consent §3.3).

use super::chats::{Channel, People};
use crate::key::MachineId;
use crate::name::PersonId;
use crate::payload::{ChannelConv, ChannelOp};

/// One copy of a change or a post. Every copy has the same `messageId`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Whose machine it is.
    pub person: PersonId,
    /// Where it goes.
    pub machine: MachineId,
    /// What it says.
    pub conv: ChannelConv,
}

/// The machines a direct line to the person `to` goes to: all of theirs, but never the sending machine `me`. So a
/// line to oneself goes to one's other machines.
#[must_use]
pub fn fan_out_direct<P: People + ?Sized>(people: &P, me: &MachineId, to: &PersonId) -> Vec<MachineId> {
    let mut machines = people.machines(to);
    machines.retain(|machine| machine != me);
    // As their texts order, which the bytes do not.
    machines.sort_by_cached_key(ToString::to_string);
    machines
}

/// The copies of one operation on `channel`, which is its record before the change; for a `create`, the new record.
/// `me` is the sending machine.
///
/// The operation is one this machine may do: [`super::apply`] says so for its own person as for any other.
#[must_use]
pub fn fan_out<P: People + ?Sized>(
    people: &P,
    me: &MachineId,
    channel: &Channel,
    op: &ChannelOp,
) -> Vec<Copy> {
    let ChannelOp::Invite { persons } = op else {
        let members = match op {
            ChannelOp::Create { persons, .. } => persons,
            _ => &channel.persons,
        };
        return to_all(people, me, members, &channel.conv(op.clone()));
    };
    let added = channel.new_among(persons);
    if added.is_empty() {
        return Vec::new();
    }
    // §6.8 a newcomer learns the whole record, without those who have no machine left.
    let after = channel.persons.iter().chain(&added);
    let after = after.filter(|person| !people.machines(person).is_empty()).cloned().collect();
    let create = channel.conv(ChannelOp::Create { persons: after, creator: channel.creator.clone() });
    let invite = channel.conv(ChannelOp::Invite { persons: added.clone() });
    let mut copies = to_all(people, me, &channel.persons, &invite);
    copies.extend(to_all(people, me, &added, &create));
    copies
}

/// By person as listed, then by machine.
fn to_all<P: People + ?Sized>(
    people: &P,
    me: &MachineId,
    persons: &[PersonId],
    conv: &ChannelConv,
) -> Vec<Copy> {
    let copies = |person: &PersonId| {
        let machines = fan_out_direct(people, me, person).into_iter();
        let copy = |machine| Copy { person: person.clone(), machine, conv: conv.clone() };
        machines.map(copy).collect::<Vec<_>>()
    };
    persons.iter().flat_map(copies).collect()
}
