//! The strict scan: wire text to tokens, or nothing (`messaging/1 §2`, rules W4 to W10).
//!
//! One pass with its own stack, so a hostile text can neither exhaust the call stack nor make any value before
//! all of it is known to be good.

use super::order::{cmp_utf16, sort_key};
use crate::limits::JSON_DEPTH;
use std::borrow::Cow;
use std::cmp::Ordering;

mod number;
mod string;

pub(super) use number::SAFE_INTEGER;
pub(super) use string::unescape;

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
