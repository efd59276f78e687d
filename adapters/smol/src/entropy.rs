//! Randomness from the operating system.

use zeroize::{Zeroize, Zeroizing};

/// How many steps one call to the operating system serves.
const STEPS: usize = 32;

/// Draws 32 bytes a step. Every byte is handed out once and wiped here.
pub struct Entropy {
    pool: Zeroizing<[u8; 32 * STEPS]>,
    left: usize,
}

impl Entropy {
    /// A source that has drawn nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self { pool: Zeroizing::new([0; 32 * STEPS]), left: 0 }
    }

    /// The next 32 bytes.
    ///
    /// # Errors
    /// When the operating system has none: nothing secret can be made then, and the caller must not go on.
    pub fn draw(&mut self) -> Result<[u8; 32], NoEntropy> {
        if self.left == 0 {
            getrandom::fill(&mut self.pool[..]).map_err(|_| NoEntropy)?;
            self.left = STEPS;
        }
        self.left -= 1;
        let chunk = &mut self.pool[self.left * 32..][..32];
        let mut bytes = [0; 32];
        bytes.copy_from_slice(chunk);
        chunk.zeroize();
        Ok(bytes)
    }
}

impl Default for Entropy {
    fn default() -> Self {
        Self::new()
    }
}

/// The operating system gave no randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gave no randomness")]
pub struct NoEntropy;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_draw_repeats() {
        let mut entropy = Entropy::new();
        let draws: BTreeSet<_> = (0..STEPS * 3).map(|_| entropy.draw().unwrap()).collect();
        assert_eq!(draws.len(), STEPS * 3);
        assert!(!draws.contains(&[0; 32]));
    }
}
