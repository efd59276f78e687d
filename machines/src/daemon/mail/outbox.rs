//! Envelopes on their way out (`messaging/1 §8.2`, `§8.4`; contract ipc §11.3).
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `outbox` | device ‖ number | [`Queued`]: for the relay, until it is acked, finally refused or over |
//! | `outbox_id` | envelope id | its device and number |
//! | `local` | number | [`Queued`]: for a session of this machine |
//!
//! Every recipient has a lane of its own, so that one whose queue at the relay is full holds up no other. What is in
//! flight and what waits for a retry is volatile: a new link, and a new machine, start from the first row. The relay
//! knows a resend by its id and content.

use crate::daemon::ctx::Ctx;
use crate::daemon::due;
use crate::daemon::rows::{self, Key};
use crate::store::{Range, StoreDown, Table, Txn, prefix_end};
use messaging_proto::frame::ClientOutbound;
use messaging_proto::key::MachineId;
use messaging_proto::time::{Mono, Wall};
use messaging_proto::ulid::Ulid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

pub(crate) const OUTBOX: Table = Table("outbox");
pub(crate) const BY_ID: Table = Table("outbox_id");
pub(crate) const LOCAL: Table = Table("local");

/// The most envelopes the relay has not answered yet.
const WINDOW: usize = 64;
/// Rows read of a lane at a time: each may hold a whole envelope.
const READ: usize = 8;
/// The first wait after a refusal that says none, in milliseconds; it doubles.
const RETRY_MIN_MS: u64 = 1_000;
/// The longest such wait, in milliseconds.
const RETRY_MAX_MS: u64 = 60_000;

/// An envelope to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Queued {
    /// Its id.
    pub(crate) id: Ulid,
    /// When it ends.
    pub(crate) exp: Wall,
    /// When it was queued.
    pub(crate) at: Wall,
    /// Whether it goes out only after the ordered ones before it for the same machine were taken.
    pub(crate) ordered: bool,
    /// Its canonical text.
    pub(crate) env: String,
}

/// Adds a row after the others of its lane.
pub(crate) fn add(txn: &mut Txn<'_>, device: &MachineId, row: &Queued, local: bool) -> Result<(), StoreDown> {
    let number = rows::next(txn, "outbox")?;
    if local {
        rows::put(txn, LOCAL, &Key::new().num(number), row);
    } else {
        rows::put(txn, OUTBOX, &lane_key(device).num(number), row);
        rows::put(txn, BY_ID, &id_key(&row.id), &(*device, number));
        rows::count(txn, "outbox_rows", 1)?;
        rows::count(txn, &lane_count(device), 1)?;
    }
    due::at(txn, row.exp, due::Kind::Envelope, &id_key(&row.id));
    Ok(())
}

/// How many envelopes wait for the relay, and since when the first does (contract ipc §3.2, `outbox`).
pub(crate) fn waiting(txn: &Txn<'_>) -> Result<(u64, Option<Wall>), StoreDown> {
    let mut oldest: Option<Wall> = None;
    let mut lane = None;
    while let Some((device, first)) = next_lane(txn, lane.as_ref())? {
        let at = first.at;
        oldest = Some(oldest.map_or(at, |oldest| oldest.min(at)));
        lane = Some(device);
    }
    Ok((rows::counted(txn, "outbox_rows")?, oldest))
}

/// How many envelopes for a machine wait for the relay.
pub(crate) fn waiting_for(txn: &Txn<'_>, device: &MachineId) -> Result<u64, StoreDown> {
    rows::counted(txn, &lane_count(device))
}

/// The name of the count of a lane's rows.
fn lane_count(device: &MachineId) -> String {
    format!("outbox_rows {device}")
}

/// The first lane after `after`, and its first row.
fn next_lane(txn: &Txn<'_>, after: Option<&MachineId>) -> Result<Option<(MachineId, Queued)>, StoreDown> {
    let end = after.map(|device| prefix_end(lane_key(device).as_slice()));
    let from = match &end {
        None => Bound::Unbounded,
        Some(Some(end)) => Bound::Included(end.as_slice()),
        Some(None) => return Ok(None),
    };
    let range = Range { from, to: Bound::Unbounded, reverse: false, limit: 1 };
    let rows = rows::readable::<Queued>(txn.range(OUTBOX, range)?);
    Ok(rows.into_iter().next().and_then(|(key, row)| Some((MachineId(*key.first_chunk()?), row))))
}

/// Removes an envelope that nothing more is to be done for, and says where it was.
pub(crate) fn drop_envelope(txn: &mut Txn<'_>, id: &Ulid) -> Result<Option<(MachineId, u64)>, StoreDown> {
    let Some((device, number)) = rows::get::<(MachineId, u64)>(txn, BY_ID, &id_key(id))? else {
        return Ok(None);
    };
    rows::delete(txn, BY_ID, &id_key(id));
    rows::delete(txn, OUTBOX, &lane_key(&device).num(number));
    rows::count(txn, "outbox_rows", -1)?;
    rows::count(txn, &lane_count(&device), -1)?;
    Ok(Some((device, number)))
}

/// The first envelopes for this machine itself, from after `after`.
pub(crate) fn local_after(txn: &Txn<'_>, after: u64) -> Result<Vec<(u64, Queued)>, StoreDown> {
    read(txn, LOCAL, &Key::new(), after + 1)
}

/// Removes an envelope for this machine itself.
pub(crate) fn drop_local(txn: &mut Txn<'_>, number: u64) {
    rows::delete(txn, LOCAL, &Key::new().num(number));
}

/// Rows under `prefix` from the number `from`.
fn read(txn: &Txn<'_>, table: Table, prefix: &Key, from: u64) -> Result<Vec<(u64, Queued)>, StoreDown> {
    let start = prefix.clone().num(from);
    let end = prefix_end(prefix.as_slice());
    let range = Range {
        from: Bound::Included(start.as_slice()),
        to: end.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
        reverse: false,
        limit: READ,
    };
    let rows = rows::readable::<Queued>(txn.range(table, range)?);
    Ok(rows.into_iter().map(|(key, row)| (rows::last_num(&key), row)).collect())
}

/// The sending side of one recipient.
#[derive(Debug, Default)]
struct Lane {
    /// The first number not looked at on this link.
    next: u64,
    /// Sent and not answered: number → whether it is ordered.
    flying: BTreeMap<u64, bool>,
    /// When the lane goes on after a refusal.
    until: Option<Mono>,
    /// Refusals in a row.
    refusals: u32,
}

/// The sending side of the link.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    lanes: BTreeMap<MachineId, Lane>,
    /// The lane served last: the next one goes first.
    served: Option<MachineId>,
}

impl Outbox {
    /// A link is up: everything unanswered goes out again, but for lanes that were told to wait.
    pub(crate) fn restart(&mut self) {
        self.lanes.retain(|_, lane| lane.until.is_some());
        for lane in self.lanes.values_mut() {
            lane.next = 0;
            lane.flying.clear();
        }
    }

    /// When a refused lane goes on.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        self.lanes.values().filter_map(|lane| lane.until).min()
    }

    /// Sends what may go out, a piece of each lane in turn.
    pub(crate) fn pump(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let now = cx.mono();
        for lane in self.lanes.values_mut() {
            lane.until = lane.until.filter(|until| *until > now);
        }
        // §5 "Roster head check": sends wait while a member has seen more of the roster than this machine.
        if !cx.facts.link.up() || cx.facts.realm.paused() {
            return Ok(());
        }
        let mut idle = 0;
        let mut lanes = 1;
        while idle < lanes && self.flying() < WINDOW {
            let Some((device, count)) = self.turn(cx.txn)? else { return Ok(()) };
            lanes = count.max(lanes);
            idle = if self.send_some(cx, device)? { 0 } else { idle + 1 };
        }
        Ok(())
    }

    fn flying(&self) -> usize {
        self.lanes.values().map(|lane| lane.flying.len()).sum()
    }

    /// The lane whose turn it is, and how many there are at least.
    fn turn(&mut self, txn: &Txn<'_>) -> Result<Option<(MachineId, usize)>, StoreDown> {
        let next = match next_lane(txn, self.served.as_ref())? {
            Some((device, _)) => Some(device),
            None => next_lane(txn, None)?.map(|(device, _)| device),
        };
        if let Some(device) = next {
            self.lanes.entry(device).or_default();
            self.served = Some(device);
        }
        Ok(next.map(|device| (device, self.lanes.len())))
    }

    /// Sends the next rows of a lane. Whether it got on.
    fn send_some(&mut self, cx: &mut Ctx<'_, '_>, device: MachineId) -> Result<bool, StoreDown> {
        let room = WINDOW.saturating_sub(self.flying());
        let lane = self.lanes.entry(device).or_default();
        if lane.until.is_some() {
            return Ok(false);
        }
        let (before, mut sent) = (lane.next, 0);
        for (number, row) in read(cx.txn, OUTBOX, &lane_key(&device), lane.next)? {
            if sent >= room || (row.ordered && lane.flying.values().any(|ordered| *ordered)) {
                break;
            }
            lane.next = number + 1;
            // One that is over waits for the calendar, which tells its sender.
            if lane.flying.contains_key(&number) || row.exp <= cx.now() {
                continue;
            }
            cx.send(&ClientOutbound::Send { env: Arc::from(row.env.as_str()) });
            lane.flying.insert(number, row.ordered);
            sent += 1;
        }
        Ok(lane.next > before)
    }

    /// The relay has it: it is the relay's now.
    pub(crate) fn relayed(&mut self, cx: &mut Ctx<'_, '_>, id: &Ulid) -> Result<bool, StoreDown> {
        let Some((device, number)) = drop_envelope(cx.txn, id)? else { return Ok(false) };
        if let Some(lane) = self.lanes.get_mut(&device) {
            lane.refusals = 0;
        }
        self.forget(&device, number);
        Ok(true)
    }

    /// The relay refused it for now: its lane goes on from it after `after_ms`, or after a wait that doubles.
    pub(crate) fn try_again(
        &mut self,
        cx: &Ctx<'_, '_>,
        id: &Ulid,
        after_ms: Option<u64>,
    ) -> Result<(), StoreDown> {
        let Some((device, number)) = rows::get::<(MachineId, u64)>(cx.txn, BY_ID, &id_key(id))? else {
            return Ok(());
        };
        let Some(lane) = self.lanes.get_mut(&device) else { return Ok(()) };
        if lane.flying.remove(&number).is_none() {
            return Ok(());
        }
        lane.next = lane.next.min(number);
        let wait = RETRY_MIN_MS.saturating_mul(1 << lane.refusals.min(6)).min(RETRY_MAX_MS);
        let until = cx.mono().plus(after_ms.unwrap_or(wait).max(1));
        // Several in flight are refused at once: that is one refusal.
        if lane.until.is_none() {
            lane.refusals += 1;
        }
        lane.until = Some(lane.until.map_or(until, |other| other.max(until)));
        Ok(())
    }

    /// Forgets a row that is gone.
    pub(crate) fn forget(&mut self, device: &MachineId, number: u64) {
        if let Some(lane) = self.lanes.get_mut(device) {
            lane.flying.remove(&number);
        }
    }
}

fn lane_key(device: &MachineId) -> Key {
    Key::new().bytes(&device.0)
}

fn id_key(id: &Ulid) -> Key {
    Key::new().text(id.as_str())
}
