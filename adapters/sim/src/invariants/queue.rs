//! The relay's queue of one recipient never holds more of one sender, or in all, than it may (`messaging/1 §7`, "Limits").

use super::{Facts, Invariant, deletes, puts};
use crate::world::{Commit, Who};
use messaging_machines::relay::limits::Limits;
use messaging_machines::relay::schema;
use std::collections::{BTreeMap, BTreeSet};

/// The rows of every queue.
pub(super) struct Caps {
    rows: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    limits: Limits,
}

impl Default for Caps {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), limits: crate::run::limits() }
    }
}

impl Invariant for Caps {
    fn name(&self) -> &'static str {
        "queue-caps"
    }

    fn commit(&mut self, commit: &Commit<'_>, _: &Facts) -> Result<(), String> {
        if commit.who != Who::Relay {
            return Ok(());
        }
        for key in deletes(commit, schema::ORDER.0) {
            let pair = key[..key.len().min(16)].to_vec();
            if let Some(rows) = self.rows.get_mut(&pair) {
                rows.remove(key);
            }
        }
        for (key, _) in puts(commit, schema::ORDER.0) {
            let pair = key[..key.len().min(16)].to_vec();
            self.rows.entry(pair.clone()).or_default().insert(key.to_vec());
            let of_sender = self.rows[&pair].len() as u64;
            let to = &pair[..pair.len().min(8)];
            let to_all =
                self.rows.iter().filter(|(pair, _)| pair.starts_with(to)).map(|(_, rows)| rows.len() as u64);
            let to_all: u64 = to_all.sum();
            if of_sender > self.limits.queue_per_sender || to_all > self.limits.queue_per_machine {
                return Err(format!("a queue holds {of_sender} of one sender and {to_all} in all"));
            }
        }
        Ok(())
    }
}
