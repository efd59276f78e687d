//! SHA-256 of bytes and of values (`messaging/1 §2`).

use crate::domain::{Domain, signed_bytes};
use crate::json::{Invalid, Value, canonicalize};
use crate::text_form::bytes_type;
use ring::digest::{Context, SHA256};

bytes_type! {
    /// A SHA-256 hash, written as 43 characters of base64url.
    Hash, 32, "a hash"
}

/// A realm's id: for a team, the hash of its genesis.
pub type RealmId = Hash;

/// The hash of these bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Hash {
    sha256_of([bytes])
}

/// The hash of these pieces, one after the other.
#[must_use]
pub fn sha256_of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Hash {
    let mut context = Context::new(&SHA256);
    for piece in pieces {
        context.update(piece);
    }
    let digest = context.finish();
    let mut hash = [0; 32];
    // A SHA-256 digest has 32 bytes.
    hash.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
    Hash(hash)
}

/// The hash of a value's canonical text.
///
/// # Errors
/// [`Invalid`] when the value is not I-JSON.
pub fn hash_value(value: &Value) -> Result<Hash, Invalid> {
    canonicalize(value).map(|text| sha256(text.as_bytes()))
}

/// The hash of a value's canonical text behind a purpose's prefix.
///
/// # Errors
/// [`Invalid`] when the value is not I-JSON.
pub fn hash_with(domain: Domain, value: &Value) -> Result<Hash, Invalid> {
    signed_bytes(domain, value).map(|bytes| sha256(&bytes))
}
