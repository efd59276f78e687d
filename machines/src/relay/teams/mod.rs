//! The teams of a relay: each team's chain of entries, and the seats of its members (`messaging/1 §4`, `§7`).
//!
//! A parsed roster is a cache of the team's rows, kept by the head it leads to and checked against the stored
//! head when it is built. Only [`Teams::append`] and [`Teams::found`] move a head, and they write the row and the
//! cache in one step.

mod append;
mod join;
mod replays;

pub(super) use append::{Appended, Shaped, shape};
pub(super) use join::{check_join, page};
pub(super) use replays::Asker;

use super::queue::recount;
use super::schema::{
    COUNT, COUNT_TEAMS, ROSTER, SEAT, Seat, TEAM, TeamCounts, TeamRow, roster_key, seat_key,
};
use crate::store::{StoreDown, Table, Txn};
use messaging_proto::Code;
use messaging_proto::hash::RealmId;
use messaging_proto::key::{ByText, MachineId};
use messaging_proto::realm::Head;
use messaging_proto::roster::Roster;
use messaging_proto::time::Mono;
use replays::Replays;
use std::collections::{BTreeMap, BTreeSet};

/// Entries of parsed rosters kept before one is forgotten: of the teams with nobody online, the one that was asked
/// for longest ago.
const ENTRIES: u64 = 50_000;

/// What a rule says of a request, when the store answers.
pub(super) type Judged<T> = Result<Result<T, Code>, StoreDown>;

/// A team as it is at its head.
pub(super) struct Team {
    pub(super) roster: Roster,
    /// The seat of each current member, by the text of its id.
    pub(super) seats: BTreeMap<ByText, Seat>,
    used: u64,
    /// Members online. While there are any the team stays parsed: two large teams whose members take turns would
    /// otherwise have the relay replay both, over and over.
    links: u64,
}

impl Team {
    /// The newest entry. A team has at least its genesis.
    pub(super) fn head(&self) -> Result<Head, StoreDown> {
        self.roster.head().ok_or(StoreDown)
    }

    /// The seat of a current member.
    pub(super) fn seat(&self, machine: &MachineId) -> Option<Seat> {
        self.seats.get(&ByText(*machine)).copied()
    }

    /// Reads a team; nothing when its roster does not read.
    fn load(txn: &Txn<'_>, id: &RealmId, head: Head) -> Result<Option<Self>, StoreDown> {
        let rows = txn.prefix(ROSTER, id.as_bytes(), usize::MAX)?;
        let texts = rows.iter().map(|(_, text)| std::str::from_utf8(text).unwrap_or_default());
        // The head's hash covers every entry before it: rows that lead elsewhere are no store of ours.
        let roster = Roster::replay_texts(texts).ok().filter(|roster| roster.head() == Some(head));
        let Some(roster) = roster else { return Ok(None) };
        let seat = |(key, row): (Vec<u8>, Vec<u8>)| {
            let machine = key.get(32..)?.try_into().map(MachineId).ok()?;
            Some((ByText(machine), txn.noting(SEAT, &key, Seat::decode(&row))?))
        };
        let seats = txn.prefix(SEAT, id.as_bytes(), usize::MAX)?.into_iter().filter_map(seat).collect();
        Ok(Some(Self { roster, seats, used: 0, links: 0 }))
    }

    const fn entries(head: Head) -> u64 {
        head.seq.saturating_add(1)
    }
}

pub(super) struct Teams {
    counts: TeamCounts,
    cache: BTreeMap<RealmId, Team>,
    /// Entries of the cached rosters.
    entries: u64,
    /// Entries that are kept of teams with nobody online.
    most: u64,
    clock: u64,
    replays: Replays,
    /// Teams whose rows do not read.
    broken: BTreeSet<RealmId>,
}

impl Teams {
    /// The teams as the store holds them; none is read yet.
    pub(super) fn start(txn: &Txn<'_>) -> Result<Self, StoreDown> {
        let counts = match txn.get(COUNT, COUNT_TEAMS)? {
            Some(row) => match txn.noting(COUNT, COUNT_TEAMS, TeamCounts::decode(&row)) {
                Some(counts) => counts,
                None => recount::teams(txn)?,
            },
            None => TeamCounts::default(),
        };
        Ok(Self {
            counts,
            cache: BTreeMap::new(),
            entries: 0,
            most: ENTRIES,
            clock: 0,
            replays: Replays::default(),
            broken: BTreeSet::new(),
        })
    }

    /// Whether a team that the relay has cannot be served, as [`Self::get`] found: its rows do not read. It is
    /// answered with `internal`, and no other team notices.
    pub(super) fn is_broken(&self, id: &RealmId) -> bool {
        self.broken.contains(id)
    }

    /// Notes once that a team's rows do not read.
    fn broken(&mut self, txn: &Txn<'_>, id: &RealmId, table: Table) {
        if self.broken.insert(*id) {
            txn.damaged(table, id.as_bytes());
        }
    }

    /// A team, if the relay has it and it reads.
    pub(super) fn get(&mut self, txn: &Txn<'_>, id: &RealmId) -> Result<Option<&Team>, StoreDown> {
        Ok(self.get_mut(txn, id)?.map(|team| &*team))
    }

    fn get_mut(&mut self, txn: &Txn<'_>, id: &RealmId) -> Result<Option<&mut Team>, StoreDown> {
        self.clock += 1;
        if !self.cache.contains_key(id) {
            if self.is_broken(id) {
                return Ok(None);
            }
            let Some(row) = txn.get(TEAM, id.as_bytes())? else { return Ok(None) };
            let Some(head) = TeamRow::decode(&row).map(|row| row.head) else {
                self.broken(txn, id, TEAM);
                return Ok(None);
            };
            match Team::load(txn, id, head)? {
                Some(team) => self.keep(*id, team, head),
                None => self.broken(txn, id, ROSTER),
            }
        }
        let Some(team) = self.cache.get_mut(id) else { return Ok(None) };
        team.used = self.clock;
        Ok(Some(team))
    }

    /// Keeps a parsed team, and forgets others for it.
    fn keep(&mut self, id: RealmId, team: Team, head: Head) {
        self.entries += Team::entries(head);
        while self.entries > self.most {
            let idle = self.cache.iter().filter(|(_, team)| team.links == 0);
            let Some(oldest) = idle.min_by_key(|(_, team)| team.used).map(|(id, _)| *id) else { break };
            let gone = self.cache.remove(&oldest).and_then(|team| team.roster.head());
            self.entries = self.entries.saturating_sub(gone.map_or(0, Team::entries));
        }
        self.cache.insert(id, team);
    }

    /// Whether a machine is a current member, told without replaying the roster of a team that is not parsed.
    pub(super) fn has_seat(
        &self,
        txn: &Txn<'_>,
        id: &RealmId,
        machine: &MachineId,
    ) -> Result<bool, StoreDown> {
        Ok(match self.cache.get(id) {
            // By the roster: a member whose seat does not read is one.
            Some(team) => team.roster.member(machine).is_some(),
            None => txn.get(SEAT, &seat_key(id, machine))?.is_some(),
        })
    }

    /// Milliseconds until [`Self::get`] may be asked for a team on behalf of a connection before its `hello`. When
    /// it is 0 a replay that the question needs is paid for.
    pub(super) fn wait_ms(
        &mut self,
        txn: &Txn<'_>,
        id: &RealmId,
        asker: Asker,
        now: Mono,
    ) -> Result<u64, StoreDown> {
        if self.cache.contains_key(id) || self.is_broken(id) {
            return Ok(0);
        }
        let Some(row) = txn.get(TEAM, id.as_bytes())? else { return Ok(0) };
        let Some(head) = TeamRow::decode(&row).map(|row| row.head) else { return Ok(0) };
        Ok(self.replays.wait_ms(asker, Team::entries(head), now))
    }

    /// A member came online.
    pub(super) fn link(&mut self, id: &RealmId) {
        if let Some(team) = self.cache.get_mut(id) {
            team.links += 1;
        }
    }

    /// A member that came online is gone.
    pub(super) fn unlink(&mut self, id: &RealmId) {
        if let Some(team) = self.cache.get_mut(id) {
            team.links = team.links.saturating_sub(1);
        }
    }

    /// How many teams are stored.
    pub(super) const fn count(&self) -> u64 {
        self.counts.teams
    }

    /// The seat for a machine that becomes a member.
    fn seat(&mut self, txn: &mut Txn<'_>, team: &RealmId, machine: &MachineId) -> Seat {
        let seat = Seat(self.counts.next_seat);
        self.counts.next_seat += 1;
        txn.put(SEAT, &seat_key(team, machine), &seat.encode());
        self.save(txn);
        seat
    }

    fn save(&self, txn: &mut Txn<'_>) {
        txn.put(COUNT, COUNT_TEAMS, &self.counts.encode());
    }
}

fn write_entry(txn: &mut Txn<'_>, team: &RealmId, head: Head, text: &str) {
    txn.put(ROSTER, &roster_key(team, head.seq), text.as_bytes());
    txn.put(TEAM, team.as_bytes(), &TeamRow { head }.encode());
}

#[cfg(test)]
mod tests;
