//! Judging a `send` and a `presence` (contract wire-core §7.6, §7.8): two lists, in the order of the
//! specification.

use super::connection::Live;
use messaging_proto::Code;
use messaging_proto::envelope::{Envelope, Inspected, Kind, check_time};
use messaging_proto::json::FromValue;
use messaging_proto::limits::{HEADER_BYTES, PLAINTEXT_BYTES, PRESENCE_BYTES};
use messaging_proto::payload::PresencePayload;
use messaging_proto::realm::{RealmKind, RealmView, Relation};
use messaging_proto::roster::Roster;
use messaging_proto::time::Wall;

/// Bytes of the tag that a seal adds to its plaintext.
const TAG_BYTES: usize = 16;

/// What a check may look at.
pub(super) struct Case<'a> {
    pub(super) live: &'a Live,
    pub(super) roster: &'a Roster,
    pub(super) now: Wall,
    pub(super) inspected: &'a Inspected,
    envelope: &'a Envelope,
}

type Check = fn(&Case<'_>) -> Result<(), Code>;

/// §7.6, steps 1 to 9. Budgets come before, dedupe and queue caps after.
const SEND: [Check; 9] = [
    sealed,
    header_size,
    from_is_connection,
    both_are_members,
    anchor_is_roster,
    signature,
    head_is_ours,
    plaintext_size,
    time,
];

/// §7.8: the same with presence's own size and payload, and no recipient.
const PRESENCE: [Check; 10] = [
    presence,
    header_size,
    from_is_connection,
    sender_is_member,
    anchor_is_roster,
    signature,
    head_is_ours,
    presence_size,
    presence_payload,
    time,
];

/// Judges a `send`; the envelope when every check holds.
///
/// # Errors
/// The code of the first that fails.
pub(super) fn check_send<'a>(
    live: &Live,
    roster: &Roster,
    now: Wall,
    inspected: &'a Inspected,
) -> Result<&'a Envelope, Code> {
    check(&SEND, live, roster, now, inspected)
}

/// Judges a `presence`; the envelope when every check holds.
///
/// # Errors
/// The code of the first that fails.
pub(super) fn check_presence<'a>(
    live: &Live,
    roster: &Roster,
    now: Wall,
    inspected: &'a Inspected,
) -> Result<&'a Envelope, Code> {
    check(&PRESENCE, live, roster, now, inspected)
}

fn check<'a>(
    checks: &[Check],
    live: &Live,
    roster: &Roster,
    now: Wall,
    inspected: &'a Inspected,
) -> Result<&'a Envelope, Code> {
    // Step 1: schema, agreement and I-JSON. An unknown type is no schema of ours.
    let envelope = inspected.envelope().map_err(|_| Code::InvalidRequest)?;
    let case = Case { live, roster, now, inspected, envelope };
    checks.iter().try_for_each(|check| check(&case))?;
    Ok(envelope)
}

const fn require(holds: bool, code: Code) -> Result<(), Code> {
    if holds { Ok(()) } else { Err(code) }
}

fn sealed(case: &Case<'_>) -> Result<(), Code> {
    require(case.envelope.header.kind != Kind::Presence, Code::InvalidRequest)
}

fn presence(case: &Case<'_>) -> Result<(), Code> {
    require(case.envelope.header.kind == Kind::Presence, Code::InvalidRequest)
}

fn header_size(case: &Case<'_>) -> Result<(), Code> {
    require(case.inspected.header_bytes() <= HEADER_BYTES, Code::TooLarge)
}

fn from_is_connection(case: &Case<'_>) -> Result<(), Code> {
    require(case.envelope.header.from.device == case.live.machine, Code::Forbidden)
}

fn sender_is_member(case: &Case<'_>) -> Result<(), Code> {
    let header = &case.envelope.header;
    let member = case.roster.member(&header.from.device);
    let holds = header.realm == case.live.team && member.is_some_and(|one| one.person == header.from.person);
    require(holds, Code::NotMember)
}

fn both_are_members(case: &Case<'_>) -> Result<(), Code> {
    sender_is_member(case)?;
    let to = case.envelope.header.to.end();
    let member = to.and_then(|to| Some((case.roster.member(&to.device)?, to)));
    require(member.is_some_and(|(one, to)| one.person == to.person), Code::NotMember)
}

fn anchor_is_roster(case: &Case<'_>) -> Result<(), Code> {
    require(case.envelope.header.anchor.kind() == RealmKind::Roster, Code::InvalidRequest)
}

fn signature(case: &Case<'_>) -> Result<(), Code> {
    require(case.inspected.signature_ok(), Code::BadSignature)
}

/// §7 "Why the relay checks the head": every entry went through this relay, so a head that is not on its chain
/// is a false claim. An older head is on it.
fn head_is_ours(case: &Case<'_>) -> Result<(), Code> {
    let relation = case.roster.relate(&case.envelope.header.anchor);
    require(relation == Relation::Consistent, Code::RosterConflict)
}

fn plaintext_size(case: &Case<'_>) -> Result<(), Code> {
    require(case.inspected.body_bytes() <= PLAINTEXT_BYTES + TAG_BYTES, Code::TooLarge)
}

fn presence_size(case: &Case<'_>) -> Result<(), Code> {
    require(case.inspected.body_bytes() <= PRESENCE_BYTES, Code::TooLarge)
}

fn presence_payload(case: &Case<'_>) -> Result<(), Code> {
    let payload = case.inspected.raw().get("body").map(PresencePayload::from_value);
    require(matches!(payload, Some(Ok(_))), Code::InvalidRequest)
}

fn time(case: &Case<'_>) -> Result<(), Code> {
    check_time(&case.envelope.header, case.now).map_err(|error| error.code())
}

/// The `seq` of a presence that was judged; 0 of any other.
pub(super) fn presence_seq(inspected: &Inspected) -> u64 {
    let seq = inspected.raw().get("body").and_then(|body| body.get("seq"));
    seq.and_then(|seq| u64::from_value(seq).ok()).unwrap_or(0)
}
