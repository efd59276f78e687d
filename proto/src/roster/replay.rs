//! Building a roster again from entries this machine accepted before.

use super::state::{State, Trust};
use super::{Entry, Roster, RosterError};
use crate::hash::{Hash, sha256};
use crate::json::{FromValue, Value, canonicalize, parse_wire};
use crate::limits;
use std::sync::Arc;

impl Roster {
    /// Builds the roster from its own stored entries, whose signatures, proofs and keys were checked when they
    /// were accepted. Everything else is checked again: schema, chain, team, authority and invites.
    ///
    /// A caller that kept the head compares it with [`Roster::head`]: the hash covers every entry.
    ///
    /// # Errors
    /// [`RosterError::Empty`] for no entries; else what the first broken entry fails with.
    pub fn replay_trusted(entries: &[Value]) -> Result<Self, RosterError> {
        let mut roster = Self::new();
        for raw in entries {
            roster.readd(raw, canonicalize(raw)?.into())?;
        }
        roster.not_empty()
    }

    /// As [`Roster::replay_trusted`], from the texts of [`super::RawEntry::text`].
    ///
    /// # Errors
    /// As there. A text that was changed breaks the chain at the entry after it, or the head.
    pub fn replay_texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Self, RosterError> {
        let mut roster = Self::new();
        for text in texts {
            let text = text.as_ref();
            roster.readd(&parse_wire(text.as_bytes(), limits::ROSTER_ENTRY_BYTES)?, text.into())?;
        }
        roster.not_empty()
    }

    fn not_empty(self) -> Result<Self, RosterError> {
        if self.log.is_empty() { Err(RosterError::Empty) } else { Ok(self) }
    }

    fn readd(&mut self, raw: &Value, text: Arc<str>) -> Result<(), RosterError> {
        let entry = Entry::from_value(raw)?;
        self.follows(&entry, self.log.len())?;
        self.state.check(&entry, raw, Trust::Unchecked)?;
        let hash: Hash = sha256(text.as_bytes());
        self.add(&entry, text, hash);
        Ok(())
    }

    /// The state after the first `count` entries.
    pub(super) fn state_before(&self, count: usize) -> Result<State, RosterError> {
        let mut state = State::default();
        for stored in self.log.iter().take(count) {
            state.change(&Entry::from_value(&stored.value()?)?);
        }
        Ok(state)
    }
}
