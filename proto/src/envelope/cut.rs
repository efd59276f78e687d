//! Cutting members out of canonical text, and putting them in.
//!
//! The signed text of an envelope is its canonical text without `sig`, its AAD the same without `body` too.
//! Canonical text has one form, so both are slices of the whole: one canonicalisation serves every use.

use std::ops::Range;

/// Where one member stands in the text of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// The whole member, with the comma that goes away with it.
    pub(super) cut: Range<usize>,
    /// Its value.
    pub(super) value: Range<usize>,
}

/// Where `body` and `sig` stand in the canonical text of an envelope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cuts {
    pub(super) body: Option<Member>,
    pub(super) sig: Option<Member>,
}

impl Cuts {
    /// Finds both in `text`, the canonical text of an object. `plain_body` is the length of the `body` string
    /// when it is known to need no escapes: then it is stepped over, not scanned.
    pub(super) fn find(text: &str, plain_body: Option<usize>) -> Self {
        let mut cuts = Self::default();
        let bytes = text.as_bytes();
        let mut at = 1;
        while bytes.get(at) == Some(&b'"') {
            let start = at;
            let name_end = after_string(bytes, at);
            let value_start = name_end + 1;
            let name = bytes.get(start + 1..name_end.saturating_sub(1)).unwrap_or_default();
            let value_end = match (name, plain_body) {
                (b"body", Some(length)) => value_start + length + 2,
                _ => after_value(bytes, value_start),
            };
            let more = bytes.get(value_end) == Some(&b',');
            let member = || Member {
                // The comma after goes; for the last member the comma before it.
                cut: if more { start..value_end + 1 } else { start - usize::from(start > 1)..value_end },
                value: value_start..value_end,
            };
            match name {
                b"body" => cuts.body = Some(member()),
                b"sig" => cuts.sig = Some(member()),
                _ => {}
            }
            at = value_end + 1;
        }
        cuts
    }
}

/// `text` without the given stretches, which are in order and apart.
pub(super) fn without(text: &str, cuts: &[&Range<usize>]) -> String {
    let mut rest = String::with_capacity(text.len());
    let mut from = 0;
    for cut in cuts {
        rest.push_str(text.get(from..cut.start).unwrap_or_default());
        from = cut.end;
    }
    rest.push_str(text.get(from..).unwrap_or_default());
    rest
}

/// Puts the member `name` with the literal `value` into the canonical text of an object that lacks it. `name`
/// is ASCII and needs no escapes.
pub(super) fn insert(text: &str, name: &str, value: &str) -> String {
    let bytes = text.as_bytes();
    let mut at = 1;
    let mut place = None;
    while bytes.get(at) == Some(&b'"') {
        let name_end = after_string(bytes, at);
        let other = bytes.get(at + 1..name_end.saturating_sub(1)).unwrap_or_default();
        if sorts_after(other, name.as_bytes()) {
            place = Some(at);
            break;
        }
        at = after_value(bytes, name_end + 1) + 1;
    }
    let empty = text.len() == 2;
    let at = place.unwrap_or_else(|| text.len().saturating_sub(1));
    let mut out = String::with_capacity(text.len() + name.len() + value.len() + 4);
    out.push_str(text.get(..at).unwrap_or_default());
    if place.is_none() && !empty {
        out.push(',');
    }
    out.push('"');
    out.push_str(name);
    out.push_str("\":");
    out.push_str(value);
    if place.is_some() {
        out.push(',');
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Whether an escaped name sorts after a plain ASCII one by UTF-16 units.
///
/// Against ASCII only the first unequal place matters, and there UTF-8 order is UTF-16 order. An escape begins
/// with a backslash, but stands for a control character (before every name here), a quote or a backslash.
fn sorts_after(escaped: &[u8], plain: &[u8]) -> bool {
    let same = escaped.iter().zip(plain).take_while(|(a, b)| a == b).count();
    match (escaped.get(same), plain.get(same)) {
        (Some(b'\\'), Some(other)) => match escaped.get(same + 1) {
            Some(b'\\') => b'\\' > *other,
            Some(b'"') => b'"' > *other,
            _ => false,
        },
        (Some(a), Some(b)) => a > b,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// The place after the string that starts at `at`.
fn after_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The place after the value that starts at `at`.
fn after_value(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = after_string(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
#[path = "cut_tests.rs"]
mod tests;
