//! Strings: escapes and surrogates (W7, W8).

use super::{Scanner, Token};
use crate::json::swar;

impl<'t> Scanner<'t> {
    /// A string from its opening quote on (W7, W8).
    pub(super) fn string(&mut self) -> Option<Token<'t>> {
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
}

fn hex4(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |unit, &byte| Some(unit << 4 | char::from(byte).to_digit(16)?))
}

/// The text an escaped string stands for. `raw` has passed the scan; anything else loses characters.
pub(in crate::json) fn unescape(raw: &str) -> String {
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
