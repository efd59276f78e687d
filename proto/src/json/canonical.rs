//! A value to its canonical text (RFC 8785), for I-JSON values only (`messaging/1 §2`, "JCS").

use super::order::{cmp_utf16, sort_key};
use super::scan::SAFE_INTEGER;
use super::{Invalid, Object, Value, swar};
use crate::limits::JSON_DEPTH;
use std::cmp::Ordering;

/// The canonical text of an I-JSON value.
///
/// # Errors
/// [`Invalid`] when the value is not I-JSON: a number that is infinite, not a number, or an integer outside
/// ±(2^53 − 1); containers nested more than 32 deep; or, in a value built by hand, a repeated member name.
pub fn canonicalize(value: &Value) -> Result<String, Invalid> {
    let mut text = String::new();
    append_canonical(value, &mut text)?;
    Ok(text)
}

/// Appends the canonical text of an I-JSON value to `text`.
///
/// # Errors
/// As [`canonicalize`]; part of the text may have been appended.
pub fn append_canonical(value: &Value, text: &mut String) -> Result<(), Invalid> {
    write(value, text, JSON_DEPTH).ok_or_else(Invalid::new)
}

/// Whether [`canonicalize`] would succeed.
#[must_use]
pub fn is_ijson(value: &Value) -> bool {
    canonicalize(value).is_ok()
}

/// `depth` containers may still be opened, which also bounds the recursion (J4).
fn write(value: &Value, out: &mut String, depth: usize) -> Option<()> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(*number, out)?,
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            let depth = depth.checked_sub(1)?;
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out, depth)?;
            }
            out.push(']');
        }
        Value::Object(object) => {
            let depth = depth.checked_sub(1)?;
            out.push('{');
            write_members(object, out, depth)?;
            out.push('}');
        }
    }
    Some(())
}

/// The members sorted by the UTF-16 code units of their names.
fn write_members(object: &Object, out: &mut String, depth: usize) -> Option<()> {
    let mut before: Option<&str> = None;
    let ascending = object
        .iter()
        .all(|(name, _)| before.replace(name).is_none_or(|before| cmp_utf16(before, name) == Ordering::Less));
    if ascending {
        return write_sorted(object.iter(), out, depth);
    }
    let mut members: Vec<_> = object.members().iter().map(|member| (sort_key(&member.0), member)).collect();
    members.sort_unstable_by(|(key, (name, _)), (other_key, (other, _))| {
        key.cmp(other_key).then_with(|| cmp_utf16(name, other))
    });
    let repeated = members.windows(2).any(
        |pair| matches!(pair, [(key, (one, _)), (other_key, (two, _))] if key == other_key && one == two),
    );
    if repeated {
        return None;
    }
    write_sorted(members.into_iter().map(|(_, (name, value))| (name.as_str(), value)), out, depth)
}

fn write_sorted<'v>(
    members: impl Iterator<Item = (&'v str, &'v Value)>,
    out: &mut String,
    depth: usize,
) -> Option<()> {
    for (index, (name, value)) in members.enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(name, out);
        out.push(':');
        write(value, out, depth)?;
    }
    Some(())
}

/// As ECMAScript writes a number, which is what RFC 8785 asks for (J1, J2).
fn write_number(number: f64, out: &mut String) -> Option<()> {
    // Every double of magnitude 2^53 or more is an integer, so one comparison refuses all of J2; it is false for
    // NaN, too.
    if number.abs() <= SAFE_INTEGER {
        out.push_str(ryu_js::Buffer::new().format_finite(number));
        Some(())
    } else {
        None
    }
}

/// A string with only the escapes that JSON demands. A Rust string has no lone surrogate (J3).
fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    loop {
        // A special byte is ASCII, so the split is on a character boundary.
        let (plain, special) = rest.split_at_checked(swar::plain_len(rest.as_bytes())).unwrap_or((rest, ""));
        out.push_str(plain);
        let mut after = special.chars();
        match after.next() {
            None => break,
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\t') => out.push_str("\\t"),
            Some('\n') => out.push_str("\\n"),
            Some('\u{c}') => out.push_str("\\f"),
            Some('\r') => out.push_str("\\r"),
            Some(control) => {
                out.push_str("\\u00");
                out.extend([u32::from(control) >> 4, u32::from(control) & 0xf].map(hex_digit));
            }
        }
        rest = after.as_str();
    }
    out.push('"');
}

fn hex_digit(nibble: u32) -> char {
    char::from_digit(nibble, 16).unwrap_or('0')
}
