//! Building an envelope (`messaging/1 §5`, "Sealing"; `§9`).

use super::crypt::SealKey;
use super::cut::insert;
use super::ends::{End, To};
use super::error::EnvelopeError;
use super::header::{Class, Header, Kind, VERSION};
use crate::b64u;
use crate::domain::Domain;
use crate::hash::RealmId;
use crate::json::{FromValue, Invalid, Object, Value, canonicalize};
use crate::key::{EncKey, EncSecret, SigningKey};
use crate::limits::{HEADER_BYTES, PLAINTEXT_BYTES, PRESENCE_BYTES, TTL_MS};
use crate::meaning;
use crate::payload::Typed;
use crate::realm::Anchor;
use crate::time::Wall;
use crate::ulid::Ulid;

/// The members of a header its sender chooses. The others follow from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderParts {
    /// Fresh for every envelope.
    pub id: Ulid,
    /// `type`.
    pub kind: Kind,
    /// The sender's realm.
    pub realm: RealmId,
    /// What the sender has seen of it.
    pub anchor: Anchor,
    /// The sending machine and the author.
    pub from: End,
    /// Whom it is for.
    pub to: To,
    /// Now.
    pub ts: Wall,
    /// When it ends, at most `ttlMs` after `ts`.
    pub exp: Wall,
    /// The envelope this one answers.
    pub reply_to: Option<Ulid>,
}

impl HeaderParts {
    /// The members as they are written.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut header = Object::new();
        header.push("v".to_owned(), Value::text(VERSION));
        header.push("id".to_owned(), Value::text(self.id.to_string()));
        header.push("type".to_owned(), Value::text(self.kind.as_str()));
        header.push("realm".to_owned(), Value::text(self.realm.to_string()));
        header.push("anchor".to_owned(), self.anchor.to_value());
        header.push("from".to_owned(), self.from.to_value());
        header.push("to".to_owned(), self.to.to_value());
        header.push("ts".to_owned(), Value::int(self.ts.0));
        header.push("exp".to_owned(), Value::int(self.exp.0));
        if let Some(id) = &self.reply_to {
            header.push("replyTo".to_owned(), Value::text(id.to_string()));
        }
        header.into()
    }
}

/// A finished envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct Sealed {
    /// The envelope.
    pub value: Value,
    /// Its canonical text: what is stored and sent.
    pub text: String,
}

/// Seals `payload` to the key `recipient` and signs the envelope. `ephemeral` and `nonce` are fresh random bytes
/// of this one envelope. `class` follows from the ends and from the payload.
///
/// # Errors
/// [`EnvelopeError`], in the order of the specification: what is malformed first, then what is too large.
pub fn seal_envelope(
    signer: &SigningKey,
    parts: &HeaderParts,
    payload: &Value,
    recipient: &EncKey,
    ephemeral: &EncSecret,
    nonce: [u8; 12],
) -> Result<Sealed, EnvelopeError> {
    seal_header(signer, parts.to_value(), payload, recipient, ephemeral, nonce)
}

/// As [`seal_envelope`], over a raw header that may hold members this version does not know. Members that follow
/// from the others are set here, whatever they were.
///
/// # Errors
/// As [`seal_envelope`].
pub fn seal_header(
    signer: &SigningKey,
    header: Value,
    payload: &Value,
    recipient: &EncKey,
    ephemeral: &EncSecret,
    nonce: [u8; 12],
) -> Result<Sealed, EnvelopeError> {
    let epk = ephemeral.public();
    let mut header = members(header)?;
    let class = class_of(&header, payload);
    header.set("enc", Value::text("seal"));
    header.set("class", Value::text(class.as_str()));
    header.set("epk", Value::text(epk.to_string()));
    header.set("nonce", Value::text(b64u::encode(&nonce)));
    let (header, known) = check_header(signer, header)?;
    let shared = ephemeral.agree(recipient).ok_or(EnvelopeError::RecipientKey)?;
    let text = check_payload(&known, payload)?;
    if text.len() > PLAINTEXT_BYTES {
        return Err(EnvelopeError::PlaintextSize);
    }
    let aad = canonicalize(&header)?;
    let mut body = text.into_bytes();
    SealKey::derive(&shared, &epk, recipient)
        .and_then(|key| key.seal(nonce, aad.as_bytes(), &mut body))
        .ok_or(EnvelopeError::RecipientKey)?;
    let body = b64u::encode(&body);
    let literal = format!("\"{body}\"");
    sign(signer, header, &aad, Value::String(body), &literal)
}

/// Signs a presence: its `payload` is the body, in the clear.
///
/// # Errors
/// As [`seal_envelope`], with `presenceBytes` as the limit.
pub fn seal_presence(
    signer: &SigningKey,
    parts: &HeaderParts,
    payload: Value,
) -> Result<Sealed, EnvelopeError> {
    sign_presence_header(signer, parts.to_value(), payload)
}

/// As [`seal_presence`], over a raw header that may hold members this version does not know.
///
/// # Errors
/// As [`seal_presence`].
pub fn sign_presence_header(
    signer: &SigningKey,
    header: Value,
    payload: Value,
) -> Result<Sealed, EnvelopeError> {
    let mut header = members(header)?;
    header.set("enc", Value::text("none"));
    let (header, known) = check_header(signer, header)?;
    let literal = check_payload(&known, &payload)?;
    if literal.len() > PRESENCE_BYTES {
        return Err(EnvelopeError::PresenceSize);
    }
    let text = canonicalize(&header)?;
    sign(signer, header, &text, payload, &literal)
}

/// The header's members, with the version this crate writes and without what is not the header's.
fn members(header: Value) -> Result<Object, EnvelopeError> {
    let Value::Object(mut header) = header else { return Err(Invalid::new().into()) };
    header.set("v", Value::text(VERSION));
    header.remove("body");
    header.remove("sig");
    Ok(header)
}

/// §5 Class. Read from the raw members, since the schema is judged with the class in place.
fn class_of(header: &Object, payload: &Value) -> Class {
    let person = |end: &str| header.get(end).and_then(|end| end.get("person"));
    let asks =
        payload.get("conv").and_then(|conv| conv.get("kind")).and_then(Value::as_str) == Some("request");
    if person("from") == person("to") {
        Class::Own
    } else if asks {
        Class::Request
    } else {
        Class::Contact
    }
}

fn check_header(signer: &SigningKey, header: Object) -> Result<(Value, Header), EnvelopeError> {
    let header = Value::Object(header);
    let known = Header::from_value(&header)?;
    if known.from.device != signer.machine() {
        return Err(EnvelopeError::Signer);
    }
    if known.exp < known.ts || known.exp.0 - known.ts.0 > TTL_MS {
        return Err(EnvelopeError::Lifetime);
    }
    Ok((header, known))
}

/// The payload's canonical text, when its schema and its meaning hold.
fn check_payload(header: &Header, payload: &Value) -> Result<String, EnvelopeError> {
    let inside = |invalid: Invalid| EnvelopeError::Shape(invalid.within("body"));
    let text = canonicalize(payload).map_err(inside)?;
    let typed = Typed::read(header.kind, payload).map_err(inside)?;
    meaning::check(header, payload, &typed).map_err(inside)?;
    Ok(text)
}

/// Puts `body` and `sig` in. `text` is the header's canonical text, `literal` the body's.
fn sign(
    signer: &SigningKey,
    header: Value,
    text: &str,
    body: Value,
    literal: &str,
) -> Result<Sealed, EnvelopeError> {
    let unsigned = insert(text, "body", literal);
    let mut signed = String::with_capacity(unsigned.len() + 32);
    signed.push_str(Domain::Envelope.prefix());
    signed.push_str(&unsigned);
    let sig = signer.sign(signed.as_bytes()).to_string();
    let text = insert(&unsigned, "sig", &format!("\"{sig}\""));
    // §8 headerBytes: everything but the body member, its comma included.
    if text.len() - (literal.len() + "\"body\":,".len()) > HEADER_BYTES {
        return Err(EnvelopeError::HeaderSize);
    }
    let Value::Object(mut members) = header else { return Err(Invalid::new().into()) };
    members.push("body".to_owned(), body);
    members.push("sig".to_owned(), Value::String(sig));
    Ok(Sealed { value: members.into(), text })
}
