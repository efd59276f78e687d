//! Target `grant_verify`: consent grants and cards made here, changed ones, and copies in any order.

use super::{Draw, World, edited};
use crate::card::{sign_contact_card, verify_contact_card};
use crate::consent::{
    AgentMail, Ask, Chat, ConsentGrant, Levels, NewGrant, Subject, prefer_grant, resign_grant,
    sign_consent_grant, verify_consent_grant,
};
use crate::hash::RealmId;
use crate::json::{Object, Value, canonicalize, parse_wire};
use crate::key::MachineId;
use crate::limits::GRANT_BYTES;
use crate::name::PersonId;
use crate::realm::RealmView;
use crate::time::Wall;
use crate::ulid::Ulid;

const NOW: Wall = Wall(1_790_000_000_000);

/// What is signed here verifies, and nothing changed does; merging copies knows no order; a re-sign is stable and
/// widens nothing.
pub fn grant_verify(data: &[u8]) {
    let world = World::default();
    let mut draw = Draw::new(data);
    let Some(alice) = PersonId::parse("alice") else {
        return;
    };
    if let Ok(raw) = parse_wire(data, usize::MAX) {
        read(&raw, &world);
        return;
    }
    let mut copies = Vec::new();
    for _ in 0..=draw.below(4) {
        let unsigned = grant(&world, &alice, &mut draw);
        let Some(signer) = draw.one_of(&world.machines) else { break };
        let Ok(grant) = sign_consent_grant(&signer.signing, unsigned) else { continue };
        let verified = verify_consent_grant(grant.raw(), &world.realm(), &alice);
        assert_eq!(verified.as_ref(), Ok(&grant), "what is signed here");
        assert!(canonicalize(grant.raw()).is_ok_and(|text| text.len() <= GRANT_BYTES));
        assert_no_change_passes(&grant, &world, &alice, &mut draw);
        assert_resigns(&grant, &world, &world.realm(), &alice, draw.below(2) == 0);
        copies.push(grant);
    }
    assert_merges(&copies, draw.byte());
    let any = draw.value(8);
    assert!(verify_consent_grant(&any, &world.realm(), &alice).is_err());
    card(&world, &alice, &mut draw);
}

/// A grant or a card as it arrives, read for whom it names itself; and signed here, which the rules may refuse.
fn read(raw: &Value, world: &World) {
    let name = |member| raw.get(member).and_then(Value::as_str);
    let person = |member| name(member).and_then(PersonId::parse);
    let Some((signer, realm)) = world.machines.first().zip(name("realm").and_then(RealmId::parse)) else {
        return;
    };
    if let Some(person) = person("person") {
        let verified = verify_consent_grant(raw, &realm, &person);
        if let Ok(grant) = &verified {
            assert_resigns(grant, world, &realm, &person, true);
            assert_resigns(grant, world, &realm, &person, false);
        }
        if let Ok(signed) = sign_consent_grant(&signer.signing, raw.clone()) {
            assert_eq!(verify_consent_grant(signed.raw(), &realm, &person), Ok(signed));
        }
    }
    if let Some((from, to)) = person("from").zip(person("to")) {
        let verified = verify_contact_card(raw, &realm, &from, &to);
        if let Ok(signed) = sign_contact_card(&signer.signing, raw.clone()) {
            assert_eq!(verify_contact_card(signed.raw(), &realm, &from, &to), Ok(signed));
        } else {
            assert!(verified.is_err(), "what verifies can be signed again");
        }
    }
}

/// A grant to be signed: often one the rules refuse, sometimes with members of a newer release.
fn grant(world: &World, person: &PersonId, draw: &mut Draw<'_>) -> Value {
    let subjects = ["alice", "bob", "carol"].map(PersonId::parse);
    let id = |draw: &mut Draw<'_>| Ulid::new(NOW, [draw.byte() % 3; 10]);
    let subject = match draw.one_of(&subjects).cloned().flatten() {
        Some(person) if draw.below(4) > 0 => Subject::Person(person),
        _ => Subject::Channel(id(draw)),
    };
    let levels = Levels {
        chat: [None, Some(Chat::Open), Some(Chat::Muted), Some(Chat::Blocked)][draw.below(4)],
        agent_mail: [None, Some(AgentMail::Open), Some(AgentMail::Blocked)][draw.below(3)],
        ask: [None, Some(Ask::Open), Some(Ask::Request), Some(Ask::No)][draw.below(4)],
        trusted_until: (draw.below(4) == 0).then(|| NOW.plus(u64::from(draw.byte()))),
        discoverable: [None, None, Some(true), Some(false)][draw.below(4)],
    };
    let ts = NOW.plus(draw.below(3) as u64);
    let new = NewGrant { realm: world.realm(), id: id(draw), person: person.clone(), ts, subject, levels };
    let mut value = new.to_value();
    if let Value::Object(object) = &mut value
        && draw.below(4) == 0
    {
        object.set("later", draw.value(4));
    }
    value
}

fn assert_no_change_passes(grant: &ConsentGrant, world: &World, person: &PersonId, draw: &mut Draw<'_>) {
    let changed = edited(grant.raw(), draw);
    if canonicalize(&changed).ok() != canonicalize(grant.raw()).ok() {
        assert!(verify_consent_grant(&changed, &world.realm(), person).is_err(), "a changed grant");
    }
}

/// §6.9 "Signers".
fn assert_resigns(grant: &ConsentGrant, world: &World, realm: &RealmId, person: &PersonId, keep_all: bool) {
    let Some(signer) = world.machines.last() else {
        return;
    };
    let Ok(resigned) = resign_grant(grant, &signer.signing, NOW, keep_all) else {
        // Only by the member it adds.
        assert!(canonicalize(grant.raw()).is_ok_and(|text| text.len() + 40 > GRANT_BYTES));
        return;
    };
    let lapsed = resigned.lapsed.map(|review| review.levels).unwrap_or_default();
    let Some(copy) = resigned.grant else {
        assert!(!keep_all && grant.levels.restricting().is_clear());
        return;
    };
    assert_eq!(verify_consent_grant(copy.raw(), realm, person).as_ref(), Ok(&copy));
    assert_eq!((copy.id, copy.ts, &copy.subject), (grant.id, grant.ts, &grant.subject), "its place");
    assert_eq!((copy.by, copy.resigned_at), (signer.signing.machine(), Some(NOW)));
    if keep_all {
        assert_eq!(copy.levels, grant.levels);
        assert!(lapsed.is_clear());
    } else {
        assert_eq!(copy.levels, grant.levels.restricting());
        assert_eq!(lapsed, grant.levels.widening());
    }
    let again = resign_grant(&copy, &signer.signing, NOW, keep_all);
    let again = again.ok().and_then(|again| again.grant);
    let canonical = |grant: &ConsentGrant| canonicalize(grant.raw()).ok();
    assert_eq!(again.as_ref().and_then(canonical), canonical(&copy), "a re-sign is stable");
}

/// §6.9 "Merging": commutative, associative, idempotent, whichever devices are current.
fn assert_merges(copies: &[ConsentGrant], current: u8) {
    let is_current = |by: &MachineId| by.as_bytes().first().is_some_and(|first| (first ^ current) & 1 == 1);
    let merge = |a, b| prefer_grant(a, b, is_current);
    let text = |grant: &ConsentGrant| canonicalize(grant.raw()).ok();
    let forward = copies.iter().reduce(merge).and_then(text);
    assert_eq!(forward, copies.iter().rev().reduce(merge).and_then(text));
    assert_eq!(forward, copies.iter().chain(copies).reduce(merge).and_then(text));
    for a in copies {
        assert_eq!(text(merge(a, a)), text(a));
        for b in copies {
            assert_eq!(text(merge(a, b)), text(merge(b, a)));
            for c in copies {
                assert_eq!(text(merge(merge(a, b), c)), text(merge(a, merge(b, c))));
            }
        }
    }
}

fn card(world: &World, from: &PersonId, draw: &mut Draw<'_>) {
    let mut can = Object::new();
    can.set("chat", Value::Bool(draw.below(2) == 0));
    can.set("agentMail", Value::Bool(draw.below(2) == 0));
    can.set("ask", Value::text(["open", "request", "no"][draw.below(3)]));
    if draw.below(3) == 0 {
        can.set("trustedUntil", Value::int(NOW.0));
    }
    let mut card = Object::new();
    card.set("v", Value::text("messaging/1"));
    card.set("realm", Value::text(world.realm().to_string()));
    card.set("from", Value::text(from.as_str()));
    card.set("to", Value::text(["bob", "alice"][draw.below(8) / 7]));
    card.set("seq", Value::int(draw.below(3) as u64));
    card.set("ts", Value::int(NOW.0));
    card.set("can", Value::Object(can));
    if draw.below(4) == 0 {
        card.set("later", draw.value(3));
    }
    let Some((signer, to)) = draw.one_of(&world.machines).zip(PersonId::parse("bob")) else {
        return;
    };
    let Ok(card) = sign_contact_card(&signer.signing, Value::Object(card)) else {
        return;
    };
    assert_eq!(verify_contact_card(card.raw(), &world.realm(), from, &to).as_ref(), Ok(&card));
    let changed = edited(card.raw(), draw);
    if canonicalize(&changed).ok() != canonicalize(card.raw()).ok() {
        assert!(verify_contact_card(&changed, &world.realm(), from, &to).is_err(), "a changed card");
    }
    assert!(verify_contact_card(&draw.value(6), &world.realm(), from, &to).is_err());
}
