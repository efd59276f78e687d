//! Checking a whole chain for the hop it arrived on.

use super::{DelegationError, Grant, Summary};
use crate::address::SessionAddress;
use crate::domain::Domain;
use crate::hash::{Hash, hash_value};
use crate::json::{FromValue, Invalid, Value, canonicalize};
use crate::key::{MachineId, verify_value};
use crate::limits::{CLOCK_SKEW_MS, DELEGATION_BYTES, DELEGATION_DEPTH, TTL_MS};
use crate::name::ScopeLabel;
use crate::realm::RealmView;
use crate::time::Wall;
use crate::ulid::Ulid;
use std::collections::BTreeSet;

/// The hop a chain arrived on: read from the envelope that carried it, never from the chain.
#[derive(Clone, Debug)]
pub struct Hop {
    /// The sending machine.
    pub by: MachineId,
    /// The sending session, with the label of that machine.
    pub from: SessionAddress,
    /// The addressed session, with the label of this machine.
    pub to: SessionAddress,
    /// The task of the request.
    pub task: Ulid,
}

/// The hash a later grant names its parent by (`messaging/1 §6.7`), `sig` included.
///
/// # Errors
/// [`Invalid`] when `raw` is not I-JSON.
pub fn grant_hash(raw: &Value) -> Result<Hash, Invalid> {
    hash_value(raw)
}

/// Verifies a chain (`verifyChain`, `messaging/1 §6.7`) and summarises it.
///
/// `chain` is the raw array as opened, root first. `view` is what this machine has verified of the realm.
///
/// # Errors
/// The first failure: shape, size, then each grant root first (realm, time, signer, signature, link to the grant
/// before, narrowing), then depth, cycle, and the hop.
pub fn verify_chain(
    chain: &Value,
    view: &dyn RealmView,
    hop: &Hop,
    now: Wall,
) -> Result<Summary, DelegationError> {
    let raw = chain.as_array().ok_or_else(Invalid::new)?;
    if !(1..=DELEGATION_DEPTH).contains(&raw.len()) {
        return Err(Invalid::new().into());
    }
    let grants = Vec::<Grant>::from_value(chain)?;
    // §6.7 I-JSON before the size: the size is that of the canonical text.
    if canonicalize(chain)?.len() > DELEGATION_BYTES {
        return Err(DelegationError::TooLarge);
    }
    let mut before: Option<(&Grant, Hash)> = None;
    for (index, (grant, raw)) in grants.iter().zip(raw).enumerate() {
        stands(grant, raw, index, view, now)?;
        follows(grant, index, before)?;
        before = Some((grant, grant_hash(raw)?));
    }
    let summary = summarise(&grants)?;
    if summary.depth as u64 > summary.max_depth {
        return Err(DelegationError::TooDeep);
    }
    if summary.addresses.iter().collect::<BTreeSet<_>>().len() != summary.addresses.len() {
        return Err(DelegationError::Cycle);
    }
    arrived_on(grants.last().ok_or_else(Invalid::new)?, hop)?;
    Ok(summary)
}

/// What a grant must satisfy on its own.
fn stands(
    grant: &Grant,
    raw: &Value,
    index: usize,
    view: &dyn RealmView,
    now: Wall,
) -> Result<(), DelegationError> {
    if grant.realm != view.realm() {
        return Err(DelegationError::Realm { grant: index });
    }
    // §5 step 3, the same window as an envelope's.
    let lifetime = grant.exp.0.checked_sub(grant.ts.0);
    if lifetime.is_none_or(|ms| ms > TTL_MS) || grant.ts > now.plus(CLOCK_SKEW_MS) || grant.exp <= now {
        return Err(DelegationError::Expired { grant: index });
    }
    let signer = view.device(&grant.by).ok_or(DelegationError::NotMember { grant: index })?;
    if *signer.person != grant.from.person || *signer.label != grant.from.label {
        return Err(DelegationError::NotMember { grant: index });
    }
    let mut unsigned = raw.as_object().ok_or_else(Invalid::new)?.clone();
    unsigned.remove("sig");
    if !verify_value(&grant.by, &grant.sig, Domain::Delegation, &Value::Object(unsigned)) {
        return Err(DelegationError::Signature { grant: index });
    }
    Ok(())
}

/// §6.7 a later grant starts where the one before it ends, names it, and only narrows it.
fn follows(grant: &Grant, index: usize, before: Option<(&Grant, Hash)>) -> Result<(), DelegationError> {
    let Some((previous, hash)) = before else {
        return match grant.parent {
            Some(_) => Err(DelegationError::Broken { grant: index, member: "parent" }),
            None => Ok(()),
        };
    };
    if grant.from != previous.to {
        return Err(DelegationError::Broken { grant: index, member: "from" });
    }
    if grant.parent != Some(hash) {
        return Err(DelegationError::Broken { grant: index, member: "parent" });
    }
    if !within(grant.scope.as_deref(), previous.scope.as_deref()) {
        return Err(DelegationError::Widened { grant: index, member: "scope" });
    }
    if grant.max_depth > previous.max_depth {
        return Err(DelegationError::Widened { grant: index, member: "maxDepth" });
    }
    if grant.exp > previous.exp {
        return Err(DelegationError::Widened { grant: index, member: "exp" });
    }
    Ok(())
}

/// Whether `scope` lies within `bound`. An absent scope is everything; a repeated label counts once.
pub(super) fn within(scope: Option<&[ScopeLabel]>, bound: Option<&[ScopeLabel]>) -> bool {
    let Some(bound) = bound else { return true };
    scope.is_some_and(|scope| scope.iter().all(|label| bound.contains(label)))
}

fn summarise(grants: &[Grant]) -> Result<Summary, Invalid> {
    let (root, last) = grants.first().zip(grants.last()).ok_or_else(Invalid::new)?;
    let addresses =
        std::iter::once(&root.from).chain(grants.iter().map(|grant| &grant.to)).cloned().collect::<Vec<_>>();
    Ok(Summary {
        addresses,
        depth: grants.len(),
        max_depth: grants.iter().map(|grant| grant.max_depth).fold(root.max_depth, u64::min),
        scope: last.scope.clone(),
        exp: grants.iter().map(|grant| grant.exp).fold(root.exp, Wall::min),
    })
}

/// §6.7 the chain reached this session, for this task, from the machine that sent it: so no executor can pose as
/// its own asker, and no chain can be shown again to another session or for another task.
fn arrived_on(last: &Grant, hop: &Hop) -> Result<(), DelegationError> {
    let member = if last.by != hop.by {
        "by"
    } else if last.from != hop.from {
        "from"
    } else if last.to != hop.to {
        "to"
    } else if last.task != hop.task {
        "task"
    } else {
        return Ok(());
    };
    Err(DelegationError::OtherHop { member })
}
