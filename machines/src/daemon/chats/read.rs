//! Reading chats (`messaging/1 §8.2`, "Chats"; contract ipc §3 `conv.read`, §4 `conv.list`, `conv.markRead`).

use super::lines::{self, ORDER, THREAD};
use super::rooms::{self, Room};
use super::{changes, channels, view};
use crate::daemon::ctx::{Answer, Ctx, Outcome, Refusal, obj};
use crate::daemon::ipc::RpcError;
use crate::daemon::rows::{self, Key};
use crate::store::{Range, StoreDown, Txn, prefix_end};
use messaging_proto::Code;
use messaging_proto::address::RoomRef;
use messaging_proto::channel::mark_read;
use messaging_proto::json::Value;
use messaging_proto::name::PersonId;
use messaging_proto::ulid::Ulid;
use std::ops::Bound;

/// Lines of a page when no `limit` is given.
const PAGE: usize = 50;
/// Rows read at once while lines are counted.
const COUNT: usize = 512;

/// `conv.read` of a chat.
#[derive(Clone, Debug)]
pub(crate) struct ReadLines<'a> {
    pub(crate) room: &'a RoomRef,
    pub(crate) thread: Option<Ulid>,
    pub(crate) before: Option<u64>,
    pub(crate) after: Option<u64>,
    pub(crate) limit: Option<usize>,
}

/// Whether a person has a machine in the team.
pub(super) fn is_on_team(cx: &Ctx<'_, '_>, person: &PersonId) -> bool {
    cx.facts.roster().is_some_and(|roster| roster.machines_of(person).next().is_some())
}

/// The room of a chat this person may read: nothing yet for a person of the team that nothing was exchanged with.
///
/// # Errors
/// `not_found` for a channel this person is not in, and for an unknown person.
pub(super) fn room(cx: &Ctx<'_, '_>, room: &RoomRef) -> Outcome<Option<u64>> {
    let number = channels::room(cx.txn, room)?;
    match room {
        RoomRef::Dm(person) if number.is_some() || is_on_team(cx, person) => Ok(number),
        RoomRef::Channel(_) if number.is_some() => Ok(number),
        RoomRef::Dm(_) => Err(unknown("the team has no such person", "conversation")),
        RoomRef::Channel(_) => Err(unknown("this person is in no such channel", "conversation")),
    }
}

/// The thread that any line of it names: its first line's id, held or not.
pub(super) fn thread_of(cx: &Ctx<'_, '_>, room: &RoomRef, line: &Ulid) -> Result<Option<Ulid>, StoreDown> {
    let Some(room) = channels::room(cx.txn, room)? else { return Ok(None) };
    if let Some((_, row)) = lines::by_id(cx.txn, line)?
        && row.room == room
    {
        return Ok(Some(row.line.thread.unwrap_or(row.line.id)));
    }
    let of_thread = Key::new().num(room).text(line.as_str());
    Ok(if cx.txn.prefix(THREAD, of_thread.as_slice(), 1)?.is_empty() { None } else { Some(*line) })
}

/// Serves `conv.read` of a chat: oldest first.
pub(crate) fn conv_read(cx: &Ctx<'_, '_>, call: &ReadLines<'_>) -> Outcome<Answer> {
    let number = room(cx, call.room)?;
    let thread = match call.thread {
        None => None,
        Some(line) => Some(
            thread_of(cx, call.room, &line)?
                .ok_or_else(|| unknown("the chat has no such thread", "thread"))?,
        ),
    };
    let (table, prefix) = match (number, thread) {
        (None, _) => (ORDER, None),
        (Some(room), None) => (ORDER, Some(Key::new().num(room))),
        (Some(room), Some(thread)) => (THREAD, Some(Key::new().num(room).text(thread.as_str()))),
    };
    let limit = call.limit.unwrap_or(PAGE);
    let mut seqs = match prefix {
        None => Vec::new(),
        Some(prefix) => {
            let from = Key::clone(&prefix).num(call.after.unwrap_or(0));
            let to = match call.before {
                Some(before) => Some(Key::clone(&prefix).num(before).as_slice().to_vec()),
                None => prefix_end(prefix.as_slice()),
            };
            let range = Range {
                from: Bound::Excluded(from.as_slice()),
                to: to.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
                reverse: call.after.is_none(),
                limit: limit + 1,
            };
            cx.txn.range(table, range)?.iter().map(|(key, _)| rows::last_num(key)).collect::<Vec<_>>()
        }
    };
    let more = seqs.len() > limit;
    seqs.truncate(limit);
    if call.after.is_none() {
        seqs.reverse();
    }
    Ok(Answer::Now(obj([
        ("kind", Value::text("lines")),
        ("conversation", Value::text(call.room.to_string())),
        ("lines", Value::Array(view::lines(cx, &seqs)?)),
        ("more", Value::Bool(more)),
    ])))
}

/// `conv.list`.
pub(super) fn conv_list(cx: &Ctx<'_, '_>, limit: usize) -> Outcome<Answer> {
    let mut found = view::conversations(cx)?;
    found.truncate(limit);
    Ok(Answer::Now(obj([("conversations", Value::Array(found))])))
}

/// `conv.markRead`.
pub(super) fn conv_mark_read(cx: &mut Ctx<'_, '_>, of: &RoomRef, up_to: u64) -> Outcome<Answer> {
    let number = match (room(cx, of)?, of) {
        (Some(number), _) => number,
        (None, RoomRef::Dm(person)) => rooms::make(cx.txn, &rooms::With::Person(person.clone()))?,
        (None, RoomRef::Channel(_)) => {
            return Err(unknown("this person is in no such channel", "conversation"));
        }
    };
    let Some(mut held) = rooms::get(cx.txn, number)? else {
        return Err(unknown("this person holds no such chat", "conversation"));
    };
    let cursor = mark_read(held.read_up_to, up_to, changes::newest(cx.txn)?);
    if cursor > held.read_up_to {
        held.unread = unread_after(cx.txn, number, &held, cursor)?;
        held.read_up_to = cursor;
        rooms::put(cx.txn, number, &held)?;
    }
    Ok(Answer::Now(obj([("readUpTo", Value::int(held.read_up_to)), ("unread", Value::int(held.unread))])))
}

/// What is unread above a later cursor: counted from the cursor's old place and from the end at once, so that the
/// nearer of the two decides how long it takes.
fn unread_after(txn: &Txn<'_>, room: u64, held: &Room, cursor: u64) -> Result<u64, StoreDown> {
    let (mut read, mut left) = (0, 0);
    // What lies in `low..=cursor` and in `cursor+1..=high` was not counted yet.
    let (mut low, mut high) = (held.read_up_to, u64::MAX);
    loop {
        let rows = order(txn, room, (low, cursor), false)?;
        read += count(&rows);
        match rows.last() {
            Some((key, _)) if rows.len() == COUNT => low = rows::last_num(key),
            _ => return Ok(held.unread.saturating_sub(read)),
        }
        let rows = order(txn, room, (cursor, high), true)?;
        left += count(&rows);
        match rows.last() {
            Some((key, _)) if rows.len() == COUNT => high = rows::last_num(key) - 1,
            _ => return Ok(left),
        }
    }
}

/// Lines above the first number and up to the second.
fn order(
    txn: &Txn<'_>,
    room: u64,
    (above, up_to): (u64, u64),
    reverse: bool,
) -> Result<Vec<(Vec<u8>, bool)>, StoreDown> {
    let from = Key::new().num(room).num(above);
    let to = Key::new().num(room).num(up_to);
    let range = Range {
        from: Bound::Excluded(from.as_slice()),
        to: Bound::Included(to.as_slice()),
        reverse,
        limit: COUNT,
    };
    Ok(rows::readable::<bool>(txn.range(ORDER, range)?))
}

fn count(rows: &[(Vec<u8>, bool)]) -> u64 {
    rows.iter().filter(|(_, counts)| *counts).count() as u64
}

fn unknown(text: &'static str, field: &'static str) -> Refusal {
    RpcError::new(Code::NotFound, text).at(field).into()
}
