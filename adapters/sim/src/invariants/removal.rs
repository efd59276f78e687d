//! Nothing is accepted from a machine whose removal the receiver holds (`messaging/1 §7`, "Removal").

use super::{Facts, Invariant, rows, word};
use crate::world::{Commit, Who};

/// Looks at new items of inboxes and new held requests.
pub(super) struct Out;

impl Invariant for Out {
    fn name(&self) -> &'static str {
        "removed-is-out"
    }

    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String> {
        let Who::Daemon(number) = commit.who else { return Ok(()) };
        let Some(removed) = facts.removed.get(&number) else { return Ok(()) };
        // A row is written again when its stage moves; what was let in before the removal stays.
        let new = rows(commit, "inbox_id").count() > 0 || rows(commit, "held_id").count() > 0;
        for table in ["inbox", "held"] {
            for (_, item) in rows(commit, table).filter(|_| new) {
                let (id, device) = (word(&item, &["id"]), word(&item, &["from", "device"]));
                let fresh = item
                    .get("stage")
                    .and_then(serde_json::Value::as_str)
                    .is_none_or(|stage| stage == "delivered");
                if fresh && removed.contains(&device) {
                    return Err(format!("{table}: envelope {id} of removed machine {device} was taken"));
                }
            }
        }
        Ok(())
    }
}
