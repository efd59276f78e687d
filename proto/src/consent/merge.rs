//! Merging copies of one grant (`messaging/1 §6.9`, "Merging").

use super::ConsentGrant;
use crate::key::MachineId;
use std::cmp::Ordering;

/// The copy that counts, of two for one subject (`preferGrant`, `messaging/1 §6.9`).
///
/// `current` tells whether a device is one of the person's now. The order is total, so devices that saw the same
/// copies in any order hold the same grant.
pub fn prefer_grant<'a>(
    a: &'a ConsentGrant,
    b: &'a ConsentGrant,
    current: impl Fn(&MachineId) -> bool,
) -> &'a ConsentGrant {
    // Names and ids compare as their texts: base64url does not sort as its bytes do.
    let order = (a.ts.cmp(&b.ts))
        .then_with(|| a.id.as_str().cmp(b.id.as_str()))
        .then_with(|| current(&a.by).cmp(&current(&b.by)))
        .then_with(|| b.by.to_string().cmp(&a.by.to_string()))
        .then_with(|| b.sig.to_string().cmp(&a.sig.to_string()));
    if order == Ordering::Less { b } else { a }
}
