//! Opening a seal and judging what was in it (`messaging/1 §5`, step 9; `§9`).

use super::crypt::{SealKey, TAG_BYTES};
use super::error::EnvelopeError;
use super::header::{Body, Envelope, SealParams};
use super::inspect::Inspected;
use crate::json::{Invalid, Value, is_ijson, parse_wire_noting};
use crate::key::EncSecret;
use crate::limits::{PLAINTEXT_BYTES, PRESENCE_BYTES};
use crate::meaning;
use crate::payload::Payload;
use crate::realm::Anchor;

/// Opens an envelope with the first of `keys` that authenticates it, and reads its payload. Presence has no seal
/// and needs no key.
///
/// Signature, membership and times are not looked at: [`super::verify_envelope`] comes first.
///
/// # Errors
/// [`EnvelopeError::Seal`] when no key opens it, a size error, or [`EnvelopeError::Shape`] for a payload that is
/// not I-JSON, not of its type's schema, or without a meaning.
pub fn open_envelope(inspected: &Inspected, keys: &[&EncSecret]) -> Result<Payload, EnvelopeError> {
    let envelope = inspected.envelope().map_err(|invalid| EnvelopeError::Shape(invalid.clone()))?;
    let raw = match (&envelope.body, &envelope.header.seal) {
        (Body::Sealed(body), Some(seal)) => {
            let header = inspected.header_text();
            parse(&unseal(body, seal, header.as_bytes(), keys).ok_or(EnvelopeError::Seal)?)?
        }
        _ => {
            if inspected.body_bytes() > PRESENCE_BYTES {
                return Err(EnvelopeError::PresenceSize);
            }
            inspected.raw().get("body").cloned().unwrap_or(Value::Null)
        }
    };
    read(envelope, raw).map_err(|invalid| EnvelopeError::Shape(invalid.within("body")))
}

/// Tries each key in turn.
fn unseal(body: &[u8], seal: &SealParams, aad: &[u8], keys: &[&EncSecret]) -> Option<Vec<u8>> {
    if body.len() < TAG_BYTES {
        return None;
    }
    keys.iter().find_map(|secret| {
        let shared = secret.agree(&seal.epk)?;
        let key = SealKey::derive(&shared, &seal.epk, &secret.public())?;
        let mut text = body.to_vec();
        let length = key.open(seal.nonce, aad, &mut text)?.len();
        text.truncate(length);
        Some(text)
    })
}

/// §5 step 9: at most `plaintextBytes` of wire JSON that is I-JSON. The size is judged before any parsing.
fn parse(plaintext: &[u8]) -> Result<Value, EnvelopeError> {
    if plaintext.len() > PLAINTEXT_BYTES {
        return Err(EnvelopeError::PlaintextSize);
    }
    let inside = |invalid: Invalid| EnvelopeError::Shape(invalid.within("body"));
    let (value, canonical) = parse_wire_noting(plaintext, PLAINTEXT_BYTES).map_err(inside)?;
    if canonical || is_ijson(&value) { Ok(value) } else { Err(inside(Invalid::new())) }
}

fn read(envelope: &Envelope, raw: Value) -> Result<Payload, Invalid> {
    let payload = Payload::read(envelope.header.kind, raw)?;
    meaning::check(&envelope.header, payload.raw(), payload.typed())?;
    Ok(payload)
}

/// Tells a seal that fails because the sender had not seen this machine's newest key yet from any other: its
/// anchor is before `rekey_seq`, the entry of the newest key (`messaging/1 §4`). Other errors stay what they are.
#[must_use]
pub fn stale_seal(error: EnvelopeError, anchor: &Anchor, rekey_seq: Option<u64>) -> EnvelopeError {
    match (&error, anchor.head(), rekey_seq) {
        (EnvelopeError::Seal, Some(head), Some(rekeyed)) if head.seq < rekeyed => EnvelopeError::StaleSeal,
        _ => error,
    }
}
