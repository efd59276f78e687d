//! The two proofs made with an invite's seed (`messaging/1 §4`, "Invites").
//!
//! The seed itself never travels in a frame or an entry. Each proof binds what it is for, so neither can be
//! used for the other, for another team, or for another member or connection.

use crate::domain::Domain;
use crate::hash::RealmId;
use crate::json::{Invalid, Object, Value};
use crate::key::{MachineId, Sig, SigningKey, verify_value};
use crate::nonce::Nonce;
use crate::ulid::Ulid;

/// A signature by the invite's seed that admits exactly this member value.
///
/// # Errors
/// [`Invalid`] when `member` is not I-JSON.
pub fn redeem_proof(
    seed: &SigningKey,
    team: &RealmId,
    invite_id: &Ulid,
    member: &Value,
) -> Result<Sig, Invalid> {
    seed.sign_value(Domain::Invite, &redeem_value(team, invite_id, member))
}

/// Whether `proof` admits this member value by the invite.
#[must_use]
pub fn verify_redeem_proof(
    invite_pub: &MachineId,
    proof: &Sig,
    team: &RealmId,
    invite_id: &Ulid,
    member: &Value,
) -> bool {
    verify_value(invite_pub, proof, Domain::Invite, &redeem_value(team, invite_id, member))
}

/// What a joiner proves to a relay before it may read the roster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinClaim<'a> {
    /// The relay id of this connection's challenge.
    pub relay: &'a str,
    /// The team.
    pub team: &'a RealmId,
    /// The invite.
    pub invite_id: &'a Ulid,
    /// The nonce of this connection's challenge.
    pub nonce: &'a Nonce,
}

/// A signature by the invite's seed that lets this connection read the roster.
///
/// # Errors
/// None in practice: the claim is I-JSON by its types.
pub fn join_proof(seed: &SigningKey, claim: &JoinClaim<'_>) -> Result<Sig, Invalid> {
    seed.sign_value(Domain::InviteJoin, &join_value(claim))
}

/// Whether `proof` lets this connection read the roster.
#[must_use]
pub fn verify_join_proof(invite_pub: &MachineId, proof: &Sig, claim: &JoinClaim<'_>) -> bool {
    verify_value(invite_pub, proof, Domain::InviteJoin, &join_value(claim))
}

fn redeem_value(team: &RealmId, invite_id: &Ulid, member: &Value) -> Value {
    let mut object = Object::new();
    object.push("team".to_owned(), Value::text(team.to_string()));
    object.push("inviteId".to_owned(), Value::text(invite_id.to_string()));
    object.push("member".to_owned(), member.clone());
    object.into()
}

fn join_value(claim: &JoinClaim<'_>) -> Value {
    let mut object = Object::new();
    object.push("relay".to_owned(), Value::text(claim.relay));
    object.push("team".to_owned(), Value::text(claim.team.to_string()));
    object.push("inviteId".to_owned(), Value::text(claim.invite_id.to_string()));
    object.push("nonce".to_owned(), Value::text(claim.nonce.to_string()));
    object.into()
}
