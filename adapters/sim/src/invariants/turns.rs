//! What one machine sends to another is dealt with in the relay's order, kind by kind, also when the receiver's budget puts some of
//! it off (`messaging/1 §7`, "Delivery"; `§8.3`): an artifact before the status that ends its task, a line before its answer.

use super::{Facts, Invariant};
use crate::world::{Commit, Who};
use std::collections::BTreeMap;

/// The last position that a daemon dealt with, of each machine and kind.
#[derive(Default)]
pub(super) struct Turns(BTreeMap<(usize, String, String), Vec<u8>>);

impl Invariant for Turns {
    fn name(&self) -> &'static str {
        "taken-in-turn"
    }

    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String> {
        let Who::Daemon(number) = commit.who else { return Ok(()) };
        // A relay that lies may well deliver in another order than its own.
        if facts.lied.contains(&number) {
            return Ok(());
        }
        // Grants and lines between a person's own machines have budgets of their own, and look alike until they are opened.
        let of_step = super::seen_ids(commit).filter_map(|id| Some((facts.stored.get(&id)?, id)));
        let mut of_step: Vec<_> = of_step.filter(|(stored, _)| stored.kind != "own line").collect();
        // The rows of one step do not say which came first.
        of_step.sort_by(|(a, _), (b, _)| a.position.cmp(&b.position));
        for (stored, id) in of_step {
            let key = (number, stored.from.clone(), stored.kind.clone());
            let last = self.0.entry(key).or_default();
            if *last > stored.position {
                return Err(format!(
                    "envelope {id} of {} was dealt with after one that was sent later",
                    stored.from
                ));
            }
            last.clone_from(&stored.position);
        }
        Ok(())
    }
}
