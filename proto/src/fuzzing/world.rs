//! A small realm for targets that need one: alice with two machines, bob with one.

use crate::hash::{Hash, RealmId};
use crate::key::{EncSecret, MachineId, SigningKey};
use crate::name::{Label, PersonId};
use crate::realm::{Anchor, Device, Head, RealmKind, RealmView, Relation, Role};

/// One machine of the realm, with its private keys.
#[derive(Debug)]
pub struct Machine {
    /// Signs.
    pub signing: SigningKey,
    /// Opens.
    pub enc: EncSecret,
    person: PersonId,
    label: Label,
}

impl Machine {
    /// As the realm shows it.
    #[must_use]
    pub fn device(&self) -> Device<'_> {
        Device {
            machine: self.signing.machine(),
            enc: self.enc.public(),
            person: &self.person,
            role: Role::Member,
            label: &self.label,
        }
    }
}

/// The realm. Every machine is current, and its chain has two entries.
#[derive(Debug)]
pub struct World {
    /// Two of alice's, then one of bob's.
    pub machines: Vec<Machine>,
}

impl Default for World {
    fn default() -> Self {
        let names = [("alice", "laptop"), ("alice", "desk"), ("bob", "laptop")];
        let machines = (1..).zip(names).filter_map(|(seed, (person, label))| {
            Some(Machine {
                signing: SigningKey::from_seed([seed; 32]),
                enc: EncSecret::from_bytes([seed; 32]),
                person: PersonId::parse(person)?,
                label: Label::parse(label)?,
            })
        });
        Self { machines: machines.collect() }
    }
}

impl RealmView for World {
    fn realm(&self) -> RealmId {
        Hash([1; 32])
    }

    fn kind(&self) -> RealmKind {
        RealmKind::Roster
    }

    fn device(&self, machine: &MachineId) -> Option<Device<'_>> {
        self.machines.iter().find(|one| one.signing.machine() == *machine).map(Machine::device)
    }

    fn anchor(&self) -> Anchor {
        Anchor::Roster(Head { seq: 1, hash: Hash([2; 32]) })
    }

    fn relate(&self, anchor: &Anchor) -> Relation {
        match anchor.head().map(|head| (head.seq, head.hash)) {
            Some((0, mine)) if mine == self.realm() => Relation::Consistent,
            Some((0, _)) => Relation::Diverged { mine: self.realm() },
            Some((1, Hash(mine))) if mine == [2; 32] => Relation::Consistent,
            Some((1, _)) => Relation::Diverged { mine: Hash([2; 32]) },
            _ => Relation::Ahead,
        }
    }
}
