//! Judging an envelope against a realm and a clock (`messaging/1 §5`, "Receiver verification order"; `§9`).

use super::error::{EnvelopeError, TimeFault};
use super::header::{Envelope, Header, Kind};
use super::inspect::Inspected;
use crate::hash::RealmId;
use crate::key::MachineId;
use crate::limits::{CLOCK_SKEW_MS, TTL_MS};
use crate::realm::{Head, RealmKind, RealmView};
use crate::time::Wall;
use crate::verified::Verified;

/// Checks an envelope against `view` at `now`, and that it is for `me` when that is given (a relay has no `me`,
/// a recipient always does). Size and dedupe are the caller's.
///
/// # Errors
/// The first check that fails, in the order of the specification.
pub fn verify_envelope<'a>(
    inspected: &'a Inspected,
    view: &dyn RealmView,
    now: Wall,
    me: Option<&MachineId>,
) -> Result<Verified<&'a Envelope>, EnvelopeError> {
    let envelope = inspected.envelope().map_err(|invalid| EnvelopeError::Shape(invalid.clone()))?;
    let header = &envelope.header;
    if header.realm != view.realm() {
        return Err(EnvelopeError::Realm);
    }
    if header.anchor.kind() != view.kind() {
        return Err(EnvelopeError::AnchorKind);
    }
    check_time(header, now)?;
    if view.device(&header.from.device).is_none_or(|device| *device.person != header.from.person) {
        return Err(match view.kind() {
            RealmKind::Roster => EnvelopeError::NotMember,
            RealmKind::Epoch => EnvelopeError::UnknownDevice,
        });
    }
    if !inspected.signature_ok() {
        return Err(EnvelopeError::Signature);
    }
    if let Some(me) = me {
        check_recipient(header, view, me)?;
    }
    Ok(Verified::by_check(envelope))
}

/// §5 step 6. Presence is for everybody.
fn check_recipient(header: &Header, view: &dyn RealmView, me: &MachineId) -> Result<(), EnvelopeError> {
    if header.kind == Kind::Presence {
        return Ok(());
    }
    let mine = view.device(me);
    match (header.to.end(), mine) {
        (Some(to), Some(mine)) if to.device == *me && to.person == *mine.person => Ok(()),
        _ => Err(EnvelopeError::Recipient),
    }
}

/// §5 step 3: whether `ts` and `exp` hold at `now`.
///
/// # Errors
/// [`EnvelopeError::Time`] with the first rule that fails.
pub const fn check_time(header: &Header, now: Wall) -> Result<(), EnvelopeError> {
    let (ts, exp) = (header.ts, header.exp);
    let fault = if ts.0 > exp.0 {
        TimeFault::Backwards
    } else if ts.0 > now.plus(CLOCK_SKEW_MS).0 {
        TimeFault::Future
    } else if exp.0 <= now.0 {
        TimeFault::Over
    } else if exp.0 - ts.0 > TTL_MS {
        TimeFault::Long
    } else {
        return Ok(());
    };
    Err(EnvelopeError::Time(fault))
}

/// The roster head an envelope of `realm` is anchored to, as far as its signer vouches for it: no membership, no
/// times. What a machine that is behind catches up to before it judges the envelope.
#[must_use]
pub fn signed_head(inspected: &Inspected, realm: &RealmId) -> Option<Head> {
    let header = &inspected.envelope().ok()?.header;
    if header.realm != *realm || !inspected.signature_ok() {
        return None;
    }
    header.anchor.head()
}
