//! The contract between a machine and whatever drives it.
//!
//! # What a driver owes
//!
//! 1. One event at a time, each with a [`Step`] whose `mono` never goes back.
//! 2. A [`Txn`] that sees every write of the open batch, and of the batch being committed.
//! 3. Effects are released in order, and only after everything written up to them is durable. A step that wrote
//!    nothing while nothing is open or being committed is released at once.
//! 4. On [`StoreDown`], or when a commit fails: drop the batch, its effects and the machine, reopen the store
//!    and build a new machine over it. Whether the failed batch took effect is unknown, and nobody was told.
//!
//! # What a machine owes
//!
//! 1. Same events, steps and store: same effects and writes, byte for byte.
//! 2. Its memory may be lost at any moment.
//! 3. A spurious timer is harmless; after a timer event the deadline is later, or something else happened.
//! 4. Nothing but `?` is done with [`StoreDown`].

use crate::store::{StoreDown, Txn};
use messaging_proto::time::{Mono, Wall};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::cell::RefCell;
use std::fmt::Debug;

/// A deterministic machine.
pub trait Machine {
    /// What the world did, its failures included.
    type Event: Serialize + DeserializeOwned + Debug;
    /// What the world shall do.
    type Effect: Serialize + PartialEq + Debug;
    /// Why the next deadline is set.
    type Timer: Copy + PartialEq + Debug;

    /// Handles one event.
    ///
    /// # Errors
    /// [`StoreDown`] when the store did not answer; the machine is then dropped.
    fn handle(
        &mut self,
        step: &Step,
        event: Self::Event,
        store: &mut Txn<'_>,
        out: &mut Out<Self::Effect>,
    ) -> Result<(), StoreDown>;

    /// When the machine next wants a timer event, and why.
    fn deadline(&self) -> Option<(Mono, Self::Timer)>;

    /// The event that tells the machine its deadline passed.
    fn timer_event() -> Self::Event;
}

/// The effects of a step, in order.
#[derive(Debug)]
pub struct Out<E>(Vec<E>);

impl<E> Out<E> {
    /// No effects yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds an effect after the others.
    pub fn push(&mut self, effect: E) {
        self.0.push(effect);
    }

    /// Takes the effects.
    #[must_use]
    pub fn take(&mut self) -> Vec<E> {
        std::mem::take(&mut self.0)
    }
}

impl<E> Default for Out<E> {
    fn default() -> Self {
        Self::new()
    }
}

/// Which value is drawn from a step's entropy. A new draw shifts no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum Label {
    /// An envelope's id.
    EnvelopeId = 1,
    /// An envelope's ephemeral X25519 key.
    Ephemeral = 2,
    /// An envelope's AES-GCM nonce.
    Nonce = 3,
    /// A connection's challenge.
    Challenge = 4,
    /// A message's id.
    MessageId = 5,
    /// A task's id.
    TaskId = 6,
    /// A signing key.
    SigningKey = 7,
    /// An encryption key.
    EncryptionKey = 8,
    /// An invite's seed.
    InviteSeed = 9,
    /// An invite's id.
    InviteId = 10,
    /// Jitter of a backoff.
    Jitter = 11,
    /// A request's id on the relay link.
    Request = 12,
    /// A consent grant's id.
    GrantId = 13,
    /// A channel's id.
    ChannelId = 14,
    /// An artifact's id.
    ArtifactId = 15,
}

/// The clocks and the randomness of one event.
#[derive(Debug, Serialize, Deserialize)]
pub struct Step {
    /// Milliseconds of a monotonic clock that counts system sleep.
    pub mono: Mono,
    /// Milliseconds since 1970.
    pub wall: Wall,
    entropy: [u8; 32],
    #[serde(skip)]
    drawn: RefCell<Vec<(Label, u32)>>,
}

impl Step {
    /// A step at this time with this entropy.
    #[must_use]
    pub const fn new(mono: Mono, wall: Wall, entropy: [u8; 32]) -> Self {
        Self { mono, wall, entropy, drawn: RefCell::new(Vec::new()) }
    }

    /// The step's entropy, for a capture: whoever has it knows every key and nonce drawn from it.
    #[must_use]
    pub const fn entropy(&self) -> &[u8; 32] {
        &self.entropy
    }

    /// Draws `N` bytes for `label`. Each draw of one label within a step is fresh.
    pub fn draw<const N: usize>(&self, label: Label) -> [u8; N] {
        let mut drawn = self.drawn.borrow_mut();
        let count = match drawn.iter_mut().find(|(known, _)| *known == label) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                drawn.push((label, 0));
                0
            }
        };
        let mut bytes = [0; N];
        for (block, chunk) in bytes.chunks_mut(32).enumerate() {
            let mut context =
                ring::hmac::Context::with_key(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &self.entropy));
            context.update(b"messaging/step");
            context.update(&[label as u8]);
            context.update(&count.to_be_bytes());
            context.update(&(block as u64).to_be_bytes());
            chunk.copy_from_slice(&context.sign().as_ref()[..chunk.len()]);
        }
        bytes
    }

    /// Draws a number below `bound` for `label` (0 when `bound` is 0). Biased by less than 2^-32: for jitter.
    pub fn draw_below(&self, label: Label, bound: u64) -> u64 {
        if bound == 0 { 0 } else { u64::from_be_bytes(self.draw(label)) % bound }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_differ_by_label_and_count_and_repeat_by_seed() {
        let step = || Step::new(Mono(1), Wall(2), [7; 32]);
        let one = step();
        let first: [u8; 40] = one.draw(Label::Nonce);
        let second: [u8; 40] = one.draw(Label::Nonce);
        let other: [u8; 40] = one.draw(Label::Challenge);
        assert_ne!(first, second);
        assert_ne!(first, other);
        let again = step();
        let _: [u8; 4] = again.draw(Label::Challenge);
        assert_eq!(first, again.draw::<40>(Label::Nonce), "a draw shifts no other label");
    }
}
