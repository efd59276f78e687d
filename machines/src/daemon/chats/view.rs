//! Lines and conversations as clients see them (contract ipc §2).

use super::channels;
use super::lines::{self, Row};
use super::rooms::{self, Room, With};
use crate::daemon::ctx::Ctx;
use crate::daemon::mail::peer::set;
use crate::store::StoreDown;
use messaging_proto::address::RoomRef;
use messaging_proto::channel::{Channel, LineState};
use messaging_proto::json::{Object, Value};
use messaging_proto::name::PersonId;
use std::cmp::Reverse;

/// `ChatLine`.
pub(super) fn line(seq: u64, row: &Row) -> Object {
    let line = &row.line;
    let mut view = Object::new();
    view.set("id", Value::text(line.id.as_str()));
    view.set("seq", Value::int(seq));
    view.set("at", Value::int(row.at.0));
    view.set("person", Value::text(line.person.as_str()));
    view.set("device", Value::text(line.device.to_string()));
    set(&mut view, "label", row.label.as_ref().map(|label| Value::text(label.as_str())));
    set(&mut view, "agent", line.agent.as_ref().map(|agent| Value::text(agent.as_str())));
    view.set("out", Value::Bool(line.out));
    view.set("text", Value::text(line.text.as_str()));
    set(&mut view, "thread", line.thread.map(|thread| Value::text(thread.as_str())));
    set(&mut view, "notice", line.notice.then_some(Value::Bool(true)));
    set(&mut view, "state", row.state.as_ref().map(|state| Value::text(state.as_str())));
    if let Some(LineState::Refused(persons)) = &row.state {
        view.set("refused", names(persons));
    }
    view
}

/// The lines with these numbers.
pub(super) fn lines(cx: &Ctx<'_, '_>, seqs: &[u64]) -> Result<Vec<Value>, StoreDown> {
    let mut found = Vec::new();
    for seq in seqs {
        found.extend(lines::get(cx.txn, *seq)?.map(|row| Value::Object(line(*seq, &row))));
    }
    Ok(found)
}

/// The conversations of this machine's person, the latest line first: direct chats that hold a line, and every
/// channel.
pub(crate) fn conversations(cx: &Ctx<'_, '_>) -> Result<Vec<Value>, StoreDown> {
    let mut found = Vec::new();
    for (_, room) in rooms::all(cx.txn)? {
        let channel = match &room.with {
            With::Person(_) if room.last.is_none() => continue,
            With::Person(_) => None,
            With::Channel(id) => Some(channels::get(cx.txn, id)?),
        };
        let view = match (&room.with, channel) {
            (With::Person(person), _) => with_person(person, &room),
            (With::Channel(_), Some(Some(channel))) => with_channel(cx, &channel, &room),
            (With::Channel(_), _) => continue,
        };
        let last = room.last.map(|(seq, _)| seq);
        let name = view.get("conversation").and_then(Value::as_str).unwrap_or_default().to_owned();
        found.push((Reverse(last), name, view));
    }
    found.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
    Ok(found.into_iter().map(|(_, _, view)| view.into()).collect())
}

/// `Conversation` of a channel.
pub(super) fn channel(cx: &Ctx<'_, '_>, channel: &Channel) -> Result<Value, StoreDown> {
    let number = rooms::of(cx.txn, &With::Channel(channel.id))?;
    let room = match number {
        Some(number) => rooms::get(cx.txn, number)?,
        None => None,
    };
    let none = || Room { with: With::Channel(channel.id), read_up_to: 0, unread: 0, last: None };
    Ok(with_channel(cx, channel, &room.unwrap_or_else(none)).into())
}

fn with_person(person: &PersonId, room: &Room) -> Object {
    let mut view = Object::new();
    view.set("conversation", Value::text(RoomRef::Dm(person.clone()).to_string()));
    view.set("kind", Value::text("dm"));
    view.set("person", Value::text(person.as_str()));
    read_state(&mut view, room);
    view
}

fn with_channel(cx: &Ctx<'_, '_>, channel: &Channel, room: &Room) -> Object {
    let mut view = Object::new();
    view.set("conversation", Value::text(channel.room().to_string()));
    view.set("kind", Value::text("channel"));
    view.set("id", Value::text(channel.id.as_str()));
    if channel.local != channel.name {
        view.set("name", Value::text(channel.name.as_str()));
    }
    view.set("persons", names(&channel.persons));
    view.set("creator", Value::text(channel.creator.as_str()));
    let mine = cx.facts.me().is_some_and(|own| own.person == channel.creator);
    view.set("mine", Value::Bool(mine));
    read_state(&mut view, room);
    view
}

fn read_state(view: &mut Object, room: &Room) {
    view.set("readUpTo", Value::int(room.read_up_to));
    view.set("unread", Value::int(room.unread));
    if let Some((seq, at)) = room.last {
        view.set("lastSeq", Value::int(seq));
        view.set("lastAt", Value::int(at.0));
    }
}

fn names(persons: &[PersonId]) -> Value {
    Value::Array(persons.iter().map(|person| Value::text(person.as_str())).collect())
}
