//! base64url without padding (`messaging/1 §2`): one spelling for each byte string.

use base64::Engine;
use base64::display::Base64Display;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::cmp::Ordering;
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

/// How the texts of two byte strings of one length are ordered, character by character. The alphabet is not in the order of
/// its values, so this is not the order of the bytes.
#[must_use]
pub fn cmp_texts<const N: usize>(one: &[u8; N], other: &[u8; N]) -> Ordering {
    if one == other {
        return Ordering::Equal;
    }
    let first = one.iter().zip(other).position(|(one, other)| one != other).unwrap_or(0);
    // Three bytes are four characters; those before are alike.
    let (one, other) = (group(one, first - first % 3), group(other, first - first % 3));
    let shift = [18, 12, 6].into_iter().find(|shift| (one ^ other) >> shift != 0).unwrap_or(0);
    rank(one >> shift).cmp(&rank(other >> shift))
}

/// The 24 bits of the three bytes from `at` on; what is missing is zero.
fn group<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    let byte = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0));
    byte(at) << 16 | byte(at + 1) << 8 | byte(at + 2)
}

/// Where the character of the lowest six bits stands in ASCII: `-`, digits, capitals, `_`, small letters.
const fn rank(bits: u32) -> u32 {
    match bits & 63 {
        62 => 0,
        digit @ 52..=61 => digit - 51,
        capital @ 0..=25 => capital + 11,
        63 => 37,
        small => small + 12,
    }
}

/// Writes the text of these bytes.
pub(crate) fn fmt(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    Base64Display::new(bytes, &URL_SAFE_NO_PAD).fmt(f)
}
