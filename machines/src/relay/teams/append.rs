//! Founding a team and appending to its roster (contract wire-core §7.4).

use super::{Judged, Team, Teams, write_entry};
use crate::relay::schema::{SEAT, Seat, TEAM, seat_key};
use crate::store::{StoreDown, Txn};
use messaging_proto::Code;
use messaging_proto::hash::{RealmId, sha256};
use messaging_proto::json::{FromValue, Value, canonicalize};
use messaging_proto::key::{ByText, MachineId};
use messaging_proto::limits::ROSTER_ENTRY_BYTES;
use messaging_proto::realm::Head;
use messaging_proto::roster::{ApplyOptions, Entry, Op, Roster};
use messaging_proto::time::Wall;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An entry whose shape and size hold.
pub(in crate::relay) struct Shaped {
    pub(in crate::relay) entry: Entry,
    /// The canonical text.
    text: String,
}

impl Shaped {
    /// The id of the team that this genesis would found.
    pub(in crate::relay) fn hash(&self) -> RealmId {
        sha256(self.text.as_bytes())
    }
}

/// Steps 2 and 3 of `Roster.apply`, which come before what the relay itself asks of an entry.
///
/// # Errors
/// [`Code::InvalidRequest`] or [`Code::TooLarge`].
pub(in crate::relay) fn shape(raw: &Value) -> Result<Shaped, Code> {
    let entry = Entry::from_value(raw).map_err(|_| Code::InvalidRequest)?;
    if entry.admitted().is_some_and(|(key, _)| !key.is_usable()) {
        return Err(Code::InvalidRequest);
    }
    let text = canonicalize(raw).map_err(|_| Code::InvalidRequest)?;
    if text.len() > ROSTER_ENTRY_BYTES {
        return Err(Code::TooLarge);
    }
    Ok(Shaped { entry, text })
}

/// An entry that a roster took.
pub(in crate::relay) struct Appended {
    pub(in crate::relay) head: Head,
    /// Its canonical text.
    pub(in crate::relay) text: Arc<str>,
    /// The machine it removed, and the seat it had.
    pub(in crate::relay) removed: Option<(MachineId, Seat)>,
}

impl Teams {
    /// Whether the relay has a team.
    pub(in crate::relay) fn knows(&self, txn: &Txn<'_>, id: &RealmId) -> Result<bool, StoreDown> {
        Ok(self.cache.contains_key(id) || txn.get(TEAM, id.as_bytes())?.is_some())
    }

    /// Founds a team by its genesis, whose shape holds and which the relay lets in.
    pub(in crate::relay) fn found(&mut self, txn: &mut Txn<'_>, now: Wall, raw: &Value) -> Judged<Head> {
        let mut roster = Roster::new();
        let head = match roster.apply(raw, ApplyOptions::appended(now)) {
            Ok(head) => head,
            Err(error) => return Ok(Err(error.code())),
        };
        let text = roster.entry(head.seq).map(|entry| Arc::clone(entry.text())).ok_or(StoreDown)?;
        let id = head.hash;
        write_entry(txn, &id, head, &text);
        self.counts.teams += 1;
        let founders: Vec<MachineId> = roster.members().map(|member| member.machine).collect();
        let seats: BTreeMap<ByText, Seat> =
            founders.into_iter().map(|machine| (ByText(machine), self.seat(txn, &id, &machine))).collect();
        self.save(txn);
        self.keep(id, Team { roster, seats, used: self.clock, links: 0 }, head);
        Ok(Ok(head))
    }

    /// Appends an entry to a team's roster. Nothing when the relay does not have the team.
    pub(in crate::relay) fn append(
        &mut self,
        txn: &mut Txn<'_>,
        now: Wall,
        id: &RealmId,
        raw: &Value,
        op: &Op,
    ) -> Result<Option<Result<Appended, Code>>, StoreDown> {
        let Some(team) = self.get_mut(txn, id)? else { return Ok(None) };
        let head = match team.roster.apply(raw, ApplyOptions::appended(now)) {
            Ok(head) => head,
            Err(error) => return Ok(Some(Err(error.code()))),
        };
        let text = team.roster.entry(head.seq).map(|entry| Arc::clone(entry.text())).ok_or(StoreDown)?;
        let mut removed = None;
        match op {
            Op::MemberRemove { machine } => {
                removed = team.seats.remove(&ByText(*machine)).map(|seat| (*machine, seat));
                txn.delete(SEAT, &seat_key(id, machine));
            }
            Op::InviteRedeem { member, .. } | Op::MemberAdd { member } => {
                let seat = self.seat(txn, id, &member.machine);
                if let Some(team) = self.cache.get_mut(id) {
                    team.seats.insert(ByText(member.machine), seat);
                }
            }
            Op::Genesis { .. }
            | Op::InviteCreate { .. }
            | Op::InviteRevoke { .. }
            | Op::MemberRole { .. }
            | Op::MemberRekey { .. } => {}
        }
        self.entries += 1;
        write_entry(txn, id, head, &text);
        Ok(Some(Ok(Appended { head, text, removed })))
    }
}
