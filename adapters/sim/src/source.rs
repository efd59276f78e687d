//! Where a plan's choices come from: a seed, or the bytes of a fuzzer.

use crate::chaos::Dice;

/// A stream of choices.
pub trait Source {
    /// A number from 0 up to and without `below` (0 when that is 0).
    fn below(&mut self, below: usize) -> usize;

    /// Whether something with a chance of `of` in a hundred happens.
    fn percent(&mut self, of: usize) -> bool {
        self.below(100) < of
    }

    /// One of these.
    fn one<T: Copy>(&mut self, of: &[T]) -> T
    where
        Self: Sized,
    {
        of[self.below(of.len())]
    }
}

impl Source for Dice {
    fn below(&mut self, below: usize) -> usize {
        self.roll(below)
    }
}

/// Choices from bytes, two for each. When they are used up every choice is the first.
#[derive(Clone, Debug)]
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// The choices of these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether no bytes are left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Source for Bytes<'_> {
    fn below(&mut self, below: usize) -> usize {
        let (first, rest) = self.0.split_at(self.0.len().min(2));
        self.0 = rest;
        first.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)) % below.max(1)
    }
}
