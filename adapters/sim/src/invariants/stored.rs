//! The relay takes an envelope once, however often its sender says it again, until its id is free again: when its end and
//! the skew of clocks have passed (`messaging/1 §7`, "Dedupe").

use super::{Facts, Invariant, puts, word};
use crate::world::{Commit, Who};
use messaging_machines::relay::schema::{ENVELOPE, EnvelopeRow};
use messaging_proto::limits::CLOCK_SKEW_MS;
use messaging_proto::time::Wall;
use serde_json::Value;
use std::collections::BTreeMap;

/// Every envelope the relay ever stored: its sender's machine and id, its place, and when the id is free again.
#[derive(Default)]
pub(super) struct Once {
    places: BTreeMap<(String, String), (Vec<u8>, Wall)>,
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
            let exp = envelope.get("exp").and_then(Value::as_u64).unwrap_or(u64::MAX);
            let place = (key.to_vec(), Wall(exp.saturating_add(CLOCK_SKEW_MS)));
            let first = self.places.entry((from, id.clone())).or_insert_with(|| place.clone());
            // By the relay's own clock, which may be set back and forth.
            if first.0 != key && row.at < first.1 {
                return Err(format!("envelope {id} was stored a second time"));
            }
            *first = place;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use messaging_machines::store::Writes;

    /// An id is free again when its end and the skew have passed, and not a millisecond before.
    #[test]
    fn an_id_is_free_after_its_end_and_the_skew() {
        for (at, free) in [(0, false), (300_999, false), (301_000, true)] {
            let mut once = Once::default();
            let mut store = |key: &str, at: u64| {
                let text = r#"{"exp":1000,"from":{"device":"a"},"id":"one"}"#;
                let row = EnvelopeRow { at: Wall(at), text }.encode();
                let mut writes = Writes::new();
                writes.write(ENVELOPE, key.as_bytes().to_vec(), Some(row));
                let commit = Commit { who: Who::Relay, mono: 0, wall: at, writes: &writes, effects: &[] };
                once.commit(&commit, &Facts::default())
            };
            assert!(store("00000001", 0).is_ok());
            assert_eq!(store("00000002", at).is_ok(), free, "{at}");
        }
    }
}
