//! Making the next grant of a chain.

use super::verify::{grant_hash, within};
use super::{DelegationError, Grant};
use crate::address::SessionAddress;
use crate::domain::Domain;
use crate::hash::{Hash, RealmId};
use crate::json::{FromValue, Invalid, Object, Value};
use crate::key::SigningKey;
use crate::limits::{DELEGATION_DEPTH, DELEGATION_SCOPES, TTL_MS};
use crate::name::ScopeLabel;
use crate::time::Wall;
use crate::ulid::Ulid;

/// The largest integer of the wire, so the latest time it can say.
const LATEST: u64 = (1 << 53) - 1;

/// What a new grant says. The absent members come from the parent, or are as wide as the protocol allows.
#[derive(Clone, Debug)]
pub struct NewGrant {
    /// The realm of the chain.
    pub realm: RealmId,
    /// The task that is asked for.
    pub task: Ulid,
    /// The session that asks: one of the signing machine.
    pub from: SessionAddress,
    /// The session that is asked.
    pub to: SessionAddress,
    /// When the grant is made.
    pub ts: Wall,
    /// When it ends.
    pub exp: Option<Wall>,
    /// The most grants a chain through this one may hold.
    pub max_depth: Option<u64>,
    /// The labels it is limited to.
    pub scope: Option<Vec<ScopeLabel>>,
}

/// Makes and signs a grant (`createGrant`, `messaging/1 §6.7`): a root, or the next hop after `parent`.
///
/// `parent` is the previous grant as received or as signed, unknown members included.
///
/// # Errors
/// The first of: a bad shape, an expired parent, a `from` that is not the parent's `to`, a member wider than the
/// parent's, a lifetime that is negative or over `ttlMs`.
pub fn create_grant(
    signer: &SigningKey,
    new: &NewGrant,
    parent: Option<&Value>,
) -> Result<Value, DelegationError> {
    shape(new)?;
    let parent = parent.map(Parent::read).transpose()?;
    if let Some(parent) = &parent {
        parent.allows(new)?;
    }
    let default_exp = new.ts.plus(TTL_MS);
    let exp =
        new.exp.unwrap_or_else(|| parent.as_ref().map_or(default_exp, |p| default_exp.min(p.grant.exp)));
    let lifetime = exp.0.checked_sub(new.ts.0).ok_or(DelegationError::Lifetime)?;
    if lifetime > TTL_MS || exp.0 > LATEST {
        return Err(DelegationError::Lifetime);
    }
    let max_depth = new
        .max_depth
        .or_else(|| parent.as_ref().map(|p| p.grant.max_depth))
        .unwrap_or(DELEGATION_DEPTH as u64);
    let scope = new.scope.as_deref().or_else(|| parent.as_ref().and_then(|p| p.grant.scope.as_deref()));

    let mut grant = Object::new();
    grant.set("realm", Value::text(new.realm.to_string()));
    grant.set("task", Value::text(new.task.to_string()));
    grant.set("from", Value::text(new.from.to_string()));
    grant.set("to", Value::text(new.to.to_string()));
    grant.set("by", Value::text(signer.machine().to_string()));
    grant.set("ts", Value::int(new.ts.0));
    grant.set("exp", Value::int(exp.0));
    grant.set("maxDepth", Value::int(max_depth));
    if let Some(scope) = scope {
        grant.set("scope", Value::Array(scope.iter().map(|label| Value::text(label.as_str())).collect()));
    }
    if let Some(parent) = &parent {
        grant.set("parent", Value::text(parent.hash.to_string()));
    }
    let unsigned = Value::Object(grant);
    let sig = signer.sign_value(Domain::Delegation, &unsigned)?;
    let Value::Object(mut grant) = unsigned else { return Err(Invalid::new().into()) };
    grant.set("sig", Value::text(sig.to_string()));
    Ok(Value::Object(grant))
}

/// The bounds that the types of [`NewGrant`] do not carry.
fn shape(new: &NewGrant) -> Result<(), Invalid> {
    if new.ts.0 > LATEST {
        return Err(Invalid::at("ts"));
    }
    if new.exp.is_some_and(|exp| exp.0 > LATEST) {
        return Err(Invalid::at("exp"));
    }
    if new.max_depth.is_some_and(|depth| !(1..=DELEGATION_DEPTH as u64).contains(&depth)) {
        return Err(Invalid::at("maxDepth"));
    }
    if new.scope.as_ref().is_some_and(|scope| scope.len() > DELEGATION_SCOPES) {
        return Err(Invalid::at("scope"));
    }
    Ok(())
}

/// The grant before the new one.
struct Parent {
    grant: Grant,
    hash: Hash,
}

impl Parent {
    fn read(raw: &Value) -> Result<Self, DelegationError> {
        let grant = Grant::from_value(raw).map_err(|invalid| invalid.within("parent"))?;
        let hash = grant_hash(raw).map_err(|invalid| invalid.within("parent"))?;
        Ok(Self { grant, hash })
    }

    /// §6.7 every grant after the root may only narrow. The order of the checks is the contract's.
    fn allows(&self, new: &NewGrant) -> Result<(), DelegationError> {
        if self.grant.exp <= new.ts {
            return Err(DelegationError::ParentExpired);
        }
        if new.from != self.grant.to {
            return Err(DelegationError::NotFromParent);
        }
        // An absent member takes the parent's own bound, so only what was given can be wider.
        if new.scope.as_deref().is_some_and(|scope| !within(Some(scope), self.grant.scope.as_deref())) {
            return Err(DelegationError::Widens { member: "scope" });
        }
        if new.max_depth.is_some_and(|depth| depth > self.grant.max_depth) {
            return Err(DelegationError::Widens { member: "maxDepth" });
        }
        if new.exp.is_some_and(|exp| exp > self.grant.exp) {
            return Err(DelegationError::Widens { member: "exp" });
        }
        Ok(())
    }
}
