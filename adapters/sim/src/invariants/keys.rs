//! An envelope that was sealed with a key its receiver replaced meanwhile still opens, for as long as it may travel
//! (`messaging/1 §4`, "Encryption-key rotation").

use super::{Facts, Invariant, rows, word};
use crate::world::{Commit, Who};
use serde_json::Value;

/// Where nobody is shown another roster, `roster_conflict` has one cause left: a key that was erased too early.
pub(super) struct OldKeysOpen;

impl Invariant for OldKeysOpen {
    fn name(&self) -> &'static str {
        "old-keys-open"
    }

    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String> {
        let Who::Daemon(number) = commit.who else { return Ok(()) };
        if !facts.forked.is_empty() || facts.garbled.contains(&number) {
            return Ok(());
        }
        for (key, sent) in rows(commit, "sent") {
            let last = sent.get("history").and_then(Value::as_array).and_then(|history| history.last());
            if last.is_some_and(|last| word(last, &["code"]) == "roster_conflict") {
                let id = String::from_utf8_lossy(key).trim_end_matches('\0').to_owned();
                return Err(format!("envelope {id} could not be opened any more"));
            }
        }
        Ok(())
    }
}
