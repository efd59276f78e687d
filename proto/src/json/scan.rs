//! The strict scan: wire text to tokens, or nothing (`messaging/1 §2`, rules W4 to W10).
//!
//! One pass with its own stack, so a hostile text can neither exhaust the call stack nor make any value before
//! all of it is known to be good.

use super::order::{cmp_utf16, sort_key};
use super::swar;
use crate::limits::JSON_DEPTH;
use std::borrow::Cow;
use std::cmp::Ordering;

/// The largest magnitude an I-JSON integer may have.
pub(super) const SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Objects with fewer members are checked for a repeated name pair by pair, which needs no memory.
const FEW_NAMES: usize = 8;

/// One value or member name, in the order of the text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token<'t> {
    Null,
    Bool(bool),
    Number(f64),
    /// What stands between the quotes, free of escapes: the text itself.
    Plain(&'t str),
    /// What stands between the quotes, with escapes that are known to be good.
    Escaped(&'t str),
    /// An array and how many elements follow.
    Array(usize),
    /// An object and how many pairs of a name and a value follow.
    Object(usize),
}

/// What the scan found.
#[derive(Debug)]
pub(super) struct Scanned<'t> {
    pub(super) tokens: Vec<Token<'t>>,
    /// Whether the text is byte for byte the canonical text of its value, and that value is I-JSON.
    pub(super) canonical: bool,
}

/// Scans a text; nothing when it is not wire JSON.
pub(super) fn scan(text: &str) -> Option<Scanned<'_>> {
    let scanner = Scanner {
        text,
        bytes: text.as_bytes(),
        at: 0,
        // Room for what an envelope has, so that most texts need no growing.
        tokens: Vec::with_capacity(text.len().min(96)),
        open: Vec::with_capacity(text.len().min(8)),
        names: Vec::with_capacity(text.len().min(24)),
        canonical: true,
    };
    scanner.run()
}

/// A container whose end has not been seen.
struct Open {
    object: bool,
    /// Where its token is.
    token: usize,
    /// How many elements or members it has so far.
    len: usize,
    /// Where its names start in [`Scanner::names`].
    names: usize,
    /// Whether each name so far sorts after the one before, as in canonical text: then none is repeated.
    ascending: bool,
}

struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    tokens: Vec<Token<'t>>,
    open: Vec<Open>,
    names: Vec<Cow<'t, str>>,
    canonical: bool,
}

impl<'t> Scanner<'t> {
    fn run(mut self) -> Option<Scanned<'t>> {
        loop {
            self.space();
            match self.peek()? {
                b'"' => {
                    let token = self.string()?;
                    self.tokens.push(token);
                }
                b'{' => {
                    self.enter(true)?;
                    self.space();
                    if self.peek()? != b'}' {
                        self.name()?;
                        continue;
                    }
                }
                b'[' => {
                    self.enter(false)?;
                    self.space();
                    if self.peek()? != b']' {
                        continue;
                    }
                }
                b'-' | b'0'..=b'9' => self.number()?,
                b't' => self.literal("true", Token::Bool(true))?,
                b'f' => self.literal("false", Token::Bool(false))?,
                b'n' => self.literal("null", Token::Null)?,
                _ => return None,
            }
            if self.after_value()? {
                return Some(Scanned { tokens: self.tokens, canonical: self.canonical });
            }
        }
    }

    /// Reads on to where the next value stands; true at the end of the text.
    fn after_value(&mut self) -> Option<bool> {
        loop {
            self.space();
            let Some(open) = self.open.last_mut() else {
                // W4: nothing after the one value.
                return if self.at == self.bytes.len() { Some(true) } else { None };
            };
            let object = open.object;
            match self.bytes.get(self.at)? {
                b',' => {
                    open.len += 1;
                    self.at += 1;
                    if object {
                        self.space();
                        self.name()?;
                    }
                    return Some(false);
                }
                b'}' if object => self.leave()?,
                b']' if !object => self.leave()?,
                _ => return None,
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
            self.canonical = false;
        }
    }

    fn literal(&mut self, word: &str, token: Token<'t>) -> Option<()> {
        let end = self.at + word.len();
        if self.bytes.get(self.at..end)? != word.as_bytes() {
            return None;
        }
        self.at = end;
        self.tokens.push(token);
        Some(())
    }

    fn enter(&mut self, object: bool) -> Option<()> {
        // W10: an empty container counts like any other.
        if self.open.len() == JSON_DEPTH {
            return None;
        }
        self.at += 1;
        let (token, names) = (self.tokens.len(), self.names.len());
        self.open.push(Open { object, token, len: 0, names, ascending: true });
        self.tokens.push(Token::Null);
        Some(())
    }

    /// At the closing bracket of the innermost container.
    fn leave(&mut self) -> Option<()> {
        let open = self.open.pop()?;
        self.at += 1;
        // Commas were counted; a container with anything in it has one element more.
        let len = open.len + usize::from(self.tokens.len() > open.token + 1);
        let token = if open.object { Token::Object(len) } else { Token::Array(len) };
        *self.tokens.get_mut(open.token)? = token;
        if open.object {
            let names = self.names.get(open.names..)?;
            if !open.ascending {
                self.canonical = false;
                if repeats(names) {
                    return None;
                }
            }
            self.names.truncate(open.names);
        }
        Some(())
    }

    /// A member name and its colon.
    fn name(&mut self) -> Option<()> {
        let token = self.string()?;
        let name = match token {
            Token::Plain(raw) => Cow::Borrowed(raw),
            Token::Escaped(raw) => Cow::Owned(unescape(raw)),
            _ => return None,
        };
        self.tokens.push(token);
        let open = self.open.last_mut()?;
        if open.ascending
            && self.names.len() > open.names
            && let Some(before) = self.names.last()
        {
            match cmp_utf16(before, &name) {
                Ordering::Less => {}
                // W9, found early.
                Ordering::Equal => return None,
                Ordering::Greater => open.ascending = false,
            }
        }
        self.names.push(name);
        self.space();
        self.eat(b':').then_some(())
    }

    /// A string from its opening quote on (W7, W8).
    fn string(&mut self) -> Option<Token<'t>> {
        if !self.eat(b'"') {
            return None;
        }
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += swar::plain_len(self.bytes.get(self.at..)?);
            match self.peek()? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.at += 1;
                    self.escape()?;
                }
                _ => return None,
            }
        }
        let raw = self.text.get(start..self.at)?;
        self.at += 1;
        Some(if escaped { Token::Escaped(raw) } else { Token::Plain(raw) })
    }

    /// One escape, after its backslash.
    fn escape(&mut self) -> Option<()> {
        let letter = self.peek()?;
        self.at += 1;
        match letter {
            b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => {}
            b'/' => self.canonical = false,
            b'u' => {
                let digits = self.bytes.get(self.at..self.at + 4)?;
                let unit = hex4(digits)?;
                // The only \u escapes of canonical text: control characters without a letter, in lower case.
                let short = matches!(unit, 0x08 | 0x09 | 0x0a | 0x0c | 0x0d);
                if unit >= 0x20 || short || digits.iter().any(u8::is_ascii_uppercase) {
                    self.canonical = false;
                }
                self.at += 4;
                match unit {
                    // W8: a high surrogate is followed by its low half at once.
                    0xd800..=0xdbff => {
                        if !(self.eat(b'\\') && self.eat(b'u')) {
                            return None;
                        }
                        if !matches!(hex4(self.bytes.get(self.at..self.at + 4)?)?, 0xdc00..=0xdfff) {
                            return None;
                        }
                        self.at += 4;
                    }
                    0xdc00..=0xdfff => return None,
                    _ => {}
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// A number (W6); its value is the nearest double.
    fn number(&mut self) -> Option<()> {
        let start = self.at;
        let negative = self.eat(b'-');
        let first = self.at;
        let mut integer: u64 = 0;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            integer = integer.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        let digits = self.at - first;
        if digits == 0 || (digits > 1 && self.bytes.get(first) == Some(&b'0')) {
            return None;
        }
        let mut whole = true;
        if self.eat(b'.') {
            whole = false;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let value = if whole && digits <= 15 {
            // Fewer digits than a double holds: the integer is exact, and so is its canonical text.
            if negative && integer == 0 {
                self.canonical = false;
            }
            #[allow(clippy::cast_precision_loss)]
            let magnitude = integer as f64;
            if negative { -magnitude } else { magnitude }
        } else {
            let text = self.text.get(start..self.at)?;
            let value: f64 = text.parse().ok()?;
            self.canonical = self.canonical && is_canonical_number(text, value);
            value
        };
        self.tokens.push(Token::Number(value));
        Some(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

/// Whether `text` is how canonical text writes `value`, which must be I-JSON.
fn is_canonical_number(text: &str, value: f64) -> bool {
    // Longer than any canonical number: not worth formatting.
    text.len() <= 32 && value.abs() <= SAFE_INTEGER && ryu_js::Buffer::new().format_finite(value) == text
}

/// Whether two names are equal (W9).
fn repeats(names: &[Cow<'_, str>]) -> bool {
    if names.len() < FEW_NAMES {
        return names
            .iter()
            .enumerate()
            .any(|(at, name)| names.iter().skip(at + 1).any(|other| name == other));
    }
    let mut names: Vec<(u64, &str)> = names.iter().map(|name| (sort_key(name), &**name)).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| matches!(pair, [one, two] if one == two))
}

fn hex4(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |unit, &byte| Some(unit << 4 | char::from(byte).to_digit(16)?))
}

/// The text an escaped string stands for. `raw` has passed the scan; anything else loses characters.
pub(super) fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.push_str(plain);
        let mut after = escape.chars();
        let letter = after.next();
        rest = after.as_str();
        match letter {
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('u') => {
                let (unit, tail) = unit_of(rest);
                rest = tail;
                let scalar = match rest.strip_prefix("\\u") {
                    Some(low) if matches!(unit, 0xd800..=0xdbff) => {
                        let (low, tail) = unit_of(low);
                        rest = tail;
                        0x1_0000 + ((unit & 0x3ff) << 10 | low & 0x3ff)
                    }
                    _ => unit,
                };
                text.extend(char::from_u32(scalar));
            }
            // `"`, `\` and `/` stand for themselves.
            other => text.extend(other),
        }
    }
    text.push_str(rest);
    text
}

/// The unit of the four hex digits at the start, and what follows them.
fn unit_of(digits: &str) -> (u32, &str) {
    let (digits, rest) = digits.split_at_checked(4).unwrap_or((digits, ""));
    (hex4(digits.as_bytes()).unwrap_or(0xfffd), rest)
}
