//! Bytes of keys and values.

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

    /// The version byte, which must be this one.
    pub(super) fn version(&mut self, version: u8) -> Option<()> {
        (self.array()? == [version]).then_some(())
    }

    /// Everything left.
    pub(super) const fn rest(self) -> &'a [u8] {
        self.0
    }

    /// `value`, when nothing is left.
    pub(super) fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}
