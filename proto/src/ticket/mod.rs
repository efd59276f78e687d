//! What people hand each other out of band: invite tickets, team cards and admit cards
//! (`messaging/1 §4`, "Invites"; `§8.2`).
//!
//! Each is one line: a prefix and the base64url of a small JSON object. Nothing is trimmed or guessed.

mod invite;
mod proof;
mod text;

pub use invite::{create_invite, create_redeem};
pub use proof::{JoinClaim, join_proof, redeem_proof, verify_join_proof, verify_redeem_proof};

use crate::Code;
use crate::b64u;
use crate::hash::RealmId;
use crate::json::{Fields, Invalid, Object, Value};
use crate::key::{EncKey, MachineId, SigningKey};
use crate::name::{Label, PersonName, TeamName};
use crate::relay_url::RelayUrl;
use crate::roster::V;
use crate::time::Wall;
use crate::ulid::Ulid;
use thiserror::Error;
use zeroize::Zeroizing;

/// A ticket or card that is refused. Never holds a value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TicketError {
    /// The object is not of its schema, or not I-JSON.
    #[error("ticket: {0}")]
    Invalid(#[from] Invalid),
    /// The text does not start with the prefix of its kind.
    #[error("ticket: another prefix")]
    Prefix,
    /// What follows the prefix is not canonical base64url.
    #[error("ticket: not base64url")]
    Encoding,
    /// The object is over `ticketBytes`.
    #[error("ticket: larger than the limit")]
    TooLarge,
    /// `machine` is not a usable key.
    #[error("ticket: machine is not a usable key")]
    UnusableKey,
    /// The invite's lifetime is not above zero and at most `ttlMs`.
    #[error("ticket: the lifetime of the invite is out of range")]
    Lifetime,
    /// The ticket is for another team than the roster's.
    #[error("ticket: team is another one")]
    AnotherTeam,
}

impl TicketError {
    /// The code of this refusal.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::AnotherTeam => Code::InviteInvalid,
            Self::Invalid(_)
            | Self::Prefix
            | Self::Encoding
            | Self::TooLarge
            | Self::UnusableKey
            | Self::Lifetime => Code::InvalidRequest,
        }
    }
}

/// `messaging1.…`: whoever holds it may join, once, as the invited person. A secret.
#[derive(Clone, Debug)]
pub struct InviteTicket {
    /// Where the team's relay is.
    pub relay: RelayUrl,
    /// The team, which pins the roster's genesis.
    pub team: RealmId,
    /// The invite.
    pub invite_id: Ulid,
    /// Whom it admits.
    pub person: PersonName,
    /// When the invite ends.
    pub expires: Wall,
    /// The invite's seed.
    pub secret: SigningKey,
}

/// `messaging-team.…`: where a team is. Not a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamCard {
    /// Where the team's relay is.
    pub relay: RelayUrl,
    /// The team.
    pub team: RealmId,
    /// The team's name.
    pub name: TeamName,
}

/// `messaging-admit.…`: a machine that asks to be added. Not a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmitCard {
    /// The machine's id.
    pub machine: MachineId,
    /// The key to seal to.
    pub enc: EncKey,
    /// The person it would be of.
    pub person: PersonName,
    /// Its label.
    pub label: Label,
}

impl InviteTicket {
    const PREFIX: &'static str = "messaging1.";

    /// The ticket as text.
    ///
    /// # Errors
    /// [`TicketError`] when it could not be read back.
    pub fn encode(&self) -> Result<Zeroizing<String>, TicketError> {
        let seed = self.secret.seed();
        text::seal(
            Self::PREFIX,
            members([
                ("relay", Value::text(self.relay.as_str())),
                ("team", Value::text(self.team.to_string())),
                ("inviteId", Value::text(self.invite_id.to_string())),
                ("person", Value::text(self.person.as_str())),
                ("expires", Value::int(self.expires.0)),
                ("secret", Value::text(b64u::encode(&seed[..]))),
            ]),
        )
    }

    /// Reads a ticket.
    ///
    /// # Errors
    /// [`TicketError`], always `invalid_request`.
    pub fn decode(text: &str) -> Result<Self, TicketError> {
        text::open(Self::PREFIX, text, |fields| {
            let secret = fields.raw("secret").and_then(Value::as_str).and_then(|text| {
                let seed = Zeroizing::new(b64u::decode(text)?);
                let seed: [u8; 32] = seed.as_slice().try_into().ok()?;
                Some(SigningKey::from_seed(seed))
            });
            Ok(Self {
                relay: fields.req("relay")?,
                team: fields.req("team")?,
                invite_id: fields.req("inviteId")?,
                person: fields.req("person")?,
                expires: Wall(fields.req("expires")?),
                secret: secret.ok_or_else(|| Invalid::at("secret"))?,
            })
        })
    }
}

impl TeamCard {
    const PREFIX: &'static str = "messaging-team.";

    /// The card as text.
    ///
    /// # Errors
    /// [`TicketError`] when it could not be read back.
    pub fn encode(&self) -> Result<String, TicketError> {
        text::seal(
            Self::PREFIX,
            members([
                ("relay", Value::text(self.relay.as_str())),
                ("team", Value::text(self.team.to_string())),
                ("name", Value::text(self.name.as_str())),
            ]),
        )
        .map(|text| text.to_string())
    }

    /// Reads a card.
    ///
    /// # Errors
    /// [`TicketError`], always `invalid_request`.
    pub fn decode(text: &str) -> Result<Self, TicketError> {
        text::open(Self::PREFIX, text, |fields| {
            Ok(Self { relay: fields.req("relay")?, team: fields.req("team")?, name: fields.req("name")? })
        })
    }
}

impl AdmitCard {
    const PREFIX: &'static str = "messaging-admit.";

    /// The card as text.
    ///
    /// # Errors
    /// [`TicketError`] when it could not be read back.
    pub fn encode(&self) -> Result<String, TicketError> {
        self.usable()?;
        text::seal(
            Self::PREFIX,
            members([
                ("machine", Value::text(self.machine.to_string())),
                ("enc", Value::text(self.enc.to_string())),
                ("person", Value::text(self.person.as_str())),
                ("label", Value::text(self.label.as_str())),
            ]),
        )
        .map(|text| text.to_string())
    }

    /// Reads a card.
    ///
    /// # Errors
    /// [`TicketError`], always `invalid_request`.
    pub fn decode(text: &str) -> Result<Self, TicketError> {
        let card = text::open(Self::PREFIX, text, |fields| {
            Ok(Self {
                machine: fields.req("machine")?,
                enc: fields.req("enc")?,
                person: fields.req("person")?,
                label: fields.req("label")?,
            })
        })?;
        card.usable()?;
        Ok(card)
    }

    fn usable(&self) -> Result<(), TicketError> {
        if self.machine.is_usable() { Ok(()) } else { Err(TicketError::UnusableKey) }
    }
}

fn members<const N: usize>(members: [(&str, Value); N]) -> Object {
    let mut object = Object::new();
    object.push("v".to_owned(), Value::text(V));
    for (name, value) in members {
        object.push(name.to_owned(), value);
    }
    object
}

fn version(fields: &Fields<'_>) -> Result<(), Invalid> {
    fields.literal("v", V)
}
