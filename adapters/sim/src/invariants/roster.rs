//! The relay never rewrites a roster entry, and every honest machine's roster is a prefix of the relay's one chain
//! (`messaging/1 §4`), but for machines that it shows a fork.

use super::{Facts, Invariant, puts};
use crate::world::{Commit, Who};
use messaging_machines::relay::schema;
use std::collections::BTreeMap;

/// The relay's entries by position.
#[derive(Default)]
pub(super) struct OneChain(BTreeMap<Vec<u8>, Vec<u8>>);

impl Invariant for OneChain {
    fn name(&self) -> &'static str {
        "one-chain"
    }

    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String> {
        match commit.who {
            Who::Relay => {
                for (key, entry) in puts(commit, schema::ROSTER.0) {
                    let seq = key[key.len().saturating_sub(8)..].to_vec();
                    let known = self.0.entry(seq.clone()).or_insert_with(|| entry.to_vec());
                    if known != entry {
                        return Err(format!("entry {seq:?} was rewritten"));
                    }
                }
            }
            // It was shown another chain; that it says so is demanded at the end.
            Who::Daemon(number) if facts.forked.contains(&number) => {}
            Who::Daemon(_) => {
                for (key, row) in puts(commit, "roster") {
                    let entry = row.get(1..).unwrap_or_default();
                    if self.0.get(key).is_some_and(|known| known != entry) {
                        return Err(format!("entry {key:?} is another one than the relay's"));
                    }
                    if !self.0.contains_key(key) {
                        return Err(format!("entry {key:?} was never the relay's"));
                    }
                }
            }
        }
        Ok(())
    }
}
