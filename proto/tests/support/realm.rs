//! A roster realm for tests: replays entries without judging them. Shares nothing with the crate's roster.

use messaging_proto::hash::{Hash, RealmId, hash_value};
use messaging_proto::json::{Fields, Value};
use messaging_proto::key::{EncKey, EncSecret, MachineId, SigningKey};
use messaging_proto::name::{Label, PersonId};
use messaging_proto::realm::{Anchor, Device, Head, RealmKind, RealmView, Relation, Role};
use std::collections::BTreeMap;

#[derive(Clone)]
pub struct Member {
    pub machine: MachineId,
    pub enc: EncKey,
    pub person: PersonId,
    pub role: Role,
    pub label: Label,
}

pub struct TestRealm {
    pub kind: RealmKind,
    pub members: BTreeMap<MachineId, Member>,
    pub hashes: Vec<Hash>,
}

pub fn member(value: &Value) -> Member {
    let fields = Fields::of(value).unwrap();
    Member {
        machine: fields.req("machine").unwrap(),
        enc: fields.req("enc").unwrap(),
        person: fields.req("person").unwrap(),
        role: fields.req("role").unwrap(),
        label: fields.req("label").unwrap(),
    }
}

impl Member {
    pub fn device(&self) -> Device<'_> {
        let Self { machine, enc, person, role, label } = self;
        Device { machine: *machine, enc: *enc, person, role: *role, label }
    }
}

impl TestRealm {
    pub fn replay(entries: &[Value]) -> Self {
        let mut members: BTreeMap<MachineId, Member> = BTreeMap::new();
        for entry in entries {
            let fields = Fields::of(entry).unwrap();
            match entry.get("op").unwrap().as_str().unwrap() {
                "genesis" => {
                    let founder = member(entry.get("founder").unwrap());
                    members.insert(founder.machine, founder);
                }
                "member.add" | "invite.redeem" => {
                    let added = member(entry.get("member").unwrap());
                    members.insert(added.machine, added);
                }
                "member.remove" => {
                    members.remove(&fields.req::<MachineId>("machine").unwrap());
                }
                "member.rekey" => {
                    let machine: MachineId = fields.req("machine").unwrap();
                    members.get_mut(&machine).unwrap().enc = fields.req("enc").unwrap();
                }
                "member.role" => {
                    let machine: MachineId = fields.req("machine").unwrap();
                    members.get_mut(&machine).unwrap().role = fields.req("role").unwrap();
                }
                "invite.create" | "invite.revoke" => {}
                other => panic!("{other}"),
            }
        }
        let hashes = entries.iter().map(|entry| hash_value(entry).unwrap()).collect();
        Self { kind: RealmKind::Roster, members, hashes }
    }

    /// Two persons, alice with two machines and bob with one; keys from small seeds.
    pub fn small() -> Self {
        let member = |seed: u8, person: &str, label: &str| Member {
            machine: signer(seed).machine(),
            enc: secret(seed).public(),
            person: PersonId::parse(person).unwrap(),
            role: Role::Member,
            label: Label::parse(label).unwrap(),
        };
        let members = [member(1, "alice", "laptop"), member(2, "alice", "desk"), member(3, "bob", "laptop")];
        Self {
            kind: RealmKind::Roster,
            members: members.into_iter().map(|member| (member.machine, member)).collect(),
            hashes: vec![Hash([7; 32]), Hash([8; 32])],
        }
    }
}

pub fn signer(seed: u8) -> SigningKey {
    SigningKey::from_seed([seed; 32])
}

pub fn secret(seed: u8) -> EncSecret {
    EncSecret::from_bytes([seed | 0x40; 32])
}

impl RealmView for TestRealm {
    fn realm(&self) -> RealmId {
        self.hashes[0]
    }

    fn kind(&self) -> RealmKind {
        self.kind
    }

    fn device(&self, machine: &MachineId) -> Option<Device<'_>> {
        self.members.get(machine).map(Member::device)
    }

    fn anchor(&self) -> Anchor {
        let seq = self.hashes.len() as u64 - 1;
        Anchor::Roster(Head { seq, hash: *self.hashes.last().unwrap() })
    }

    fn relate(&self, anchor: &Anchor) -> Relation {
        let head = anchor.head().unwrap();
        match self.hashes.get(usize::try_from(head.seq).unwrap()) {
            None => Relation::Ahead,
            Some(hash) if *hash == head.hash => Relation::Consistent,
            Some(hash) => Relation::Diverged { mine: *hash },
        }
    }
}
