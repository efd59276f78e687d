//! The text form that tickets and cards share.

use super::{TicketError, version};
use crate::b64u;
use crate::json::{Fields, Invalid, Object, Value, canonicalize, is_ijson, parse_wire};
use crate::limits;
use crate::wipe::wipe;
use zeroize::Zeroizing;

/// Prefix and base64url of the canonical object.
pub(super) fn seal(prefix: &str, object: Object) -> Result<Zeroizing<String>, TicketError> {
    let mut value = Value::from(object);
    let text = canonicalize(&value).map(Zeroizing::new);
    wipe(&mut value);
    let text = text?;
    if text.len() > limits::TICKET_BYTES {
        return Err(TicketError::TooLarge);
    }
    let encoded = Zeroizing::new(b64u::encode(text.as_bytes()));
    let mut out = Zeroizing::new(String::with_capacity(prefix.len() + encoded.len()));
    out.push_str(prefix);
    out.push_str(&encoded);
    Ok(out)
}

/// Reads the object behind the prefix. Its text need not be canonical.
pub(super) fn open<T>(
    prefix: &str,
    text: &str,
    read: impl FnOnce(&Fields<'_>) -> Result<T, Invalid>,
) -> Result<T, TicketError> {
    let encoded = text.strip_prefix(prefix).ok_or(TicketError::Prefix)?;
    if encoded.len() > limits::TICKET_BYTES.div_ceil(3) * 4 {
        return Err(TicketError::TooLarge);
    }
    let bytes = Zeroizing::new(b64u::decode(encoded).ok_or(TicketError::Encoding)?);
    let mut value = parse_wire(&bytes, limits::TICKET_BYTES)?;
    let out = parsed(&value, read);
    wipe(&mut value);
    Ok(out?)
}

fn parsed<T>(value: &Value, read: impl FnOnce(&Fields<'_>) -> Result<T, Invalid>) -> Result<T, Invalid> {
    let fields = Fields::of(value)?;
    version(&fields)?;
    if !is_ijson(value) {
        return Err(Invalid::new());
    }
    read(&fields)
}
