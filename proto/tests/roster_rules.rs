//! What the vectors do not say of a roster: tampering, long chains, forks, the realm view and its errors.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use messaging_proto::Code;
use messaging_proto::hash::Hash;
use messaging_proto::json::{Object, Value, canonicalize, parse_wire};
use messaging_proto::key::{EncKey, MachineId, SigningKey};
use messaging_proto::limits;
use messaging_proto::name::{Label, PersonName, TeamName};
use messaging_proto::realm::{Anchor, RealmKind, RealmView};
use messaging_proto::roster::{
    ApplyOptions, Author, Forbidden, Fork, Head, InviteFault, Member, Relation, Role, Roster, RosterError,
    genesis,
};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use std::time::Duration;

const START: u64 = 1_795_000_000_000;
const MARKER: &str = "Tr0ub4dor&3";

fn key(number: u8) -> SigningKey {
    SigningKey::from_seed([number; 32])
}

fn member(number: u8, person: &str, label: &str, role: Role) -> Member {
    Member {
        machine: key(number).machine(),
        enc: EncKey([number; 32]),
        person: PersonName::parse(person).unwrap().into(),
        role,
        label: Label::parse(label).unwrap(),
    }
}

/// Machine 1 founded it; machine 2 was added.
fn team() -> Roster {
    let mut roster = Roster::new();
    let name = TeamName::parse("Blue").unwrap();
    let first = genesis(&key(1), Wall(START), &name, &member(1, "alice", "desk", Role::Admin)).unwrap();
    roster.apply(&first, ApplyOptions::STORED).unwrap();
    let add = author(&roster, &key(1)).member_add(&member(2, "bob", "desk", Role::Member)).unwrap();
    roster.apply(&add, ApplyOptions::STORED).unwrap();
    roster
}

fn author<'a>(roster: &Roster, key: &'a SigningKey) -> Author<'a> {
    Author::new(key, roster, Wall(START + 1_000)).unwrap()
}

fn refused(roster: &Roster, entry: &Value) -> RosterError {
    let mut copy = roster.clone();
    let error = copy.apply(entry, ApplyOptions::STORED).unwrap_err();
    assert_eq!(copy.head(), roster.head());
    error
}

#[test]
fn any_changed_byte_of_an_entry_is_refused() {
    let roster = team();
    let invite = author(&roster, &key(1))
        .invite_create(
            &Ulid::new(Wall(START), [7; 10]),
            &key(9).machine(),
            &PersonName::parse("carol").unwrap(),
            Wall(START + 50_000),
        )
        .unwrap();
    let text = canonicalize(&invite).unwrap();
    assert!(roster.clone().apply(&invite, ApplyOptions::STORED).is_ok());
    let mut parsed = 0;
    for at in 0..text.len() {
        for flip in [1, 2, 8, 0x20] {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= flip;
            if let Ok(value) = parse_wire(&bytes, limits::ROSTER_ENTRY_BYTES) {
                parsed += 1;
                refused(&roster, &value);
            }
        }
    }
    assert!(parsed > text.len(), "most changes are still JSON: {parsed}");
}

#[test]
fn reasons() {
    let roster = team();
    let (admin, other, stranger) = (key(1), key(2), key(3));
    let (bob, carol) = (member(2, "bob", "desk", Role::Member), member(3, "carol", "desk", Role::Member));
    let forbidden = |entry: Result<Value, _>, why| {
        let entry = entry.unwrap_or_else(|_: messaging_proto::json::Invalid| panic!());
        assert_eq!(refused(&roster, &entry), RosterError::Forbidden(why));
    };
    forbidden(author(&roster, &other).member_add(&carol), Forbidden::NotAdmin);
    forbidden(author(&roster, &admin).member_add(&bob), Forbidden::AlreadyMember);
    forbidden(
        author(&roster, &admin).member_add(&member(3, "bob", "desk", Role::Member)),
        Forbidden::LabelTaken,
    );
    forbidden(author(&roster, &admin).member_remove(&stranger.machine()), Forbidden::NotCurrent);
    forbidden(author(&roster, &admin).member_remove(&admin.machine()), Forbidden::LastAdmin);
    forbidden(author(&roster, &admin).member_role(&admin.machine(), Role::Member), Forbidden::LastAdmin);
    forbidden(author(&roster, &other).member_role(&other.machine(), Role::Admin), Forbidden::NotAdmin);
    forbidden(author(&roster, &other).member_rekey(&admin.machine(), &EncKey([0; 32])), Forbidden::NotAdmin);
    let id = Ulid::new(Wall(START), [7; 10]);
    let sig = admin.sign(b"");
    forbidden(author(&roster, &admin).redeem(&id, &sig, carol.to_value()), Forbidden::NotJoiner);
    let redeem = author(&roster, &stranger).redeem(&id, &sig, carol.to_value()).unwrap();
    assert_eq!(refused(&roster, &redeem), RosterError::Invite(InviteFault::Unknown));

    let mut without = roster.clone();
    let removal = author(&roster, &other).member_remove(&other.machine()).unwrap();
    without.apply(&removal, ApplyOptions::STORED).unwrap();
    let back = author(&without, &admin).member_add(&bob).unwrap();
    assert_eq!(refused(&without, &back), RosterError::Forbidden(Forbidden::Removed));
    assert!(without.is_removed(&other.machine()) && without.label_is_free(&bob.person, &bob.label));
    assert_eq!(without.machines_of(&bob.person).count(), 0);
}

#[test]
fn the_last_admin_stays_whoever_left_before() {
    for leaves in [true, false] {
        let mut roster = team();
        let (first, second) = (key(1), key(2));
        let grow = author(&roster, &first).member_role(&second.machine(), Role::Admin).unwrap();
        roster.apply(&grow, ApplyOptions::STORED).unwrap();
        let shrink = if leaves {
            author(&roster, &second).member_remove(&second.machine())
        } else {
            author(&roster, &first).member_role(&second.machine(), Role::Member)
        };
        roster.apply(&shrink.unwrap(), ApplyOptions::STORED).unwrap();
        for last in [
            author(&roster, &first).member_remove(&first.machine()),
            author(&roster, &first).member_role(&first.machine(), Role::Member),
        ] {
            assert_eq!(refused(&roster, &last.unwrap()), RosterError::Forbidden(Forbidden::LastAdmin));
        }
    }
}

#[test]
fn a_fork_below_the_head_is_proved_and_junk_is_not() {
    let mut roster = team();
    let at_two = roster.clone();
    for enc in 0..5 {
        let entry = author(&roster, &key(2)).member_rekey(&key(2).machine(), &EncKey([enc; 32])).unwrap();
        roster.apply(&entry, ApplyOptions::STORED).unwrap();
    }
    let other = author(&at_two, &key(2)).member_rekey(&key(2).machine(), &EncKey([99; 32])).unwrap();
    let before = roster.head();
    assert_eq!(roster.check_at(&other), Ok(Fork(true)));
    let junk = author(&at_two, &key(2)).member_remove(&key(1).machine()).unwrap();
    assert_eq!(roster.check_at(&junk).unwrap_err().code(), Code::Forbidden);
    assert_eq!(roster.head(), before);
    let head = Head { seq: u64::MAX, hash: Hash([0; 32]) };
    assert_eq!(messaging_proto::roster::head_relation(&roster, &head), Relation::Ahead);
}

#[test]
fn live_options() {
    let roster = team();
    let entry = author(&roster, &key(1)).member_role(&key(2).machine(), Role::Admin).unwrap();
    let ts = START + 1_000;
    let apply = |options| roster.clone().apply(&entry, options).map(|_| ());
    for off in [0, 300_000] {
        assert_eq!(apply(ApplyOptions::appended(Wall(ts + off))), Ok(()));
        assert_eq!(apply(ApplyOptions::appended(Wall(ts - off))), Ok(()));
    }
    assert_eq!(apply(ApplyOptions::appended(Wall(ts + 300_001))), Err(RosterError::Expired));
    assert_eq!(apply(ApplyOptions::broadcast(Wall(ts + 600_000))), Ok(()));
    assert_eq!(apply(ApplyOptions::broadcast(Wall(ts - 600_001))), Err(RosterError::Expired));
}

#[test]
fn a_roster_is_a_realm() {
    let roster = team();
    assert_eq!(roster.realm(), roster.team().unwrap());
    assert_eq!(roster.kind(), RealmKind::Roster);
    let head = roster.head().unwrap();
    assert_eq!(roster.anchor(), Anchor::Roster(head));
    assert_eq!(roster.relate(&Anchor::Roster(head)), Relation::Consistent);
    let other = Head { hash: Hash([1; 32]), ..head };
    assert_eq!(roster.relate(&Anchor::Roster(other)), Relation::Diverged { mine: head.hash });
    assert_eq!(roster.relate(&Anchor::Epoch { size: 1, root: head.hash }), Relation::Ahead);
    let device = roster.device(&key(2).machine()).unwrap();
    assert_eq!((device.person.as_str(), device.label.as_str()), ("bob", "desk"));
    assert_eq!((device.role, device.enc), (Role::Member, EncKey([2; 32])));
    assert!(roster.device(&key(3).machine()).is_none());

    let empty = Roster::new();
    assert!(empty.device(&key(1).machine()).is_none() && empty.head_ts().is_none());
    assert_eq!(empty.anchor().head().unwrap().hash, empty.realm());
    assert!(Author::new(&key(1), &empty, Wall(START)).is_none());
    assert_eq!(format!("{empty:?}"), "Roster { team: None, head: None, .. }");
}

#[test]
fn entries_past_a_position() {
    let roster = team();
    let count = |after| roster.entries(after).count();
    assert_eq!(
        [count(-1), count(0), count(1), count(2), count(i64::MAX), count(i64::MIN)],
        [2, 1, 0, 0, 0, 2]
    );
    assert!(roster.entry(2).is_none() && roster.entry(u64::MAX).is_none());
}

#[test]
fn an_entry_past_2_to_the_53_cannot_be_written() {
    let roster = team();
    let key = key(1);
    let author = Author::new(&key, &roster, Wall(1 << 53)).unwrap();
    assert_eq!(author.member_remove(&key.machine()).unwrap_err().code(), Code::InvalidRequest);
    let far =
        Author::at(&key, roster.team().unwrap(), Head { seq: u64::MAX, hash: Hash([0; 32]) }, Wall(START));
    assert!(far.member_remove(&key.machine()).is_err());
}

/// A year of daily rotations of 27 machines, in well under a second; the debug build is allowed more.
#[test]
#[allow(clippy::disallowed_types, clippy::disallowed_methods)]
fn ten_thousand_entries_replay_fast() {
    let mut roster = team();
    // Written without signatures: a trusted replay does not look at them.
    let mut texts: Vec<String> = roster.entries(-1).map(|entry| entry.text().to_string()).collect();
    let sig = parse_wire(texts[1].as_bytes(), 20_000).unwrap().get("sig").unwrap().clone();
    let mut head = roster.head().unwrap();
    let machine = key(2).machine().to_string();
    while texts.len() < 10_000 {
        let mut entry = Object::new();
        for (name, value) in [
            ("v", Value::text("messaging/1")),
            ("op", Value::text("member.rekey")),
            ("team", Value::text(roster.team().unwrap().to_string())),
            ("seq", Value::int(head.seq + 1)),
            ("prev", Value::text(head.hash.to_string())),
            ("ts", Value::int(START + head.seq)),
            ("by", Value::text(machine.as_str())),
            ("machine", Value::text(machine.as_str())),
            ("enc", Value::text(EncKey([head.seq as u8; 32]).to_string())),
            ("sig", sig.clone()),
        ] {
            entry.push(name.to_owned(), value);
        }
        let text = canonicalize(&entry.into()).unwrap();
        head = Head { seq: head.seq + 1, hash: messaging_proto::hash::sha256(text.as_bytes()) };
        texts.push(text);
    }
    let start = std::time::Instant::now();
    roster = Roster::replay_texts(&texts).unwrap();
    let took = start.elapsed();
    assert_eq!(roster.head(), Some(head));
    assert_eq!(roster.rekey_seq(&key(2).machine()), Some(head.seq));
    assert!(took < Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 }), "{took:?}");
}

#[test]
fn errors_say_nothing_of_the_entry() {
    let roster = team();
    let good = author(&roster, &key(1)).member_add(&member(3, "carol", "desk", Role::Member)).unwrap();
    let silent = |entry: Value| {
        for error in [refused(&roster, &entry), roster.check_at(&entry).unwrap_err()] {
            let told = format!("{error} {error:?}");
            assert!(!told.contains(MARKER), "{told}");
        }
    };
    let names: Vec<String> = good.as_object().unwrap().iter().map(|(name, _)| name.to_owned()).collect();
    for name in names {
        let mut entry = good.as_object().unwrap().clone();
        entry.set(name.as_str(), Value::text(MARKER));
        silent(entry.into());
    }
    for name in ["machine", "enc", "person", "role", "label"] {
        let mut member = good.get("member").unwrap().as_object().unwrap().clone();
        member.set(name, Value::text(MARKER));
        let mut entry = good.as_object().unwrap().clone();
        entry.set("member", member.into());
        silent(entry.into());
    }
    let mut entry = good.as_object().unwrap().clone();
    entry.set(MARKER, Value::Number(f64::INFINITY));
    silent(entry.into());
    silent(Value::text(MARKER));
    let unusable = Member { machine: MachineId([0; 32]), ..member(3, "carol", "desk", Role::Member) };
    let entry = author(&roster, &key(1)).member_add(&unusable).unwrap();
    assert_eq!(refused(&roster, &entry), RosterError::UnusableKey("member.machine"));
}
