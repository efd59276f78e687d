//! What the tests of delegation, tasks and consent share.

use messaging_proto::address::SessionAddress;
use messaging_proto::hash::{Hash, RealmId, sha256};
use messaging_proto::key::{EncKey, MachineId, SigningKey};
use messaging_proto::name::{Label, PersonId};
use messaging_proto::realm::{Anchor, Device, Head, RealmKind, RealmView, Relation, Role};
use messaging_proto::ulid::Ulid;
use std::collections::BTreeMap;

pub fn person(text: &str) -> PersonId {
    PersonId::parse(text).unwrap()
}

pub fn ulid(text: &str) -> Ulid {
    Ulid::parse(text).unwrap()
}

pub fn machine(text: &str) -> MachineId {
    MachineId::parse(text).unwrap()
}

pub fn address(text: &str) -> SessionAddress {
    SessionAddress::parse(text).unwrap()
}

/// A key whose seed is told apart by one number.
pub fn key(number: u8) -> SigningKey {
    SigningKey::from_seed([number; 32])
}

/// The key of a seed in hexadecimal.
pub fn key_of(hex: &str) -> SigningKey {
    let bytes = (0..64).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
    SigningKey::from_seed(bytes.collect::<Vec<_>>().try_into().unwrap())
}

/// A vector file as JSON though it escapes lone surrogates, which no string holds: those stay escaped.
pub fn with_lone_surrogates(file: &str) -> serde_json::Value {
    let file = file.replace("\\ud800", "\\\\ud800").replace("\\udc00", "\\\\udc00");
    serde_json::from_str(&file).unwrap()
}

/// The wire text of a value from [`with_lone_surrogates`].
pub fn wire_text(value: &serde_json::Value) -> String {
    value.to_string().replace("\\\\ud800", "\\ud800").replace("\\\\udc00", "\\udc00")
}

/// A realm of a few machines.
pub struct View {
    pub realm: RealmId,
    pub machines: BTreeMap<MachineId, (PersonId, Label)>,
}

impl View {
    pub fn new() -> Self {
        Self { realm: sha256(b"a realm"), machines: BTreeMap::new() }
    }

    pub fn add(&mut self, machine: MachineId, person: &str, label: &str) {
        self.machines.insert(machine, (self::person(person), Label::parse(label).unwrap()));
    }
}

impl RealmView for View {
    fn realm(&self) -> RealmId {
        self.realm
    }

    fn kind(&self) -> RealmKind {
        RealmKind::Roster
    }

    fn device(&self, machine: &MachineId) -> Option<Device<'_>> {
        let (person, label) = self.machines.get(machine)?;
        Some(Device { machine: *machine, enc: EncKey([0; 32]), person, role: Role::Member, label })
    }

    fn anchor(&self) -> Anchor {
        Anchor::Roster(Head { seq: 0, hash: Hash([0; 32]) })
    }

    fn relate(&self, _: &Anchor) -> Relation {
        Relation::Consistent
    }
}
