//! A message has one fate: what came into an inbox is never refused to its sender (`messaging/1 §6.4`), and what an honest
//! machine sealed is never called forged (`§4`, retained keys).

use super::{Facts, Invariant, rows, word};
use crate::world::{Commit, Who};
use serde_json::Value;
use std::collections::BTreeSet;

/// Refusals that may follow a delivery: the relay's own, of an envelope that is sent again since its ack was lost.
const LATER: [&str; 4] = ["not_member", "expired", "roster_conflict", "internal"];

/// Every envelope that ever came into an inbox.
#[derive(Default)]
pub(super) struct Fate(BTreeSet<String>);

impl Invariant for Fate {
    fn name(&self) -> &'static str {
        "one-fate"
    }

    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String> {
        let Who::Daemon(number) = commit.who else { return Ok(()) };
        self.0.extend(rows(commit, "inbox").map(|(_, item)| word(&item, &["id"])));
        // The relay refuses what another program said in a member's name, and that member's daemon hears it.
        if facts.garbled.contains(&number) {
            return Ok(());
        }
        for (key, sent) in rows(commit, "sent") {
            let last = sent.get("history").and_then(Value::as_array).and_then(|history| history.last());
            let Some(last) = last.filter(|last| word(last, &["stage"]) == "rejected") else { continue };
            let (id, code) =
                (String::from_utf8_lossy(key).trim_end_matches('\0').to_owned(), word(last, &["code"]));
            if code == "bad_signature" {
                return Err(format!("envelope {id}, which is what its sender sealed, was called forged"));
            }
            if self.0.contains(&id) && !LATER.contains(&code.as_str()) {
                return Err(format!("envelope {id} came into an inbox and was then refused: {code}"));
            }
        }
        Ok(())
    }
}
