//! Target `chain_verify`: chains made here, changed chains, and any value in their place.

use super::{Draw, World, edited};
use crate::Code;
use crate::address::SessionAddress;
use crate::delegation::{Grant, Hop, NewGrant, Summary, create_grant, verify_chain};
use crate::json::{FromValue, Value, canonicalize, parse_wire};
use crate::limits::{DELEGATION_BYTES, TTL_MS};
use crate::name::{ScopeLabel, SessionName};
use crate::realm::RealmView;
use crate::time::Wall;
use crate::ulid::Ulid;
use std::collections::BTreeSet;

const NOW: Wall = Wall(1_790_000_000_000);

/// A grant made here never widens its parent; a chain made by its rules verifies; what verifies keeps the rules;
/// and no changed chain verifies.
pub fn chain_verify(data: &[u8]) {
    let world = World::default();
    if let Ok(chain) = parse_wire(data, usize::MAX) {
        read(&world, &chain);
        return;
    }
    let mut draw = Draw::new(data);
    let (chain, hop, honest) = chain(&world, &mut draw);
    let Some(hop) = hop else {
        return;
    };
    let now = if draw.below(4) == 0 { NOW.plus(u64::from(draw.byte())) } else { NOW };
    let verified = verify_chain(&chain, &world, &hop, now);
    if let Ok(summary) = &verified {
        assert_keeps_rules(&chain, summary, &hop, now);
    }
    if honest && now == NOW {
        assert!(verified.is_ok(), "a chain made by the rules: {verified:?}");
    }
    let changed = edited(&chain, &mut draw);
    let refused = verify_chain(&changed, &world, &hop, now);
    if canonicalize(&changed).ok() != canonicalize(&chain).ok() {
        assert!(refused.is_err(), "a changed chain");
    }
    let any = verify_chain(&draw.value(8), &world, &hop, now);
    assert_eq!(any.map_err(|error| error.code()), Err(Code::InvalidRequest), "a value that is no chain");
}

/// A chain as it arrives, for the hop that its last grant names. Of other keys than this world's, so it is refused.
fn read(world: &World, chain: &Value) {
    let last = chain.as_array().and_then(<[Value]>::last).map(Grant::from_value);
    let Some(Ok(last)) = last else {
        return;
    };
    let hop = Hop { by: last.by, from: last.from, to: last.to, task: last.task };
    assert!(verify_chain(chain, world, &hop, last.ts).is_err());
    // As the parent of a new grant, which is not verified: its owner verified it when it came.
    let Some(signer) = world.machines.first() else {
        return;
    };
    let mut draw = Draw::new(&[]);
    let new = NewGrant {
        from: hop.to,
        ts: last.ts,
        ..new_grant(world, hop.from, address(world, 0, &mut draw), &mut draw)
    };
    let parent = chain.as_array().and_then(<[Value]>::last);
    if let Ok(child) = create_grant(&signer.signing, &new, parent) {
        assert_not_wider(&child, parent);
    }
}

/// A chain of up to six grants, the hop it would arrive on, and whether every choice kept the rules.
fn chain(world: &World, draw: &mut Draw<'_>) -> (Value, Option<Hop>, bool) {
    let mut grants: Vec<Value> = Vec::new();
    let mut hop = None;
    let mut honest = true;
    let mut passed = BTreeSet::new();
    let mut smallest = u64::MAX;
    for _ in 0..=draw.below(6) {
        let machine = draw.below(world.machines.len());
        let Some(signer) = world.machines.get(machine) else { break };
        let from = match (&hop, draw.below(8)) {
            (Some(Hop { to, .. }), 1..) => to.clone(),
            _ => address(world, machine, draw),
        };
        // Mostly the machine that the address names.
        let signer = match world.machines.iter().find(|one| owns(one, &from)) {
            Some(owner) if draw.below(8) > 0 => owner,
            _ => signer,
        };
        let to = address(world, draw.below(world.machines.len()), draw);
        let new = new_grant(world, from, to, draw);
        let parent = grants.last().cloned();
        let Ok(grant) = create_grant(&signer.signing, &new, parent.as_ref()) else { continue };
        assert_not_wider(&grant, parent.as_ref());
        if passed.is_empty() {
            passed.insert(new.from.clone());
        }
        honest &= owns(signer, &new.from) && passed.insert(new.to.clone()) && new.realm == world.realm();
        smallest = smallest.min(Grant::from_value(&grant).map_or(0, |grant| grant.max_depth));
        hop = Some(Hop { by: signer.signing.machine(), from: new.from, to: new.to, task: new.task });
        grants.push(grant);
    }
    honest &= (grants.len() as u64) <= smallest.min(4);
    (Value::Array(grants), hop, honest)
}

fn owns(machine: &super::Machine, address: &SessionAddress) -> bool {
    let device = machine.device();
    *device.person == address.person && *device.label == address.label
}

fn address(world: &World, machine: usize, draw: &mut Draw<'_>) -> SessionAddress {
    let session = ["api", "web", "ci", "docs"][draw.below(4)];
    let device = world.machines.get(machine).or(world.machines.first()).map(super::Machine::device);
    match (device, SessionName::parse(session)) {
        (Some(device), Some(session)) => {
            SessionAddress { person: device.person.clone(), session, label: device.label.clone() }
        }
        _ => unreachable!("the world has machines, and the names are names"),
    }
}

/// A grant to be made: in force for a while at [`NOW`], perhaps narrower than it could be.
fn new_grant(world: &World, from: SessionAddress, to: SessionAddress, draw: &mut Draw<'_>) -> NewGrant {
    let labels = ["a", "b", "repo:x/y"];
    let scope = (draw.below(3) == 0).then(|| {
        let labels = labels.iter().filter_map(|label| ScopeLabel::parse(label));
        labels.filter(|_| draw.below(3) > 0).collect()
    });
    let realm = if draw.below(16) == 0 { crate::hash::Hash([9; 32]) } else { world.realm() };
    NewGrant {
        realm,
        task: Ulid::new(NOW, [draw.byte(); 10]),
        from,
        to,
        ts: NOW.minus(u64::from(draw.byte())),
        exp: (draw.below(3) == 0).then(|| NOW.plus(300 + u64::from(draw.byte()))),
        max_depth: (draw.below(3) == 0).then(|| 1 + draw.below(4) as u64),
        scope,
    }
}

/// §6.7 every grant after the root may only narrow, and none lives longer than it may.
fn assert_not_wider(child: &Value, parent: Option<&Value>) {
    let Ok(child) = Grant::from_value(child) else { unreachable!("a grant made here has its shape") };
    assert!(child.exp.0 - child.ts.0 <= TTL_MS);
    let Some(Ok(parent)) = parent.map(Grant::from_value) else {
        return;
    };
    assert!(child.max_depth <= parent.max_depth && child.exp <= parent.exp);
    if let Some(bound) = parent.scope {
        assert!(child.scope.is_some_and(|scope| scope.iter().all(|label| bound.contains(label))));
    }
}

/// What a verified chain says of itself, recounted.
fn assert_keeps_rules(chain: &Value, summary: &Summary, hop: &Hop, now: Wall) {
    let raw = chain.as_array().unwrap_or_default();
    assert!(canonicalize(chain).is_ok_and(|text| text.len() <= DELEGATION_BYTES));
    assert_eq!(summary.depth, raw.len());
    assert!(summary.depth as u64 <= summary.max_depth && summary.max_depth <= 4);
    let distinct = summary.addresses.iter().collect::<BTreeSet<_>>();
    assert_eq!(distinct.len(), raw.len() + 1);
    assert_eq!(summary.addresses.last(), Some(&hop.to));
    assert!(summary.exp > now);
    assert!(summary.persons().iter().all(|person| summary.addresses.iter().any(|a| a.person == **person)));
    for pair in raw.windows(2) {
        if let [parent, child] = pair {
            assert_not_wider(child, Some(parent));
        }
    }
}
