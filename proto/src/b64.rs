//! Standard base64 with padding, for A2A `Part.raw` only (`messaging/1 §2`). As strict as [`crate::b64u`].

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The text of these bytes.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The bytes of this text; nothing without its exact padding, for another alphabet, white space or set unused
/// bits.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}
