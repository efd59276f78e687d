//! Nothing reaches an inbox twice, whatever the relay delivers again (`messaging/1 §5`, "Duplicates").

use super::{Facts, Invariant, rows, word};
use crate::world::{Commit, Who};
use std::collections::BTreeMap;

/// Which row every envelope has in the inbox of each daemon, and every text of a plan's people, each of which is sent once:
/// a call that is repeated with its idempotency key sends nothing more (`§8.2`). Kept after the row is gone.
#[derive(Default)]
pub(super) struct Once {
    rows: BTreeMap<(usize, String), Vec<u8>>,
    texts: BTreeMap<(usize, String), String>,
}

impl Invariant for Once {
    fn name(&self) -> &'static str {
        "inbox-once"
    }

    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String> {
        let Who::Daemon(number) = commit.who else { return Ok(()) };
        for (key, item) in rows(commit, "inbox") {
            let id = word(&item, &["id"]);
            let first = self.rows.entry((number, id.clone())).or_insert_with(|| key.to_vec());
            if first != key {
                return Err(format!("envelope {id} came into the inbox a second time"));
            }
            let text = word(&item, &["preview"]);
            if text.starts_with(facts.secret) {
                let first = self.texts.entry((number, text)).or_insert_with(|| id.clone());
                if *first != id {
                    return Err(format!("envelope {id} says again what {first} said, which was sent once"));
                }
            }
        }
        Ok(())
    }
}
