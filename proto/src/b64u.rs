//! base64url without padding (`messaging/1 §2`): one spelling for each byte string.

use base64::Engine;
use base64::display::Base64Display;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt::{self, Display as _};

/// The text of these bytes.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The bytes of this text; nothing for padding, another alphabet, white space, an impossible length or set
/// unused bits. The empty text is zero bytes.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// As [`decode`], for exactly `N` bytes.
#[must_use]
pub fn decode_array<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != encoded_len(N) {
        return None;
    }
    decode(text)?.try_into().ok()
}

/// How many characters `len` bytes take.
#[must_use]
pub const fn encoded_len(len: usize) -> usize {
    len / 3 * 4 + (len % 3 * 4).div_ceil(3)
}

/// Writes the text of these bytes.
pub(crate) fn fmt(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    Base64Display::new(bytes, &URL_SAFE_NO_PAD).fmt(f)
}
