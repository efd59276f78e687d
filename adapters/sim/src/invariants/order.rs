//! What one machine sends to another arrives in the relay's order, as long as nothing is held for a person or asked for
//! again (`messaging/1 §7`, "Delivery"), by a relay that tells the truth.

use super::{Facts, Invariant, rows, word};
use crate::world::{Commit, Who};
use std::collections::BTreeMap;

/// The last position that came into the inbox of a daemon from each machine.
#[derive(Default)]
pub(super) struct PerSender {
    last: BTreeMap<(usize, String, u64), Vec<u8>>,
    known: BTreeMap<usize, std::collections::BTreeSet<String>>,
}

impl Invariant for PerSender {
    fn name(&self) -> &'static str {
        "order-per-sender"
    }

    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String> {
        let Who::Daemon(number) = commit.who else { return Ok(()) };
        for (key, item) in rows(commit, "inbox") {
            let (id, device) = (word(&item, &["id"]), word(&item, &["from", "device"]));
            if !self.known.entry(number).or_default().insert(id.clone()) {
                continue;
            }
            let held = facts.held.get(&number).is_some_and(|held| held.contains(&id));
            // A relay that lies may well deliver in another order than its own.
            let judged = !held && !facts.lied.contains(&number);
            let Some(stored) = facts.stored.get(&id).filter(|_| judged) else { continue };
            let mailbox = key.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
            let last = self.last.entry((number, device.clone(), mailbox)).or_default();
            if *last >= stored.position {
                return Err(format!("envelope {id} of {device} came after one that was sent later"));
            }
            last.clone_from(&stored.position);
        }
        Ok(())
    }
}
