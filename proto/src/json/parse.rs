//! Wire text to a value (`messaging/1 §2`, "Wire JSON").

use super::scan::{Scanned, Token, scan, unescape};
use super::{Invalid, Value};

/// Parses wire JSON of at most `max_bytes` bytes.
///
/// Exactly the texts of RFC 8259 that are well-formed UTF-8 without a byte order mark, repeat no member name
/// (compared after unescaping), escape no lone surrogate and nest at most 32 deep. Numbers become the nearest
/// double, infinite ones included: whether a value may be signed or hashed is [`super::canonicalize`]'s to say.
/// Costs linear time and memory, sorting of member names apart, and does not recurse over hostile text.
///
/// # Errors
/// [`Invalid`] of the whole value. It tells nothing of the text.
pub fn parse_wire(bytes: &[u8], max_bytes: usize) -> Result<Value, Invalid> {
    parse_wire_noting(bytes, max_bytes).map(|(value, _)| value)
}

/// As [`parse_wire`], and whether the text is byte for byte what [`super::canonicalize`] makes of the value.
///
/// True exactly then, so a true one saves canonicalizing the same value again.
///
/// # Errors
/// As [`parse_wire`].
pub fn parse_wire_noting(bytes: &[u8], max_bytes: usize) -> Result<(Value, bool), Invalid> {
    // W1, W2. The standard check refuses overlong forms, encoded surrogates and what is past U+10FFFF; W3 needs
    // nothing: a byte order mark starts no value.
    if bytes.len() > max_bytes {
        return Err(Invalid::new());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Invalid::new())?;
    let Scanned { tokens, canonical } = scan(text).ok_or_else(Invalid::new)?;
    Ok((build(&mut tokens.into_iter()), canonical))
}

/// Builds the next value. The scan has bounded the depth, so recursion is safe.
fn build<'t>(tokens: &mut impl Iterator<Item = Token<'t>>) -> Value {
    match tokens.next() {
        Some(Token::Bool(flag)) => Value::Bool(flag),
        Some(Token::Number(number)) => Value::Number(number),
        Some(Token::Plain(raw)) => Value::String(raw.to_owned()),
        Some(Token::Escaped(raw)) => Value::String(unescape(raw)),
        Some(Token::Array(len)) => Value::Array((0..len).map(|_| build(tokens)).collect()),
        Some(Token::Object(len)) => Value::Object((0..len).map(|_| (name(tokens), build(tokens))).collect()),
        Some(Token::Null) | None => Value::Null,
    }
}

fn name<'t>(tokens: &mut impl Iterator<Item = Token<'t>>) -> String {
    match tokens.next() {
        Some(Token::Plain(raw)) => raw.to_owned(),
        Some(Token::Escaped(raw)) => unescape(raw),
        _ => String::new(),
    }
}
