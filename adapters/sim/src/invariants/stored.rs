//! The relay takes an envelope once, however often its sender says it again (`messaging/1 §7`, "Dedupe").

use super::{Facts, Invariant, puts, word};
use crate::world::{Commit, Who};
use messaging_machines::relay::schema::{ENVELOPE, EnvelopeRow};
use serde_json::Value;
use std::collections::BTreeMap;

/// Every envelope the relay ever stored: its sender's machine and id, and its place.
#[derive(Default)]
pub(super) struct Once {
    places: BTreeMap<(String, String), Vec<u8>>,
    taken: BTreeMap<Vec<u8>, String>,
}

impl Invariant for Once {
    fn name(&self) -> &'static str {
        "stored-once"
    }

    fn commit(&mut self, commit: &Commit<'_>, _: &Facts) -> Result<(), String> {
        if commit.who != Who::Relay {
            return Ok(());
        }
        for (key, row) in puts(commit, ENVELOPE.0) {
            let Some(row) = EnvelopeRow::decode(row) else { continue };
            let Ok(envelope) = serde_json::from_str::<Value>(row.text) else { continue };
            let (id, from) = (word(&envelope, &["id"]), word(&envelope, &["from", "device"]));
            let holder = self.taken.entry(key.to_vec()).or_insert_with(|| id.clone());
            if *holder != id {
                return Err(format!("envelope {id} took the place of {holder}"));
            }
            let first = self.places.entry((from, id.clone())).or_insert_with(|| key.to_vec());
            if first != key {
                return Err(format!("envelope {id} was stored a second time"));
            }
        }
        Ok(())
    }
}
