//! Contact cards (`messaging/1 §6.9`): what a person tells another they may send. Advice, not authority.

use crate::consent::{
    Ask, AskPolicy, ChatPolicy, ConsentError, Levels, MailPolicy, Relation, effective_policy,
};
use crate::consent::{VERSION, sign, signed_by, within_bytes};
use crate::domain::Domain;
use crate::hash::RealmId;
use crate::json::{Fields, FromValue, Invalid, Object, Value, canonicalize};
use crate::key::{MachineId, Sig, SigningKey};
use crate::limits::CARD_BYTES;
use crate::name::PersonId;
use crate::time::Wall;
use crate::ulid::Ulid;
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// What a card allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Can {
    /// Lines by the person.
    pub chat: bool,
    /// Lines by the person's agents.
    pub agent_mail: bool,
    /// Mail and tasks to agents.
    pub ask: Ask,
    /// Until when the person is trusted; only with [`Ask::Open`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_until: Option<Wall>,
}

impl FromValue for Can {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        Ok(Self {
            chat: fields.req("chat")?,
            agent_mail: fields.req("agentMail")?,
            ask: fields.req("ask")?,
            trusted_until: fields.opt("trustedUntil")?.map(Wall),
        })
    }
}

impl Can {
    /// The value a card holds.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.set("chat", Value::Bool(self.chat));
        object.set("agentMail", Value::Bool(self.agent_mail));
        object.set("ask", Value::text(self.ask.as_str()));
        if let Some(until) = self.trusted_until {
            object.set("trustedUntil", Value::int(until.0));
        }
        Value::Object(object)
    }
}

/// What a card says for a relation and the person grant (`cardCan`, `messaging/1 §6.9`). Channel grants are not on
/// it: the other person knows their own channels.
#[must_use]
pub fn card_can(relation: Relation, person: Option<&Levels>, now: Wall) -> Can {
    let policy = effective_policy(relation, person, &[], now);
    if policy.chat == ChatPolicy::Blocked {
        return Can { chat: false, agent_mail: false, ask: Ask::No, trusted_until: None };
    }
    Can {
        chat: matches!(policy.chat, ChatPolicy::Always | ChatPolicy::Open | ChatPolicy::Muted),
        agent_mail: matches!(policy.agent_mail, MailPolicy::Always | MailPolicy::Open),
        ask: match policy.ask {
            AskPolicy::Always | AskPolicy::Open => Ask::Open,
            AskPolicy::Request => Ask::Request,
            AskPolicy::No => Ask::No,
        },
        trusted_until: policy.trusted_until,
    }
}

/// The members of a card that this release knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardBody {
    /// The realm.
    pub realm: RealmId,
    /// Whose card it is.
    pub from: PersonId,
    /// Whom it tells.
    pub to: PersonId,
    /// The device that signed it.
    pub by: MachineId,
    /// Rises with every card of `from` to `to`; at least 1.
    pub seq: u64,
    /// When it was made.
    pub ts: Wall,
    /// The grant it speaks of.
    pub grant_id: Option<Ulid>,
    /// What it allows.
    pub can: Can,
    /// The signature.
    pub sig: Sig,
}

impl FromValue for CardBody {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        fields.literal("v", VERSION)?;
        let seq = fields.req("seq")?;
        if seq == 0 {
            return Err(Invalid::at("seq"));
        }
        Ok(Self {
            realm: fields.req("realm")?,
            from: fields.req("from")?,
            to: fields.req("to")?,
            by: fields.req("by")?,
            seq,
            ts: Wall(fields.req("ts")?),
            grant_id: fields.opt("grantId")?,
            can: fields.req("can")?,
            sig: fields.req("sig")?,
        })
    }
}

impl CardBody {
    fn keeps_rules(&self) -> Result<(), ConsentError> {
        if self.from == self.to {
            return Err(ConsentError::Rule { member: "to" });
        }
        if self.can.trusted_until.is_some() && self.can.ask != Ask::Open {
            return Err(ConsentError::Rule { member: "trustedUntil" });
        }
        Ok(())
    }
}

/// A card that was signed here or verified: its members, and the raw value its signature covers.
#[derive(Clone, Debug, PartialEq)]
pub struct ContactCard {
    body: CardBody,
    raw: Value,
}

impl ContactCard {
    /// The value as signed: what is stored and sent on.
    #[must_use]
    pub const fn raw(&self) -> &Value {
        &self.raw
    }
}

impl Deref for ContactCard {
    type Target = CardBody;

    fn deref(&self) -> &CardBody {
        &self.body
    }
}

/// Signs a card (`signContactCard`, `messaging/1 §6.9`). `unsigned` is the card without `by` and `sig`.
///
/// # Errors
/// Shape or rule first, then a card over `cardBytes`.
pub fn sign_contact_card(signer: &SigningKey, unsigned: Value) -> Result<ContactCard, ConsentError> {
    let raw = sign(signer, Domain::Card, unsigned)?;
    let body = CardBody::from_value(&raw)?;
    body.keeps_rules()?;
    within_bytes(&raw, CARD_BYTES)?;
    Ok(ContactCard { body, raw })
}

/// Verifies a card from one person to another (`verifyContactCard`, `messaging/1 §6.9`), over the raw value.
///
/// Whether `by` is a current device of `from`, and whether `seq` is past the card held, is the caller's to know.
///
/// # Errors
/// The first of: shape and I-JSON, a rule, the size, another realm or person, the signature.
pub fn verify_contact_card(
    raw: &Value,
    realm: &RealmId,
    from: &PersonId,
    to: &PersonId,
) -> Result<ContactCard, ConsentError> {
    let body = CardBody::from_value(raw)?;
    let bytes = canonicalize(raw)?.len();
    body.keeps_rules()?;
    if bytes > CARD_BYTES {
        return Err(ConsentError::TooLarge);
    }
    let other = if body.realm != *realm {
        Some("realm")
    } else if body.from != *from {
        Some("from")
    } else if body.to != *to {
        Some("to")
    } else {
        None
    };
    if let Some(member) = other {
        return Err(ConsentError::Other { member });
    }
    if !signed_by(&body.by, &body.sig, Domain::Card, raw) {
        return Err(ConsentError::Signature);
    }
    Ok(ContactCard { body, raw: raw.clone() })
}
