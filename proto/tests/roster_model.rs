//! Arbitrary sequences of valid and invalid entries against a model that knows only the rules.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use messaging_proto::Code;
use messaging_proto::json::Value;
use messaging_proto::key::{EncKey, SigningKey};
use messaging_proto::name::{Label, PersonName, TeamName};
use messaging_proto::roster::{ApplyOptions, Author, Fork, Head, InviteState, Member, Role, Roster, genesis};
use messaging_proto::ticket::redeem_proof;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const MACHINES: u8 = 5;
const INVITES: u8 = 4;
const PERSONS: [&str; 2] = ["alice", "bob"];
const LABELS: [&str; 2] = ["desk", "phone"];
const START: u64 = 1_795_000_000_000;
const STEP: u64 = 1_000;

#[derive(Clone, Copy, Debug)]
struct Seat {
    person: usize,
    label: usize,
    role: Role,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Create { invite: u8, person: usize, ttl: u64 },
    Revoke { invite: u8 },
    Redeem { invite: u8, machine: u8, seat: Seat, proven: bool },
    Add { machine: u8, seat: Seat },
    Remove { machine: u8 },
    Role { machine: u8, role: Role },
    Rekey { machine: u8, enc: u8 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Damage {
    None,
    Unsigned,
    Prev,
    Seq,
    Schema,
    Backdated,
    Live,
}

fn seat() -> impl Strategy<Value = Seat> {
    (0..2_usize, 0..2_usize, prop_oneof![Just(Role::Admin), Just(Role::Member)])
        .prop_map(|(person, label, role)| Seat { person, label, role })
}

/// Mostly the first three, so that a team of a few admins lives long enough to lose them.
fn machine() -> impl Strategy<Value = u8> {
    prop_oneof![3 => 0..3_u8, 1 => 0..MACHINES]
}

fn op() -> impl Strategy<Value = Op> {
    let invite = || 0..INVITES;
    prop_oneof![
        (invite(), 0..2_usize, prop_oneof![4 => 0..4 * STEP, 1 => Just(604_800_000), 1 => Just(604_800_001)])
            .prop_map(|(invite, person, ttl)| Op::Create { invite, person, ttl }),
        invite().prop_map(|invite| Op::Revoke { invite }),
        (invite(), machine(), seat(), prop::bool::weighted(0.8))
            .prop_map(|(invite, machine, seat, proven)| { Op::Redeem { invite, machine, seat, proven } }),
        (machine(), seat()).prop_map(|(machine, seat)| Op::Add { machine, seat }),
        machine().prop_map(|machine| Op::Remove { machine }),
        (machine(), prop_oneof![Just(Role::Admin), Just(Role::Member)])
            .prop_map(|(machine, role)| Op::Role { machine, role }),
        (machine(), any::<u8>()).prop_map(|(machine, enc)| Op::Rekey { machine, enc }),
    ]
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        12 => Just(Damage::None),
        1 => Just(Damage::Unsigned),
        1 => Just(Damage::Prev),
        1 => Just(Damage::Seq),
        1 => Just(Damage::Schema),
        1 => Just(Damage::Backdated),
        1 => Just(Damage::Live),
    ]
}

/// What the rules say, over small numbers.
#[derive(Clone, Debug, Default)]
struct Model {
    seats: BTreeMap<u8, Seat>,
    removed: BTreeSet<u8>,
    /// person, expiry, state.
    invites: BTreeMap<u8, (usize, u64, InviteState)>,
}

impl Model {
    fn admin(&self, machine: u8) -> bool {
        self.seats.get(&machine).is_some_and(|seat| seat.role == Role::Admin)
    }

    fn last_admin(&self, machine: u8) -> bool {
        self.admin(machine) && self.seats.values().filter(|seat| seat.role == Role::Admin).count() == 1
    }

    fn may_enter(&self, machine: u8, new: &Seat) -> bool {
        !self.seats.contains_key(&machine)
            && !self.removed.contains(&machine)
            && !self.seats.values().any(|seat| seat.person == new.person && seat.label == new.label)
    }

    fn open(&self, invite: u8) -> Option<(usize, u64)> {
        match self.invites.get(&invite) {
            Some((person, expires, InviteState::Open)) => Some((*person, *expires)),
            _ => None,
        }
    }

    fn apply(&mut self, by: u8, op: Op, ts: u64) -> Result<(), Code> {
        let authority = match op {
            Op::Create { .. } | Op::Revoke { .. } => self.admin(by),
            Op::Redeem { machine, seat, .. } => by == machine && self.may_enter(machine, &seat),
            Op::Add { machine, seat } => self.admin(by) && self.may_enter(machine, &seat),
            Op::Remove { machine } => {
                self.seats.contains_key(&machine)
                    && (by == machine || self.admin(by))
                    && !self.last_admin(machine)
            }
            Op::Role { machine, role } => {
                self.admin(by)
                    && self.seats.contains_key(&machine)
                    && (role == Role::Admin || !self.last_admin(machine))
            }
            Op::Rekey { machine, .. } => {
                self.seats.contains_key(&machine) && (by == machine || self.admin(by))
            }
        };
        if !authority {
            return Err(Code::Forbidden);
        }
        match op {
            Op::Create { invite, person, ttl } => {
                if self.invites.contains_key(&invite) || ttl == 0 || ttl > 604_800_000 {
                    return Err(Code::InviteInvalid);
                }
                self.invites.insert(invite, (person, ts + ttl, InviteState::Open));
            }
            Op::Revoke { invite } => {
                let (person, expires) = self.open(invite).ok_or(Code::InviteInvalid)?;
                self.invites.insert(invite, (person, expires, InviteState::Revoked));
            }
            Op::Redeem { invite, machine, seat, proven } => {
                let (person, expires) = self.open(invite).ok_or(Code::InviteInvalid)?;
                if ts >= expires || !proven || seat.person != person || seat.role == Role::Admin {
                    return Err(Code::InviteInvalid);
                }
                self.invites.insert(invite, (person, expires, InviteState::Redeemed));
                self.seats.insert(machine, seat);
            }
            Op::Add { machine, seat } => {
                self.seats.insert(machine, seat);
            }
            Op::Remove { machine } => {
                self.seats.remove(&machine);
                self.removed.insert(machine);
            }
            Op::Role { machine, role } => self.seats.get_mut(&machine).unwrap().role = role,
            Op::Rekey { .. } => {}
        }
        Ok(())
    }
}

fn key(machine: u8) -> SigningKey {
    SigningKey::from_seed([machine + 1; 32])
}

fn invite_key(invite: u8) -> SigningKey {
    SigningKey::from_seed([invite + 101; 32])
}

fn invite_id(invite: u8) -> Ulid {
    Ulid::new(Wall(START), [invite; 10])
}

fn person(at: usize) -> PersonName {
    PersonName::parse(PERSONS[at]).unwrap()
}

fn member(machine: u8, seat: &Seat) -> Member {
    Member {
        machine: key(machine).machine(),
        enc: EncKey([machine; 32]),
        person: person(seat.person).into(),
        role: seat.role,
        label: Label::parse(LABELS[seat.label]).unwrap(),
    }
}

fn write(roster: &Roster, by: u8, op: Op, ts: u64, damage: Damage) -> Value {
    let key = key(by);
    let mut head = roster.head().unwrap();
    match damage {
        Damage::Prev => head.hash.0[7] ^= 1,
        Damage::Seq => head.seq += 1,
        _ => {}
    }
    let author = Author::at(&key, roster.team().unwrap(), head, Wall(ts));
    let entry = match op {
        Op::Create { invite, person: at, ttl } => author.invite_create(
            &invite_id(invite),
            &invite_key(invite).machine(),
            &person(at),
            Wall(ts + ttl),
        ),
        Op::Revoke { invite } => author.invite_revoke(&invite_id(invite)),
        Op::Redeem { invite, machine, seat, proven } => {
            let member = member(machine, &seat).to_value();
            let seed = invite_key(if proven { invite } else { invite + 50 });
            let proof = redeem_proof(&seed, &author.team(), &invite_id(invite), &member).unwrap();
            author.redeem(&invite_id(invite), &proof, member)
        }
        Op::Add { machine, seat } => author.member_add(&member(machine, &seat)),
        Op::Remove { machine } => author.member_remove(&self::key(machine).machine()),
        Op::Role { machine, role } => author.member_role(&self::key(machine).machine(), role),
        Op::Rekey { machine, enc } => author.member_rekey(&self::key(machine).machine(), &EncKey([enc; 32])),
    };
    let mut object = entry.unwrap().as_object().unwrap().clone();
    match damage {
        Damage::Unsigned => object.set("ts", Value::int(ts + 1)),
        Damage::Schema => object.set("v", Value::text("messaging/2")),
        _ => {}
    }
    object.into()
}

/// Everything the roster says, for comparing.
fn told(roster: &Roster) -> String {
    let rekeys: Vec<_> =
        roster.members().map(|one| (roster.rekey_seq(&one.machine), roster.rekey_by(&one.machine))).collect();
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?}",
        roster.head(),
        roster.head_ts(),
        roster.members().collect::<Vec<_>>(),
        roster.removed().collect::<Vec<_>>(),
        roster.invites().collect::<Vec<_>>(),
        rekeys,
    )
}

fn agrees(roster: &Roster, model: &Model) {
    assert!(model.seats.values().any(|seat| seat.role == Role::Admin), "an admin remains");
    assert_eq!(roster.members().count(), model.seats.len());
    for (machine, seat) in &model.seats {
        let found = roster.member(&key(*machine).machine()).unwrap();
        assert_eq!(found.person.as_str(), PERSONS[seat.person]);
        assert_eq!((found.label.as_str(), found.role), (LABELS[seat.label], seat.role));
        assert!(!roster.label_is_free(&found.person, &found.label));
        assert!(!roster.is_removed(&found.machine), "a removed machine never returns");
        let labels: Vec<_> = roster.machines_of(&found.person).map(|one| one.label.clone()).collect();
        let distinct: BTreeSet<_> = labels.iter().collect();
        assert_eq!(labels.len(), distinct.len(), "labels are unique");
        assert!(labels.contains(&found.label));
    }
    let removed: BTreeSet<_> = model.removed.iter().map(|machine| key(*machine).machine()).collect();
    assert_eq!(roster.removed().copied().collect::<BTreeSet<_>>(), removed);
    assert_eq!(roster.invites().count(), model.invites.len());
    for (invite, (person, expires, state)) in &model.invites {
        let found = roster.invite(&invite_id(*invite)).unwrap();
        assert_eq!(found.person.as_str(), PERSONS[*person]);
        assert_eq!((found.expires.0, found.state), (*expires, *state));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_roster_is_the_model(steps in prop::collection::vec((machine(), op(), damage()), 1..60)) {
        let founder = Seat { person: 0, label: 0, role: Role::Admin };
        let mut model = Model::default();
        model.seats.insert(0, founder);
        let name = TeamName::parse("team").unwrap();
        let mut roster = Roster::new();
        let first = genesis(&key(0), Wall(START), &name, &member(0, &founder)).unwrap();
        roster.apply(&first, ApplyOptions::STORED).unwrap();

        for (at, (by, op, damage)) in steps.into_iter().enumerate() {
            let mut ts = START + STEP * at as u64;
            if damage == Damage::Backdated {
                ts = roster.head_ts().unwrap().0 - 300_001;
            }
            let entry = write(&roster, by, op, ts, damage);
            // Only the last of these may reach the rules.
            let expected = match damage {
                Damage::Schema | Damage::Backdated => Err(Code::InvalidRequest),
                Damage::Prev | Damage::Seq => Err(Code::RosterConflict),
                Damage::Unsigned => Err(Code::BadSignature),
                Damage::Live => Err(Code::Expired),
                Damage::None => model.apply(by, op, ts),
            };
            let options = match damage {
                Damage::Live => ApplyOptions::appended(Wall(ts + 300_001)),
                _ => ApplyOptions::STORED,
            };
            let before = told(&roster);
            let checked = roster.check_at(&entry);
            prop_assert_eq!(told(&roster), before.clone());
            let applied = roster.apply(&entry, options);
            prop_assert_eq!(applied.clone().map(|_| ()).map_err(|error| error.code()), expected, "{:?}", op);
            match &applied {
                Ok(head) => {
                    prop_assert_eq!(checked, Ok(Fork(false)));
                    prop_assert_eq!(roster.head(), Some(*head));
                }
                Err(error) => {
                    prop_assert_eq!(told(&roster), before, "a failure changes nothing");
                    if damage != Damage::Live {
                        prop_assert_eq!(&checked.unwrap_err(), error);
                    }
                }
            }
            agrees(&roster, &model);
        }

        // Every way to build it again leads to the same roster, at every length.
        let values: Vec<Value> = roster.entries(-1).map(|entry| entry.value().unwrap()).collect();
        prop_assert_eq!(told(&Roster::from_entries(&values).unwrap()), told(&roster));
        prop_assert_eq!(told(&Roster::replay_trusted(&values).unwrap()), told(&roster));
        let texts = roster.entries(-1).map(|entry| entry.text());
        prop_assert_eq!(told(&Roster::replay_texts(texts).unwrap()), told(&roster));
        for (seq, value) in values.iter().enumerate() {
            prop_assert_eq!(roster.check_at(value), Ok(Fork(false)));
            let shorter = Roster::replay_trusted(&values[..=seq]).unwrap();
            let hash = roster.hash_at(seq as u64).unwrap();
            prop_assert_eq!(shorter.head(), Some(Head { seq: seq as u64, hash }));
        }
    }
}
