//! A roster as a realm (`messaging/1 §5`, "Realm and anchor").

use super::{Head, Relation, Roster};
use crate::hash::{Hash, RealmId};
use crate::key::MachineId;
use crate::realm::{Anchor, Device, RealmKind, RealmView};

/// Where `head` lies relative to the roster's own chain. Every head is ahead of a roster without entries.
#[must_use]
pub fn head_relation(roster: &Roster, head: &Head) -> Relation {
    match roster.hash_at(head.seq) {
        None => Relation::Ahead,
        Some(mine) if mine == head.hash => Relation::Consistent,
        Some(mine) => Relation::Diverged { mine },
    }
}

/// Of a roster with entries. One without has no members, so nothing verifies against it; its realm and its
/// head then are all zeros, which is no hash of anything.
impl RealmView for Roster {
    fn realm(&self) -> RealmId {
        self.team().unwrap_or(Hash([0; 32]))
    }

    fn kind(&self) -> RealmKind {
        RealmKind::Roster
    }

    fn device(&self, machine: &MachineId) -> Option<Device<'_>> {
        self.member(machine).map(|member| Device {
            machine: member.machine,
            enc: member.enc,
            person: &member.person,
            role: member.role,
            label: &member.label,
        })
    }

    fn anchor(&self) -> Anchor {
        Anchor::Roster(self.head().unwrap_or(Head { seq: 0, hash: Hash([0; 32]) }))
    }

    fn relate(&self, anchor: &Anchor) -> Relation {
        match anchor {
            Anchor::Roster(head) => head_relation(self, head),
            Anchor::Epoch { .. } => Relation::Ahead,
        }
    }
}
