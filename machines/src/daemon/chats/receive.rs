//! Lines and channel changes that arrive (`messaging/1 §6.8`, "Receiver rules"; contract delegation-consent §3.2).
//!
//! Consent comes first, then the pace of another person's agents, then the rules of `proto::channel`. Nothing is
//! stored unless all of them hold.

use super::channels::{self, Held};
use super::lines::{self, New};
use super::rooms::{self, With};
use super::{changes, purge};
use crate::daemon::consent;
use crate::daemon::ctx::{Ctx, Note};
use crate::daemon::mail::receipts::Fate;
use crate::daemon::mail::records::Stored;
use crate::daemon::mail::{Mail, sent};
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::address::RoomRef;
use messaging_proto::channel::{Arrival, Channel, Effect, LineState, apply};
use messaging_proto::consent::{Decision, Kind};
use messaging_proto::envelope::Envelope;
use messaging_proto::name::PersonId;
use messaging_proto::payload::{ChannelOp, MessagePayload};
use messaging_proto::task::{Bound, Incoming, Stage, bind};

/// A message to this machine's person: what its sender is told.
pub(crate) fn arrived(
    mail: &mut Mail,
    cx: &mut Ctx<'_, '_>,
    envelope: &Envelope,
    payload: &MessagePayload,
) -> Result<Fate, StoreDown> {
    let from = &envelope.header.from;
    let Some(own) = cx.facts.me().map(|own| own.person.clone()) else {
        return Ok(Fate::Rejected(Code::NoIdentity));
    };
    let Some(arrival) = Arrival::of(from, payload) else {
        return Ok(Fate::Rejected(Code::InvalidRequest));
    };
    let change = arrival.conv.is_some_and(|conv| conv.op != ChannelOp::Post);
    let kind = match (change, &from.agent) {
        (true, _) => Kind::Change,
        (false, None) => Kind::PersonLine,
        (false, Some(_)) => Kind::AgentLine,
    };
    let (now, mono) = (cx.now(), cx.mono());
    let silent = match consent::decide(cx, &from.person, kind, now)? {
        Decision::Deliver { silent, .. } => silent,
        Decision::Refuse(code) => return Ok(Fate::Rejected(code)),
        // Only an ask and a message request are held.
        Decision::Hold => return Ok(Fate::Rejected(Code::Refused)),
    };
    // §6.9 "Pacing": for a sender that does not pace itself.
    let paced = kind_is_agents(&kind) && from.person != own;
    if paced && !mail.pace.may_enter(&from.person, mono) {
        return Ok(Fate::Rejected(Code::RateLimited));
    }
    let Some(roster) = cx.facts.roster() else { return Ok(Fate::Rejected(Code::NoIdentity)) };
    let effect = match apply(&own, &Held(cx.txn), roster, now, &arrival)? {
        Ok(effect) => effect,
        Err(error) => return Ok(Fate::Rejected(error.code())),
    };
    if paced && matches!(effect, Effect::Filed(_)) {
        mail.pace.entered(&from.person, mono);
    }
    carry_out(cx, effect, &from.person, None, silent)?;
    answered(cx, envelope)?;
    Ok(Fate::Delivered)
}

const fn kind_is_agents(kind: &Kind<'_>) -> bool {
    matches!(kind, Kind::AgentLine)
}

/// §8.4 a line may answer something this machine sent, as any message.
fn answered(cx: &mut Ctx<'_, '_>, envelope: &Envelope) -> Result<(), StoreDown> {
    let header = &envelope.header;
    let incoming = Incoming::Message { task: None, to_agent: None, reply_to: header.reply_to.as_ref() };
    let bound = bind(&Stored::side(cx.txn, &[]), &header.from.device, incoming)?;
    if let Ok(Bound::Answer { replied: Some(id), .. }) = bound {
        sent::reach(cx, &id, Stage::Replied, None)?;
    }
    Ok(())
}

/// Writes what a chat envelope changes, or what this machine's person does itself: `state` is then how far its line
/// came. The line's number, when one was filed.
pub(super) fn carry_out(
    cx: &mut Ctx<'_, '_>,
    effect: Effect,
    by: &PersonId,
    state: Option<LineState>,
    silent: bool,
) -> Result<Option<(u64, lines::Row)>, StoreDown> {
    match effect {
        Effect::Duplicate | Effect::Unchanged => Ok(None),
        Effect::Filed(line) => {
            let room = match &line.room {
                RoomRef::Dm(person) => Some(rooms::make(cx.txn, &With::Person(person.clone()))?),
                room @ RoomRef::Channel(_) => channels::room(cx.txn, room)?,
            };
            let Some(room) = room else { return Ok(None) };
            lines::file(cx, New { line, room, state, silent }).map(Some)
        }
        Effect::Applied { channel, notice } => {
            let room = channels::put(cx.txn, &channel)?;
            lines::file(cx, New { line: notice, room, state: None, silent }).map(Some)
        }
        Effect::Ended { channel, .. } => {
            end(cx, &channel, by)?;
            Ok(None)
        }
    }
}

/// The channel ends here: it is gone with its lines and its cursor.
fn end(cx: &mut Ctx<'_, '_>, channel: &Channel, by: &PersonId) -> Result<(), StoreDown> {
    let now = cx.now();
    let room = rooms::of(cx.txn, &With::Channel(channel.id))?;
    channels::end(cx.txn, channel, now);
    if let Some(number) = room
        && let Some(row) = rooms::get(cx.txn, number)?
    {
        rooms::remove(cx.txn, number, &row)?;
        purge::begin(cx, number)?;
    }
    changes::deleted(cx, &channel.room(), by)?;
    cx.note(Note::ChannelEnded(channel.room()));
    Ok(())
}

/// §6.8 persons without a machine are members of nothing any more.
pub(super) fn drop_lost(cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
    let Some(roster) = cx.facts.roster() else { return Ok(()) };
    for channel in channels::all(cx.txn)? {
        let lost = |person: &PersonId| roster.machines_of(person).next().is_none();
        if let Some(rest) = channel.without(lost) {
            channels::put(cx.txn, &rest)?;
        }
    }
    Ok(())
}
