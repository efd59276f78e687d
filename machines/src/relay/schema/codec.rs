//! Bytes of keys and values.
//!
//! A value begins with a version byte and ends with the CRC-32 of everything before it, so that a bit that flipped on the
//! disk is noticed before it is acted on, or told to a client. Values of version 1, which this program does not write any
//! more, have no sum.

/// Of values without a sum.
const UNCHECKED: u8 = 1;
/// Of what is written.
const V: u8 = 2;
const SUM_BYTES: usize = 4;

/// A value of these parts; their lengths, the version and the sum add up to `N`.
pub(super) fn seal<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut row = [V; N];
    let parts = parts.iter().copied().flatten();
    let (body, sum) = row.split_at_mut(N.saturating_sub(SUM_BYTES));
    body.iter_mut().skip(1).zip(parts).for_each(|(to, from)| *to = *from);
    sum.copy_from_slice(&crc32fast::hash(body).to_be_bytes());
    row
}

/// As [`seal`], for a value that ends with a text.
pub(super) fn seal_text(parts: &[&[u8]], text: &str) -> Vec<u8> {
    let fixed: usize = parts.iter().map(|part| part.len()).sum();
    let mut row = Vec::with_capacity(1 + fixed + text.len() + SUM_BYTES);
    row.push(V);
    parts.iter().for_each(|part| row.extend_from_slice(part));
    row.extend_from_slice(text.as_bytes());
    let sum = crc32fast::hash(&row);
    row.extend_from_slice(&sum.to_be_bytes());
    row
}

/// The parts, one after the other; their lengths add up to `N`.
pub(super) fn join<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut joined = [0; N];
    joined.iter_mut().zip(parts.iter().copied().flatten()).for_each(|(to, from)| *to = *from);
    joined
}

/// Reads parts off the front of a row.
pub(super) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What stands in a value between its version and its sum, when both hold.
    pub(super) fn value(row: &'a [u8]) -> Option<Self> {
        match *row.first()? {
            UNCHECKED => Some(Self(&row[1..])),
            V => {
                let (body, sum) = row.split_last_chunk::<SUM_BYTES>()?;
                let whole = crc32fast::hash(body).to_be_bytes() == *sum;
                if whole { Some(Self(body.get(1..)?)) } else { None }
            }
            _ => None,
        }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Everything left: a canonical text, an object's.
    pub(super) fn text(self) -> Option<&'a str> {
        let text = std::str::from_utf8(self.0).ok()?;
        (text.starts_with('{') && text.ends_with('}')).then_some(text)
    }

    /// `value`, when nothing is left.
    pub(super) fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}
