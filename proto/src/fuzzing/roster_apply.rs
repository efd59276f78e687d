//! Target `roster_apply`: any value as an entry, and sequences of signed entries, some changed after signing.

use super::edit::edited;
use super::envelope_open::NOW;
use super::{Draw, World};
use crate::json::{Value, canonicalize, parse_wire};
use crate::key::{EncKey, MachineId, SigningKey};
use crate::name::{Label, PersonName, TeamName};
use crate::roster::{ApplyOptions, Author, Member, Role, Roster, RosterError, genesis};
use crate::ticket::redeem_proof;
use crate::ulid::Ulid;
use std::collections::BTreeSet;

/// What no error may repeat.
const MARKER: &str = "Tr0ub4dor&3";

/// A failed entry changes nothing; an accepted one keeps the rules of a team and reads back from its text; a
/// changed entry is never accepted; no error repeats its input.
pub fn roster_apply(data: &[u8]) {
    let Some(mut roster) = founded() else { return };
    if data.first() == Some(&b'{') {
        for line in data.split(|byte| *byte == b'\n') {
            if let Ok(entry) = parse_wire(line, line.len()) {
                let _ = judge(&mut roster, &entry);
            }
        }
        return;
    }
    let mut draw = Draw::new(data);
    while !draw.is_empty() {
        let Some(entry) = entry(&roster, &mut draw) else { return };
        if draw.below(4) == 0 {
            let changed = edited(&entry, &mut draw);
            if canonicalize(&changed) == canonicalize(&entry) {
                continue;
            }
            assert!(judge(&mut roster, &changed).is_err(), "every change of an entry is seen");
        } else {
            let _ = judge(&mut roster, &entry);
        }
    }
    let texts = roster.entries(-1).map(|entry| entry.text());
    assert!(Roster::replay_texts(texts).is_ok_and(|again| told(&again) == told(&roster)), "it replays");
}

fn judge(roster: &mut Roster, entry: &Value) -> Result<(), RosterError> {
    let before = told(roster);
    let removed: BTreeSet<MachineId> = roster.removed().copied().collect();
    let checked = roster.check_at(entry);
    let applied = roster.apply(entry, ApplyOptions::STORED);
    for error in checked.as_ref().err().into_iter().chain(applied.as_ref().err()) {
        let text = format!("{error} {error:?} {}", error.code());
        assert!(!text.contains(MARKER), "an error repeats its input");
    }
    if let Err(error) = applied {
        assert_eq!(before, told(roster), "a failure changes nothing");
        return Err(error);
    }
    assert!(checked.is_ok_and(|fork| !fork.0), "what extends the head is no fork");
    assert!(roster.members().any(|member| member.role == Role::Admin), "an admin remains");
    assert!(removed.is_subset(&roster.removed().copied().collect()), "removal is for ever");
    assert!(roster.members().all(|member| !roster.is_removed(&member.machine)));
    let seats: BTreeSet<_> = roster.members().map(|member| (&member.person, &member.label)).collect();
    assert_eq!(seats.len(), roster.members().count(), "labels are unique");
    Ok(())
}

fn told(roster: &Roster) -> String {
    let members: Vec<_> = roster
        .members()
        .map(|one| (one, roster.rekey_seq(&one.machine), roster.rekey_by(&one.machine)))
        .collect();
    let removed: Vec<_> = roster.removed().collect();
    let invites: Vec<_> = roster.invites().collect();
    format!("{:?} {members:?} {removed:?} {invites:?}", roster.head())
}

/// A team of alice's first machine.
fn founded() -> Option<Roster> {
    let world = World::default();
    let key = &world.machines.first()?.signing;
    let mut roster = Roster::new();
    let founder = member(key.machine(), "alice", "laptop", Role::Admin)?;
    let first = genesis(key, NOW, &TeamName::parse("team")?, &founder).ok()?;
    roster.apply(&first, ApplyOptions::STORED).ok()?;
    Some(roster)
}

fn member(machine: MachineId, person: &str, label: &str, role: Role) -> Option<Member> {
    let person = PersonName::parse(person)?.into();
    Some(Member { machine, enc: EncKey([9; 32]), person, role, label: Label::parse(label)? })
}

/// A signed entry on top of the head, which the rules may still refuse.
fn entry(roster: &Roster, draw: &mut Draw<'_>) -> Option<Value> {
    let world = World::default();
    let signer = &draw.one_of(&world.machines)?.signing;
    let target = draw.one_of(&world.machines)?.signing.machine();
    let op = draw.below(7);
    let role = if draw.below(2) == 0 { Role::Admin } else { Role::Member };
    let person = ["alice", "bob"][draw.below(2)];
    let label = ["laptop", "desk", "phone"][draw.below(3)];
    let invite = draw.below(3) as u8;
    let id = Ulid::new(NOW, [invite; 10]);
    let seed = SigningKey::from_seed([100 + invite; 32]);
    let ts = NOW.plus(u64::from(u16::from_le_bytes(draw.array())));
    let author = Author::new(signer, roster, ts)?;
    match op {
        0 => {
            let expires = ts.plus(u64::from(draw.byte()) << 8);
            author.invite_create(&id, &seed.machine(), &PersonName::parse(person)?, expires)
        }
        1 => author.invite_revoke(&id),
        2 => {
            let mut member = member(target, person, label, role)?.to_value();
            if let (Value::Object(object), 0) = (&mut member, draw.below(4)) {
                object.set(MARKER, draw.value(2));
            }
            let proof = redeem_proof(&seed, &author.team(), &id, &member).ok()?;
            author.redeem(&id, &proof, member)
        }
        3 => author.member_add(&member(target, person, label, role)?),
        4 => author.member_remove(&target),
        5 => author.member_role(&target, role),
        _ => author.member_rekey(&target, &EncKey(draw.array())),
    }
    .ok()
}
