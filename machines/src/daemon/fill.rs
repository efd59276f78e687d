//! Filling a store as long use would leave it, for benchmarks alone.

use super::Daemon;
use super::chats;
use super::ctx::Ctx;
use crate::machine::{Out, Step};
use crate::store::{StoreDown, Txn};
use messaging_proto::name::PersonId;
use std::collections::VecDeque;

impl Daemon {
    /// Files direct lines of these persons, as if each had arrived. Nothing is said to anybody.
    ///
    /// # Errors
    /// [`StoreDown`] when the store did not answer.
    pub fn fill_chats(
        &mut self,
        step: &Step,
        txn: &mut Txn<'_>,
        lines: impl IntoIterator<Item = (PersonId, String)>,
    ) -> Result<(), StoreDown> {
        let (mut out, mut notes) = (Out::new(), VecDeque::new());
        let mut cx = Ctx::new(step, txn, &mut self.facts, &mut out, &mut notes);
        for (person, text) in lines {
            chats::fill(&mut cx, person, text)?;
        }
        Ok(())
    }
}
