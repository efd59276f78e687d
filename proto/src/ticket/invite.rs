//! Making an invite, and joining by one (`messaging/1 §4`, "Invites").

use super::{InviteTicket, TicketError, redeem_proof};
use crate::json::Value;
use crate::key::{EncKey, SigningKey};
use crate::limits;
use crate::name::{Label, PersonName};
use crate::relay_url::RelayUrl;
use crate::roster::{Author, Member, Role, Roster};
use crate::time::Wall;
use crate::ulid::Ulid;

/// An `invite.create` entry and the ticket for it. `seed` is fresh, and only the ticket holds it.
///
/// # Errors
/// [`TicketError::Lifetime`] unless `0 < ttl_ms ≤ ttlMs`.
pub fn create_invite(
    author: &Author<'_>,
    relay: &RelayUrl,
    invite_id: Ulid,
    seed: SigningKey,
    person: &PersonName,
    ttl_ms: u64,
) -> Result<(Value, InviteTicket), TicketError> {
    if ttl_ms == 0 || ttl_ms > limits::TTL_MS {
        return Err(TicketError::Lifetime);
    }
    let expires = author.ts().plus(ttl_ms);
    let entry = author.invite_create(&invite_id, &seed.machine(), person, expires)?;
    let ticket = InviteTicket {
        relay: relay.clone(),
        team: author.team(),
        invite_id,
        person: person.clone(),
        expires,
        secret: seed,
    };
    Ok((entry, ticket))
}

/// An `invite.redeem` entry on top of the roster's head, by which the machine of `key` joins.
///
/// # Errors
/// [`TicketError::AnotherTeam`] when the ticket is not for the roster's team.
pub fn create_redeem(
    ticket: &InviteTicket,
    roster: &Roster,
    key: &SigningKey,
    enc: &EncKey,
    label: &Label,
    ts: Wall,
) -> Result<Value, TicketError> {
    let author = Author::new(key, roster, ts).ok_or(TicketError::AnotherTeam)?;
    if author.team() != ticket.team {
        return Err(TicketError::AnotherTeam);
    }
    let member = Member {
        machine: key.machine(),
        enc: *enc,
        person: ticket.person.clone().into(),
        role: Role::Member,
        label: label.clone(),
    }
    .to_value();
    let proof = redeem_proof(&ticket.secret, &ticket.team, &ticket.invite_id, &member)?;
    Ok(author.redeem(&ticket.invite_id, &proof, member)?)
}
