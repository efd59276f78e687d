//! Grants that another device of the person sent (`messaging/1 §6.9`, "Sync").

use super::{ConsentGrant, Subject, prefer_grant, verify_consent_grant};
use crate::Code;
use crate::hash::RealmId;
use crate::json::{Fields, Invalid, Value};
use crate::key::MachineId;
use crate::limits::GRANTS_PER_PERSON;
pub use crate::meaning::SYNC_GRANTS;
use crate::name::PersonId;

/// The grants of a sync message, raw: its one part is `{data: {grants}}`, and it is for a device, not an agent.
///
/// # Errors
/// [`Invalid`] for any other message.
pub fn grants_of(message: &Value, to_agent: bool) -> Result<&[Value], Invalid> {
    if to_agent {
        return Err(Invalid::at("to"));
    }
    let invalid = || Invalid::at("parts");
    let parts = Fields::of(message)?.raw("parts").and_then(Value::as_array).ok_or_else(invalid)?;
    let [part] = parts else { return Err(invalid()) };
    let grants = part.get("data").and_then(|data| data.get("grants")).and_then(Value::as_array);
    grants.filter(|grants| (1..=SYNC_GRANTS).contains(&grants.len())).ok_or_else(invalid)
}

/// What this device holds, as far as taking a grant reads it.
pub trait Holding {
    /// Why it could not be read; passed on as it is.
    type Down;

    /// The realm of this daemon.
    fn realm(&self) -> &RealmId;

    /// The person whose device this is.
    fn person(&self) -> &PersonId;

    /// Whether a machine is a current device of the person.
    fn is_current(&self, device: &MachineId) -> bool;

    /// The copy held for a subject.
    ///
    /// # Errors
    /// When it could not be read.
    fn held(&self, subject: &Subject) -> Result<Option<ConsentGrant>, Self::Down>;

    /// How many grants are held.
    ///
    /// # Errors
    /// When it could not be read.
    fn count(&self) -> Result<usize, Self::Down>;

    /// The most grants that may be held.
    fn cap(&self) -> usize {
        GRANTS_PER_PERSON
    }
}

/// What to do with a grant that came by sync.
#[derive(Clone, Debug, PartialEq)]
pub enum Taken {
    /// Store it in place of the copy held, and look whether it settles a [`super::Review`].
    Store(Box<ConsentGrant>),
    /// The copy held counts.
    Keep,
    /// Skip it, and log this code. Nothing is answered.
    Skip(Code),
}

/// Judges one grant of a sync message, in the order of the list.
///
/// # Errors
/// When what is held could not be read.
pub fn take<H: Holding + ?Sized>(holding: &H, raw: &Value) -> Result<Taken, H::Down> {
    let grant = match verify_consent_grant(raw, holding.realm(), holding.person()) {
        Ok(grant) => grant,
        Err(error) => return Ok(Taken::Skip(error.code())),
    };
    // §6.9 a grant counts only while a current device signed it.
    if !holding.is_current(&grant.by) {
        return Ok(Taken::Skip(Code::UnknownDevice));
    }
    let Some(held) = holding.held(&grant.subject)? else {
        return Ok(if holding.count()? >= holding.cap() {
            Taken::Skip(Code::RateLimited)
        } else {
            Taken::Store(Box::new(grant))
        });
    };
    let kept = std::ptr::eq(prefer_grant(&held, &grant, |by| holding.is_current(by)), &held);
    Ok(if kept { Taken::Keep } else { Taken::Store(Box::new(grant)) })
}
