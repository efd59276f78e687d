//! Nothing reaches an inbox twice, whatever the relay delivers again (`messaging/1 §5`, "Duplicates").

use super::{Facts, Invariant, rows, word};
use crate::world::{Commit, Who};
use std::collections::BTreeMap;

/// Which row every envelope has in the inbox of each daemon; kept after the row is gone.
#[derive(Default)]
pub(super) struct Once(BTreeMap<(usize, String), Vec<u8>>);

impl Invariant for Once {
    fn name(&self) -> &'static str {
        "inbox-once"
    }

    fn commit(&mut self, commit: &Commit<'_>, _: &Facts) -> Result<(), String> {
        let Who::Daemon(number) = commit.who else { return Ok(()) };
        for (key, item) in rows(commit, "inbox") {
            let id = word(&item, &["id"]);
            let first = self.0.entry((number, id.clone())).or_insert_with(|| key.to_vec());
            if first != key {
                return Err(format!("envelope {id} came into the inbox a second time"));
            }
        }
        Ok(())
    }
}
