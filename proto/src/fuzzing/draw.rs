//! Structured choices out of fuzzer bytes.

use crate::json::{Object, Value};

/// Draws choices from bytes; past their end every draw is zero, so a run always ends.
#[derive(Debug)]
pub struct Draw<'a>(&'a [u8]);

impl<'a> Draw<'a> {
    /// Draws from these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether anything is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is left.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    /// One of these.
    pub fn one_of<'o, T>(&mut self, options: &'o [T]) -> Option<&'o T> {
        options.get(self.below(options.len()))
    }

    /// `N` bytes.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let (head, tail) = self.0.split_at(N.min(self.0.len()));
        self.0 = tail;
        let mut bytes = [0; N];
        bytes.iter_mut().zip(head).for_each(|(to, from)| *to = *from);
        bytes
    }

    /// A short text.
    pub fn text(&mut self) -> String {
        let len = self.below(24);
        (0..len).map_while(|_| (!self.is_empty()).then(|| self.letter())).collect()
    }

    fn letter(&mut self) -> char {
        let byte = self.byte();
        match byte {
            0..=0xef => char::from(byte),
            // The whole of Unicode, its corners first.
            0xf0..=0xf3 => ['\u{ffff}', '\u{fb33}', '\u{1f602}', '\u{10ffff}'][usize::from(byte & 3)],
            _ => char::from_u32(u32::from_le_bytes(self.array()) & 0x1f_ffff).unwrap_or('\u{fffd}'),
        }
    }

    /// Any value that a program could build: perhaps too deep, with numbers outside JSON or repeated names.
    pub fn value(&mut self, depth: usize) -> Value {
        let kind = if depth == 0 || self.is_empty() { self.below(5) } else { self.below(8) };
        match kind {
            0 => Value::Null,
            1 => Value::Bool(self.byte() & 1 == 1),
            2 => Value::Number(f64::from_le_bytes(self.array())),
            3 => Value::Number(f64::from(i16::from_le_bytes(self.array())) / 16.0),
            4 => Value::String(self.text()),
            5 => Value::Array((0..self.below(6)).map(|_| self.value(depth - 1)).collect()),
            6 => Value::Object(
                (0..self.below(12)).map(|_| (self.text(), self.value(depth - 1))).collect::<Object>(),
            ),
            _ => Value::Array(vec![self.value(depth - 1)]),
        }
    }
}
