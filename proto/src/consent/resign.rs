//! Signing a grant again when its signer is gone (`messaging/1 §6.9`, "Signers").

use super::{ConsentError, ConsentGrant, Levels, Subject, sign_consent_grant};
use crate::json::{Object, Value};
use crate::key::{MachineId, SigningKey};
use crate::time::Wall;
use serde::{Deserialize, Serialize};

/// What a re-sign left of a grant.
#[derive(Clone, Debug, PartialEq)]
pub struct Resigned {
    /// The grant signed again; nothing when all of it lapsed.
    pub grant: Option<ConsentGrant>,
    /// What lapsed, for the person's review list.
    pub lapsed: Option<Review>,
}

/// Levels that wait for the person to confirm them again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// Whom the grant was about.
    pub subject: Subject,
    /// The device that had signed it.
    pub by: MachineId,
    /// When the grant was made.
    pub ts: Wall,
    /// When its levels lapsed.
    pub lapsed_at: Wall,
    /// The levels that lapsed.
    pub levels: Levels,
}

impl Review {
    /// Whether a grant that was accepted for the same subject takes this entry off the list.
    #[must_use]
    pub fn is_settled_by(&self, accepted: &ConsentGrant) -> bool {
        self.subject == accepted.subject && accepted.ts > self.ts
    }
}

/// Signs a grant again with `signer` (`resignGrant`, `messaging/1 §6.9`).
///
/// With `keep_all` the old signer was replaced, and everything is kept, unknown members and a clear included.
/// Without it the signer was removed: restricting levels stay, widening ones lapse, and unknown members go, since
/// this release cannot tell which way they lean. `id` and `ts` never change, so the copy keeps its place.
///
/// # Errors
/// [`ConsentError`] when the new copy would not be a grant: only for one that grew past `grantBytes` by its
/// `resignedAt`, or a `now` the wire cannot say.
pub fn resign_grant(
    grant: &ConsentGrant,
    signer: &SigningKey,
    now: Wall,
    keep_all: bool,
) -> Result<Resigned, ConsentError> {
    if keep_all {
        let object = grant.raw().as_object().cloned().unwrap_or_default();
        return Ok(Resigned { grant: Some(signed(signer, object, now)?), lapsed: None });
    }
    let kept = grant.levels.restricting();
    let levels = grant.levels.widening();
    let lapsed = (!levels.is_clear()).then(|| Review {
        subject: grant.subject.clone(),
        by: grant.by,
        ts: grant.ts,
        lapsed_at: now,
        levels,
    });
    if kept.is_clear() {
        return Ok(Resigned { grant: None, lapsed });
    }
    let mut object = Object::new();
    for name in ["v", "realm", "id", "person", "ts", "subject"] {
        if let Some(value) = grant.raw().get(name) {
            object.set(name, value.clone());
        }
    }
    kept.write(&mut object);
    Ok(Resigned { grant: Some(signed(signer, object, now)?), lapsed })
}

fn signed(signer: &SigningKey, mut object: Object, now: Wall) -> Result<ConsentGrant, ConsentError> {
    object.set("resignedAt", Value::int(now.0));
    sign_consent_grant(signer, Value::Object(object))
}
