//! ULIDs (`messaging/1 §2`): upper case only, so one id has one spelling.

use crate::text_form::text_form;
use crate::time::Wall;
use std::fmt;

const LEN: usize = 26;
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// The largest time the first ten characters can hold.
const MILLIS_MAX: u64 = (1 << 48) - 1;

/// 48 bits of milliseconds and 80 random bits. Orders as its text does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ulid([u8; LEN]);

impl Ulid {
    /// Reads the one spelling of an id.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; LEN] = text.as_bytes().try_into().ok()?;
        // The first character carries three bits: more would be a time past 48 bits.
        let fits = matches!(bytes.first(), Some(b'0'..=b'7'));
        (fits && bytes.iter().all(|byte| ALPHABET.contains(byte))).then_some(Self(bytes))
    }

    /// The id of this time and these random bytes, which must be fresh for every id. A time past 48 bits is cut
    /// to the largest.
    #[must_use]
    pub fn new(now: Wall, random: [u8; 10]) -> Self {
        let millis = u128::from(now.0.min(MILLIS_MAX));
        let bits = random.iter().fold(millis, |bits, byte| bits << 8 | u128::from(*byte));
        let mut text = [b'0'; LEN];
        for (at, letter) in text.iter_mut().rev().enumerate() {
            let digit = (bits >> (5 * at)) as usize % ALPHABET.len();
            *letter = ALPHABET.get(digit).copied().unwrap_or(b'0');
        }
        Self(text)
    }

    /// The time it was made, in milliseconds since 1970.
    #[must_use]
    pub fn millis(&self) -> u64 {
        self.0.iter().take(10).fold(0, |millis, letter| {
            let digit = ALPHABET.iter().position(|other| other == letter).unwrap_or(0);
            millis << 5 | digit as u64
        })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Always ASCII, by construction.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Ulid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Ulid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ulid({self})")
    }
}

text_form!(Ulid, "a ULID");
