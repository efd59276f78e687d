//! Encryption-key rotation (`messaging/1 §4`).
//!
//! begin → the new key is pending and saved → the `member.rekey` is appended → settle, or abandon when the relay
//! refused it. An append whose outcome is unknown stays pending; the key opens envelopes meanwhile.

use super::{Identity, IdentityError, Pending, Retained};
use crate::key::{EncKey, EncSecret};
use crate::limits;
use crate::time::Wall;

/// How long an earlier key is kept after the rekey that replaced it applied: a sender that has not seen the
/// rekey may seal to the old key, and its envelope may live that long.
pub const RETAIN_MS: u64 = limits::TTL_MS + 2 * limits::CLOCK_SKEW_MS;

impl Identity {
    /// Begins a rotation to a fresh private key and returns its public half.
    ///
    /// # Errors
    /// [`IdentityError::RotationPending`] while one is not settled, [`IdentityError::TooManyRetained`] while as
    /// many unexpired keys are retained as may be; nothing is changed then but expired keys erased.
    pub fn begin_rotation(&mut self, enc: [u8; 32], now: Wall) -> Result<EncKey, IdentityError> {
        self.expire(now);
        if self.pending.is_some() {
            return Err(IdentityError::RotationPending);
        }
        if self.retained.len() >= limits::RETAINED_KEYS {
            return Err(IdentityError::TooManyRetained);
        }
        let key = EncSecret::from_bytes(enc);
        let public = key.public();
        self.pending = Some(Pending { key, ts: now });
        Ok(public)
    }

    /// Settles the pending rotation: its `member.rekey` applied at `now`. The earlier key is retained.
    ///
    /// # Errors
    /// [`IdentityError::NoRotation`] when none is pending.
    pub fn retain(&mut self, now: Wall) -> Result<(), IdentityError> {
        let pending = self.pending.take().ok_or(IdentityError::NoRotation)?;
        let key = std::mem::replace(&mut self.enc, pending.key);
        self.expire(now);
        // Only a clock that went back since the rotation began can leave no room; the oldest key goes then.
        self.retained.truncate(limits::RETAINED_KEYS - 1);
        self.retained.insert(0, Retained { key, until: now.plus(RETAIN_MS) });
        Ok(())
    }

    /// Undoes the pending rotation: the relay refused its append. Its key is erased. Returns whether there was
    /// one.
    pub fn abandon_rotation(&mut self) -> bool {
        self.pending.take().is_some()
    }

    /// Erases the retained keys whose time is over. Returns whether there were any.
    pub fn expire(&mut self, now: Wall) -> bool {
        let before = self.retained.len();
        self.retained.retain(|retained| retained.until > now);
        self.retained.len() < before
    }
}
