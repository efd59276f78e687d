//! Consent grants: the shape, the rules, signing and verifying.

use super::{Ask, ConsentError, Levels, Subject};
use crate::domain::Domain;
use crate::hash::RealmId;
use crate::json::{Fields, FromValue, Invalid, Object, Value, canonicalize};
use crate::key::{MachineId, Sig, SigningKey, verify_value};
use crate::limits::{GRANT_BYTES, TRUST_MAX_MS};
use crate::name::PersonId;
use crate::time::Wall;
use crate::ulid::Ulid;
use std::ops::Deref;

/// The members of a grant that this release knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantBody {
    /// The realm it is of.
    pub realm: RealmId,
    /// Its id; a re-sign keeps it.
    pub id: Ulid,
    /// Whose grant it is.
    pub person: PersonId,
    /// The device that signed it.
    pub by: MachineId,
    /// When the person made it; a re-sign keeps it.
    pub ts: Wall,
    /// Whom it is about.
    pub subject: Subject,
    /// What it sets.
    pub levels: Levels,
    /// When it was signed again for a removed or replaced signer.
    pub resigned_at: Option<Wall>,
    /// The signature.
    pub sig: Sig,
}

impl FromValue for GrantBody {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        fields.literal("v", VERSION)?;
        Ok(Self {
            realm: fields.req("realm")?,
            id: fields.req("id")?,
            person: fields.req("person")?,
            by: fields.req("by")?,
            ts: Wall(fields.req("ts")?),
            subject: fields.req("subject")?,
            levels: Levels::read(fields)?,
            resigned_at: fields.opt("resignedAt")?.map(Wall),
            sig: fields.req("sig")?,
        })
    }
}

/// The `v` of grants and cards.
pub(crate) const VERSION: &str = "messaging/1";

impl GrantBody {
    /// The rules the shape does not show (`messaging/1 §6.9`, "Grants").
    fn keeps_rules(&self) -> Result<(), ConsentError> {
        let rule = |member| Err(ConsentError::Rule { member });
        let levels = &self.levels;
        if matches!(self.subject, Subject::Channel(_)) {
            // §6.9 a channel grant sets only ask and agentMail.
            if levels.chat.is_some() {
                return rule("chat");
            }
            if levels.trusted_until.is_some() {
                return rule("trustedUntil");
            }
        }
        let own = matches!(&self.subject, Subject::Person(person) if *person == self.person);
        if levels.discoverable.is_some() && !own {
            return rule("discoverable");
        }
        if let Some(until) = levels.trusted_until
            && (levels.ask != Some(Ask::Open) || until > self.ts.plus(TRUST_MAX_MS))
        {
            return rule("trustedUntil");
        }
        Ok(())
    }
}

/// A grant that was signed here or verified: its members, and the raw value its signature covers.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsentGrant {
    body: GrantBody,
    raw: Value,
}

impl ConsentGrant {
    /// The value as signed, unknown members included: what is stored and sent on.
    #[must_use]
    pub const fn raw(&self) -> &Value {
        &self.raw
    }

    /// A grant from this daemon's own store, which verified it when it came in. Checks shape and rules alone.
    ///
    /// # Errors
    /// [`ConsentError`] when the value is no grant.
    pub fn from_store(raw: Value) -> Result<Self, ConsentError> {
        let body = GrantBody::from_value(&raw)?;
        body.keeps_rules()?;
        Ok(Self { body, raw })
    }
}

impl Deref for ConsentGrant {
    type Target = GrantBody;

    fn deref(&self) -> &GrantBody {
        &self.body
    }
}

/// What a person's new grant says; the signer and the signature come from [`sign_consent_grant`].
#[derive(Clone, Debug)]
pub struct NewGrant {
    /// The realm.
    pub realm: RealmId,
    /// A fresh id.
    pub id: Ulid,
    /// Whose grant it is.
    pub person: PersonId,
    /// When it is made: see [`super::hold::next_ts`].
    pub ts: Wall,
    /// Whom it is about.
    pub subject: Subject,
    /// What it sets.
    pub levels: Levels,
}

impl NewGrant {
    /// The grant as a value without `by` and `sig`.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.set("v", Value::text(VERSION));
        object.set("realm", Value::text(self.realm.to_string()));
        object.set("id", Value::text(self.id.to_string()));
        object.set("person", Value::text(self.person.as_str()));
        object.set("ts", Value::int(self.ts.0));
        object.set("subject", self.subject.to_value());
        self.levels.write(&mut object);
        Value::Object(object)
    }
}

/// Signs a grant (`signConsentGrant`, `messaging/1 §6.9`). `unsigned` is the grant without `by` and `sig`, which
/// are set here; its unknown members are kept and signed.
///
/// # Errors
/// Shape or rule first, then a grant over `grantBytes`.
pub fn sign_consent_grant(signer: &SigningKey, unsigned: Value) -> Result<ConsentGrant, ConsentError> {
    let raw = sign(signer, Domain::Grant, unsigned)?;
    let grant = ConsentGrant::from_store(raw)?;
    within_bytes(&grant.raw, GRANT_BYTES)?;
    Ok(grant)
}

/// Verifies a grant of `person` in `realm` (`verifyConsentGrant`, `messaging/1 §6.9`), over the raw value.
///
/// Whether `by` is a current device of the person is the caller's to know. `ts` is not compared with a clock.
///
/// # Errors
/// The first of: shape and I-JSON, a rule, the size, another realm or person, the signature.
pub fn verify_consent_grant(
    raw: &Value,
    realm: &RealmId,
    person: &PersonId,
) -> Result<ConsentGrant, ConsentError> {
    let body = GrantBody::from_value(raw)?;
    let bytes = canonicalize(raw)?.len();
    body.keeps_rules()?;
    if bytes > GRANT_BYTES {
        return Err(ConsentError::TooLarge);
    }
    if body.realm != *realm {
        return Err(ConsentError::Other { member: "realm" });
    }
    if body.person != *person {
        return Err(ConsentError::Other { member: "person" });
    }
    if !signed_by(&body.by, &body.sig, Domain::Grant, raw) {
        return Err(ConsentError::Signature);
    }
    Ok(ConsentGrant { body, raw: raw.clone() })
}

/// Sets `by`, signs everything but `sig`, and sets `sig`.
pub(crate) fn sign(signer: &SigningKey, domain: Domain, unsigned: Value) -> Result<Value, ConsentError> {
    let Value::Object(mut object) = unsigned else { return Err(Invalid::new().into()) };
    object.remove("sig");
    object.set("by", Value::text(signer.machine().to_string()));
    let unsigned = Value::Object(object);
    let sig = signer.sign_value(domain, &unsigned)?;
    let Value::Object(mut object) = unsigned else { return Err(Invalid::new().into()) };
    object.set("sig", Value::text(sig.to_string()));
    Ok(Value::Object(object))
}

/// Whether `sig` is `by`'s over the value without its `sig`.
pub(crate) fn signed_by(by: &MachineId, sig: &Sig, domain: Domain, raw: &Value) -> bool {
    let Some(mut unsigned) = raw.as_object().cloned() else { return false };
    unsigned.remove("sig");
    verify_value(by, sig, domain, &Value::Object(unsigned))
}

/// Refuses a value whose canonical text is over `max` bytes.
pub(crate) fn within_bytes(raw: &Value, max: usize) -> Result<(), ConsentError> {
    if canonicalize(raw)?.len() > max { Err(ConsentError::TooLarge) } else { Ok(()) }
}
