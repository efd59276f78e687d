//! The transcript: one row a line, numbered in this machine's order (`messaging/1 §6.8`, "Transcript").
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `chat_line` | seq | [`Row`] |
//! | `chat_line_id` | `messageId` | seq |
//! | `chat_order` | room ‖ seq | whether it counts as unread above the cursor |
//! | `chat_thread` | room ‖ first line's id ‖ seq | nothing |
//! | `chat_person` | person ‖ seq | nothing: a sender's lines, oldest first |
//! | `chat_held` | person | [`Held`]: what is kept of a sender |

use super::rooms::{self, Room};
use super::{changes, delivery, texts};
use crate::daemon::ctx::{Ctx, Note};
use crate::daemon::due::{self, days};
use crate::daemon::note::FiledLine;
use crate::daemon::rows::{self, Key};
use crate::store::{StoreDown, Table, Txn};
use messaging_proto::channel::{Line, LineState, PERSON_LINE_BYTES, PERSON_LINES};
use messaging_proto::name::Label;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(crate) const LINE: Table = Table("chat_line");
pub(crate) const LINE_ID: Table = Table("chat_line_id");
pub(crate) const ORDER: Table = Table("chat_order");
pub(crate) const THREAD: Table = Table("chat_thread");
pub(crate) const PERSON: Table = Table("chat_person");
pub(crate) const HELD: Table = Table("chat_held");

/// The most lines one filing deletes for the sender's caps. What is over waits for the sender's next line.
const EVICT: usize = 256;

/// A line as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    /// What the line is.
    pub(crate) line: Line,
    /// Its room.
    pub(crate) room: u64,
    /// When it was filed.
    pub(crate) at: Wall,
    /// The label of the machine that sent it, as the roster then said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<Label>,
    /// The number of its latest change; its own at first.
    pub(crate) changed: u64,
    /// How far it came, of one this machine sent to other persons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<LineState>,
}

/// What is kept of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    /// Lines.
    pub(crate) lines: u64,
    /// Bytes of their text.
    pub(crate) bytes: u64,
}

impl Held {
    const fn is_over(self) -> bool {
        self.lines > PERSON_LINES as u64 || self.bytes > PERSON_LINE_BYTES as u64
    }
}

/// A line of any room, whether that is there or not.
fn row(txn: &Txn<'_>, seq: u64) -> Result<Option<Row>, StoreDown> {
    rows::get(txn, LINE, &Key::new().num(seq))
}

/// The line with this number.
pub(crate) fn get(txn: &Txn<'_>, seq: u64) -> Result<Option<Row>, StoreDown> {
    let Some(row) = row(txn, seq)? else { return Ok(None) };
    Ok(rooms::exists(txn, row.room)?.then_some(row))
}

/// The line with this `messageId`, with its number.
pub(crate) fn by_id(txn: &Txn<'_>, id: &Ulid) -> Result<Option<(u64, Row)>, StoreDown> {
    let Some(seq) = rows::get::<u64>(txn, LINE_ID, &Key::new().text(id.as_str()))? else { return Ok(None) };
    Ok(get(txn, seq)?.map(|row| (seq, row)))
}

/// A line's text, for a notice of it; nothing once it is gone.
pub(crate) fn text(txn: &Txn<'_>, id: &Ulid) -> Result<Option<String>, StoreDown> {
    Ok(by_id(txn, id)?.map(|(_, row)| row.line.text))
}

/// Writes a line's changed row.
pub(super) fn put(txn: &mut Txn<'_>, seq: u64, row: &Row) {
    rows::put(txn, LINE, &Key::new().num(seq), row);
}

/// A line to be filed.
pub(super) struct New {
    /// What it is.
    pub(super) line: Line,
    /// Its room.
    pub(super) room: u64,
    /// How far it came, of one this machine sends.
    pub(super) state: Option<LineState>,
    /// Whether its sender is muted.
    pub(super) silent: bool,
}

/// Files a line under the next number and tells who listens. Its number and row.
pub(super) fn file(cx: &mut Ctx<'_, '_>, new: New) -> Result<(u64, Row), StoreDown> {
    let New { line, room, state, silent } = new;
    let seq = changes::next(cx.txn)?;
    let at = cx.now();
    let member = cx.facts.roster().and_then(|roster| roster.member(&line.device));
    let label = member.map(|member| member.label.clone());
    let row = Row { line, room, at, label, changed: seq, state };
    store(cx, seq, &row)?;
    if let Some(mut held) = rooms::get(cx.txn, room)? {
        held.last = Some((seq, at));
        held.unread += u64::from(row.line.is_unread(seq, held.read_up_to));
        rooms::put(cx.txn, room, &held)?;
    }
    changes::record(cx.txn, seq, seq);
    changes::tell(cx, &changes::Told::of_line(seq, &row));
    let Line { id, room: conversation, person, agent, out, notice, .. } = row.line.clone();
    let filed = FiledLine { id, seq, conversation, person, agent, out, notice, silent, at };
    cx.note(Note::LineFiled(Arc::new(filed)));
    evict(cx, &row)?;
    Ok((seq, row))
}

fn store(cx: &mut Ctx<'_, '_>, seq: u64, row: &Row) -> Result<(), StoreDown> {
    let number = Key::new().num(seq);
    let line = &row.line;
    put(cx.txn, seq, row);
    rows::put(cx.txn, LINE_ID, &Key::new().text(line.id.as_str()), &seq);
    rows::put(cx.txn, ORDER, &Key::new().num(row.room).num(seq), &!line.out);
    rows::mark(cx.txn, THREAD, &thread_key(row, seq));
    rows::mark(cx.txn, PERSON, &Key::new().text(line.person.as_str()).num(seq));
    texts::add(cx.txn, seq, row.room, &line.text)?;
    let sender = Key::new().text(line.person.as_str());
    let mut held = rows::get::<Held>(cx.txn, HELD, &sender)?.unwrap_or_default();
    held.lines += 1;
    held.bytes += line.text.len() as u64;
    rows::put(cx.txn, HELD, &sender, &held);
    let days = days(cx.facts.config.retention().transcript_days);
    due::at(cx.txn, row.at.plus(days), due::Kind::Line, &number);
    Ok(())
}

fn thread_key(row: &Row, seq: u64) -> Key {
    let first = row.line.thread.unwrap_or(row.line.id);
    Key::new().num(row.room).text(first.as_str()).num(seq)
}

/// §6.8 the caps of a sender: its oldest lines go first.
fn evict(cx: &mut Ctx<'_, '_>, new: &Row) -> Result<(), StoreDown> {
    let sender = Key::new().text(new.line.person.as_str());
    for _ in 0..EVICT {
        if !rows::get::<Held>(cx.txn, HELD, &sender)?.is_some_and(Held::is_over) {
            return Ok(());
        }
        let oldest = cx.txn.prefix(PERSON, sender.as_slice(), 1)?;
        let Some((key, _)) = oldest.first() else { return Ok(()) };
        delete(cx, rows::last_num(key))?;
    }
    Ok(())
}

/// Deletes a line and everything kept about it.
pub(super) fn delete(cx: &mut Ctx<'_, '_>, seq: u64) -> Result<(), StoreDown> {
    let number = Key::new().num(seq);
    let Some(row) = row(cx.txn, seq)? else { return Ok(()) };
    let line = &row.line;
    rows::delete(cx.txn, LINE, &number);
    rows::delete(cx.txn, LINE_ID, &Key::new().text(line.id.as_str()));
    rows::delete(cx.txn, ORDER, &Key::new().num(row.room).num(seq));
    rows::delete(cx.txn, THREAD, &thread_key(&row, seq));
    rows::delete(cx.txn, PERSON, &Key::new().text(line.person.as_str()).num(seq));
    texts::remove(cx.txn, seq)?;
    changes::forget(cx.txn, row.changed);
    delivery::forget(cx.txn, &line.id)?;
    let sender = Key::new().text(line.person.as_str());
    let mut held = rows::get::<Held>(cx.txn, HELD, &sender)?.unwrap_or_default();
    held.lines = held.lines.saturating_sub(1);
    held.bytes = held.bytes.saturating_sub(line.text.len() as u64);
    if held.lines == 0 {
        rows::delete(cx.txn, HELD, &sender);
    } else {
        rows::put(cx.txn, HELD, &sender, &held);
    }
    if let Some(room) = rooms::get(cx.txn, row.room)? {
        leave_room(cx.txn, seq, &row, room)?;
    }
    if !line.out && !line.notice {
        cx.note(Note::LineGone(line.id));
    }
    Ok(())
}

/// The room without a line that is deleted.
fn leave_room(txn: &mut Txn<'_>, seq: u64, row: &Row, mut room: Room) -> Result<(), StoreDown> {
    room.unread = room.unread.saturating_sub(u64::from(row.line.is_unread(seq, room.read_up_to)));
    if room.last.is_some_and(|(last, _)| last == seq) {
        let before = txn.prefix_rev(ORDER, Key::new().num(row.room).as_slice(), 1)?;
        let before = before.first().map(|(key, _)| rows::last_num(key));
        room.last = match before {
            Some(seq) => self::row(txn, seq)?.map(|row| (seq, row.at)),
            None => None,
        };
    }
    rooms::put(txn, row.room, &room)
}

/// A line's retention may be over; not when `retention.transcriptDays` was raised since.
pub(crate) fn retention_over(cx: &mut Ctx<'_, '_>, key: &[u8]) -> Result<(), StoreDown> {
    let seq = rows::last_num(key);
    let Some(row) = row(cx.txn, seq)? else { return Ok(()) };
    let end = row.at.plus(days(cx.facts.config.retention().transcript_days));
    if end > cx.now() {
        due::at(cx.txn, end, due::Kind::Line, &Key::new().num(seq));
        return Ok(());
    }
    delete(cx, seq)
}
