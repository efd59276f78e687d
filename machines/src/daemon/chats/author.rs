//! Channel changes by this machine's person: `channel.create`, `.invite`, `.leave`, `.remove` (`messaging/1 §6.8`,
//! `§8.2`; contract ipc §4).
//!
//! A change is held to the rules every receiver holds it to, so that nobody is sent what they would refuse.

use super::channels::{self, Held};
use super::out::{self, Said, To};
use super::receive::carry_out;
use super::view;
use crate::daemon::ctx::{Answer, Ctx, Outcome, Refusal, obj};
use crate::daemon::ipc::RpcError;
use crate::daemon::mail::Mail;
use crate::machine::Label;
use messaging_proto::Code;
use messaging_proto::channel::{
    Arrival, CHANNELS_HELD, Channel, ChannelError, Chats, Effect, apply, fan_out,
};
use messaging_proto::envelope::End;
use messaging_proto::limits::CHANNEL_PERSONS;
use messaging_proto::name::{ChannelName, PersonId};
use messaging_proto::payload::ChannelOp;
use messaging_proto::ulid::Ulid;
use std::collections::BTreeSet;

/// This machine as a sender.
fn me(cx: &Ctx<'_, '_>) -> Outcome<End> {
    let me = cx.facts.me().ok_or_else(|| Refusal::code(Code::NoIdentity, "this machine is in no team"))?;
    Ok(End { person: me.person.clone(), device: me.machine, agent: None })
}

fn held(cx: &Ctx<'_, '_>, local: &ChannelName) -> Outcome<Channel> {
    let channel = channels::by_local(cx.txn, local)?;
    channel
        .ok_or_else(|| RpcError::new(Code::NotFound, "this person is in no such channel").at("name").into())
}

/// §3.1 of the contract: a list names each person once.
fn each_once(persons: &[PersonId]) -> Outcome<()> {
    let distinct: BTreeSet<&PersonId> = persons.iter().collect();
    if distinct.len() == persons.len() { Ok(()) } else { Err(invalid("a person is named twice", "persons")) }
}

/// `channel.create`.
pub(super) fn create(
    mail: &mut Mail,
    cx: &mut Ctx<'_, '_>,
    name: &ChannelName,
    persons: &[PersonId],
) -> Outcome<Answer> {
    let from = me(cx)?;
    if Held(cx.txn).is_taken(name)? {
        return Err(invalid("a channel has this name here", "name"));
    }
    if Held(cx.txn).held()? >= CHANNELS_HELD {
        return Err(invalid("this machine holds the most channels allowed", "name"));
    }
    each_once(persons)?;
    if persons.contains(&from.person) {
        return Err(invalid("the creator is a member without being named", "persons"));
    }
    if persons.len() >= CHANNEL_PERSONS {
        return Err(invalid("the channel would be too large", "persons"));
    }
    let id = Ulid::new(cx.now(), cx.step.draw(Label::ChannelId));
    let mut all = vec![from.person.clone()];
    all.extend_from_slice(persons);
    let channel = Channel {
        id,
        name: name.clone(),
        local: name.clone(),
        creator: from.person.clone(),
        persons: all.clone(),
    };
    let op = ChannelOp::Create { persons: all, creator: from.person.clone() };
    change(mail, cx, &from, &channel, op)?;
    shown(cx, &id)
}

/// `channel.invite`.
pub(super) fn invite(
    mail: &mut Mail,
    cx: &mut Ctx<'_, '_>,
    name: &ChannelName,
    persons: &[PersonId],
) -> Outcome<Answer> {
    let from = me(cx)?;
    let channel = held(cx, name)?;
    if !change(mail, cx, &from, &channel, ChannelOp::Invite { persons: persons.to_vec() })? {
        return Err(invalid("they are members already", "persons"));
    }
    shown(cx, &channel.id)
}

/// `channel.leave`.
pub(super) fn leave(mail: &mut Mail, cx: &mut Ctx<'_, '_>, name: &ChannelName) -> Outcome<Answer> {
    let from = me(cx)?;
    let channel = held(cx, name)?;
    change(mail, cx, &from, &channel, ChannelOp::Leave)?;
    Ok(Answer::ok())
}

/// `channel.remove`.
pub(super) fn remove(
    mail: &mut Mail,
    cx: &mut Ctx<'_, '_>,
    name: &ChannelName,
    persons: &[PersonId],
) -> Outcome<Answer> {
    let from = me(cx)?;
    let channel = held(cx, name)?;
    // §8.2 here a caller who is no member has no such channel.
    if !channel.has(&from.person) {
        return Err(RpcError::new(Code::NotFound, "this person is in no such channel").at("name").into());
    }
    let op = ChannelOp::Remove { persons: persons.to_vec() };
    change(mail, cx, &from, &channel, op)?;
    shown(cx, &channel.id)
}

fn shown(cx: &Ctx<'_, '_>, id: &Ulid) -> Outcome<Answer> {
    let Some(channel) = channels::get(cx.txn, id)? else {
        return Err(Refusal::code(Code::Internal, "the channel was not stored"));
    };
    Ok(Answer::Now(obj([("conversation", view::channel(cx, &channel)?)])))
}

/// Does a change here and sends it. `channel` is the record before it; of a create, the new one. Whether anything
/// changed.
fn change(
    mail: &mut Mail,
    cx: &mut Ctx<'_, '_>,
    from: &End,
    channel: &Channel,
    op: ChannelOp,
) -> Outcome<bool> {
    let Some(roster) = cx.facts.roster() else {
        return Err(Refusal::code(Code::NoIdentity, "this machine is in no team"));
    };
    let id = Ulid::new(cx.now(), cx.step.draw(Label::MessageId));
    let conv = channel.conv(op);
    let arrival = Arrival { from, message: id, context: None, conv: Some(&conv), parts: &[] };
    let effect = apply(&from.person, &Held(cx.txn), roster, cx.now(), &arrival)?.map_err(refusal)?;
    if let ChannelOp::Invite { persons } | ChannelOp::Remove { persons } = &conv.op {
        each_once(persons)?;
    }
    if matches!(effect, Effect::Duplicate | Effect::Unchanged) {
        return Ok(false);
    }
    // §6.8 nobody files this text: each machine writes its own notice.
    let text = format!("{} #{}", conv.op.as_str(), conv.name);
    let said = Said { id, thread: None, agent: None, text, change: Some(channel.id) };
    let copies = fan_out(roster, &from.device, channel, &conv.op);
    let to = copies.into_iter().map(|copy| To {
        person: copy.person,
        machine: copy.machine,
        conv: Some(copy.conv),
    });
    let sealed = out::seal(cx, &said, to.collect())?;
    carry_out(cx, effect, &from.person, None, false)?;
    out::queue(mail, cx, &said, &from.person, sealed)?;
    Ok(true)
}

/// A receiver's refusal, as this machine's own person hears it.
fn refusal(error: ChannelError) -> Refusal {
    let (code, text, field) = match error {
        ChannelError::UnknownPerson => (Code::NotFound, "the team has no such person", "persons"),
        ChannelError::NoSuchMember => (Code::NotFound, "a person is no member", "persons"),
        ChannelError::TooLarge => (Code::InvalidRequest, "the channel would be too large", "persons"),
        ChannelError::Itself => (Code::InvalidRequest, "use channel.leave for oneself", "persons"),
        ChannelError::NotAllowed => {
            (Code::Forbidden, "only the creator and team admins remove members", "persons")
        }
        ChannelError::Unknown | ChannelError::NotMember => {
            (Code::NotFound, "this person is in no such channel", "name")
        }
        ChannelError::Known | ChannelError::NotListed | ChannelError::Ended => {
            (Code::Forbidden, "the channel cannot be created", "name")
        }
        ChannelError::TooMany | ChannelError::NamesTaken => {
            (Code::InvalidRequest, "this machine holds the most channels allowed", "name")
        }
    };
    RpcError::new(code, text).at(field).into()
}

fn invalid(text: &'static str, field: &'static str) -> Refusal {
    RpcError::new(Code::InvalidRequest, text).at(field).into()
}
