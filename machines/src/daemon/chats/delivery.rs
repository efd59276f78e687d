//! How far what this machine sent to other persons came (`messaging/1 §6.8`, "Delivery").
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `chat_copy` | line's id ‖ place of the person ‖ device | [`Copy`]; all of a line until none is pending |
//! | `chat_open` | device ‖ envelope id | nothing: envelopes that are not settled |
//!
//! A copy is settled once: by a receipt of its machine, the relay's refusal, the machine leaving the roster, or the end
//! of its lifetime. Every such news comes through the envelope's record in `mail::sent`.

use super::lines::{self, New};
use super::rooms::{self, With};
use super::{changes, channels};
use crate::daemon::ctx::Ctx;
use crate::daemon::mail::sent;
use crate::daemon::rows::{self, Key};
use crate::machine::Label;
use crate::store::{Range, StoreDown, Table, Txn, prefix_end};
use messaging_proto::Code;
use messaging_proto::channel::{CopyResult, Line, LineState, line_state, refused_change};
use messaging_proto::envelope::End;
use messaging_proto::key::MachineId;
use messaging_proto::name::PersonId;
use messaging_proto::payload::CodeText;
use messaging_proto::task::Stage;
use messaging_proto::ulid::Ulid;
use serde::{Deserialize, Serialize};
use std::ops::Bound;

pub(crate) const COPY: Table = Table("chat_copy");
pub(crate) const OPEN: Table = Table("chat_open");

/// More copies than a line has: 32 persons with their machines.
const COPIES: usize = 4_096;
/// The most envelopes one step settles for machines that left.
const LOST: usize = 128;

/// What a chat envelope is a copy of, as its record in `mail::sent` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopyOf {
    /// The `messageId`.
    line: Ulid,
    /// The person's place among those it goes to.
    place: u64,
    /// Whose machine it goes to.
    person: PersonId,
    /// The channel, of a change of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change: Option<Ulid>,
}

/// One copy to another person's machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Copy {
    person: PersonId,
    result: CopyResult,
}

/// Which line or change copies are made of, for their records.
pub(super) struct Source<'a> {
    /// The `messageId`.
    pub(super) line: Ulid,
    /// The channel, of a change.
    pub(super) change: Option<Ulid>,
    /// The own person, whose machines count for nothing.
    pub(super) own: &'a PersonId,
}

impl Source<'_> {
    /// Notes a copy that is on its way, and says what its envelope is a copy of.
    pub(super) fn open(
        &self,
        txn: &mut Txn<'_>,
        place: u64,
        person: &PersonId,
        device: &MachineId,
        envelope: &Ulid,
    ) -> CopyOf {
        if person != self.own {
            let copy = Copy { person: person.clone(), result: CopyResult::Pending };
            rows::put(txn, COPY, &copy_key(&self.line, place, device), &copy);
            rows::mark(txn, OPEN, &open_key(device, envelope));
        }
        CopyOf { line: self.line, place, person: person.clone(), change: self.change }
    }
}

/// The state of a line that was just sent to these persons.
pub(super) fn first_state<'a>(persons: impl IntoIterator<Item = &'a PersonId>) -> Option<LineState> {
    line_state(false, persons.into_iter().map(|person| (person, &CopyResult::Pending)))
}

/// An envelope reached a stage. Only what settles it means anything here.
pub(crate) fn reached(
    cx: &mut Ctx<'_, '_>,
    envelope: &Ulid,
    device: &MachineId,
    of: &CopyOf,
    stage: Stage,
    code: Option<&CodeText>,
) -> Result<(), StoreDown> {
    let result = match stage {
        Stage::Accepted | Stage::Relayed | Stage::Held => return Ok(()),
        Stage::Delivered | Stage::HandedToAgent | Stage::Read | Stage::Replied => CopyResult::Delivered,
        Stage::Rejected => CopyResult::Rejected(code.cloned().unwrap_or_else(|| Code::Internal.into())),
        Stage::Expired => CopyResult::Expired,
    };
    rows::delete(cx.txn, OPEN, &open_key(device, envelope));
    let key = copy_key(&of.line, of.place, device);
    let Some(mut copy) = rows::get::<Copy>(cx.txn, COPY, &key)? else { return Ok(()) };
    if copy.result != CopyResult::Pending {
        return Ok(());
    }
    copy.result = result;
    rows::put(cx.txn, COPY, &key, &copy);
    let copies = copies(cx.txn, &of.line)?;
    match &of.change {
        None => update_line(cx, &of.line, &copies)?,
        Some(channel) => {
            let to_person = copies.iter().filter(|copy| copy.person == of.person).map(|copy| &copy.result);
            if let Some(code) = refused_change(to_person) {
                file_refusal(cx, channel, &of.person, &code)?;
            }
        }
    }
    if copies.iter().all(|copy| copy.result != CopyResult::Pending) {
        forget(cx.txn, &of.line)?;
    }
    Ok(())
}

fn copies(txn: &Txn<'_>, line: &Ulid) -> Result<Vec<Copy>, StoreDown> {
    let rows = rows::list::<Copy>(txn, COPY, &line_key(line), COPIES)?;
    Ok(rows.into_iter().map(|(_, copy)| copy).collect())
}

/// A line's state by its copies: news when it is another one.
fn update_line(cx: &mut Ctx<'_, '_>, line: &Ulid, copies: &[Copy]) -> Result<(), StoreDown> {
    let Some((seq, mut row)) = lines::by_id(cx.txn, line)? else { return Ok(()) };
    let state = line_state(false, copies.iter().map(|copy| (&copy.person, &copy.result)));
    if state == row.state {
        return Ok(());
    }
    changes::forget(cx.txn, row.changed);
    row.state = state;
    row.changed = changes::next(cx.txn)?;
    lines::put(cx.txn, seq, &row);
    changes::record(cx.txn, row.changed, seq);
    changes::tell(cx, &changes::Told::of_line(seq, &row));
    Ok(())
}

/// §6.8 a person got no copy of a change: the sender's own notice, while the channel is held.
fn file_refusal(
    cx: &mut Ctx<'_, '_>,
    channel: &Ulid,
    person: &PersonId,
    code: &CodeText,
) -> Result<(), StoreDown> {
    let Some(channel) = channels::get(cx.txn, channel)? else { return Ok(()) };
    let Some(room) = rooms::of(cx.txn, &With::Channel(channel.id))? else { return Ok(()) };
    let Some(me) = cx.facts.me() else { return Ok(()) };
    let from = End { person: me.person.clone(), device: me.machine, agent: None };
    let id = Ulid::new(cx.now(), cx.step.draw(Label::MessageId));
    let line = Line::refused(id, &from, &channel, person, code);
    lines::file(cx, New { line, room, state: None, silent: false })?;
    Ok(())
}

/// Forgets the copies of a line that is settled, or gone.
pub(super) fn forget(txn: &mut Txn<'_>, line: &Ulid) -> Result<(), StoreDown> {
    for (key, _) in txn.prefix(COPY, line_key(line).as_slice(), COPIES)? {
        txn.delete(COPY, &key);
    }
    Ok(())
}

/// §6.8 settles what was sent to machines that left the roster, a bounded number of envelopes. Whether more are left.
pub(super) fn settle_lost(cx: &mut Ctx<'_, '_>) -> Result<bool, StoreDown> {
    let mut after: Option<MachineId> = None;
    while let Some(device) = next_device(cx.txn, after.as_ref())? {
        after = Some(device);
        if cx.facts.roster().is_none_or(|roster| roster.member(&device).is_some()) {
            continue;
        }
        let open = cx.txn.prefix(OPEN, &device.0, LOST)?;
        for (key, _) in &open {
            cx.txn.delete(OPEN, key);
            let id = rows::text_at(key, device.0.len()).and_then(|(text, _)| Ulid::parse(&text));
            if let Some(id) = id {
                sent::reach(cx, &id, Stage::Rejected, Some(Code::NotMember.into()))?;
            }
        }
        if open.len() == LOST {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The first machine after `after` that something is open to.
fn next_device(txn: &Txn<'_>, after: Option<&MachineId>) -> Result<Option<MachineId>, StoreDown> {
    let end = after.map(|device| prefix_end(&device.0));
    let from = match &end {
        None => Bound::Unbounded,
        Some(Some(end)) => Bound::Included(end.as_slice()),
        Some(None) => return Ok(None),
    };
    let rows = txn.range(OPEN, Range { from, to: Bound::Unbounded, reverse: false, limit: 1 })?;
    Ok(rows.first().and_then(|(key, _)| key.first_chunk()).map(|bytes| MachineId(*bytes)))
}

fn line_key(line: &Ulid) -> Key {
    Key::new().text(line.as_str())
}

fn copy_key(line: &Ulid, place: u64, device: &MachineId) -> Key {
    line_key(line).num(place).bytes(&device.0)
}

fn open_key(device: &MachineId, envelope: &Ulid) -> Key {
    Key::new().bytes(&device.0).text(envelope.as_str())
}
