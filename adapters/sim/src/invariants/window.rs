//! No connection carries more unacknowledged deliveries of one sender than the window (`messaging/1 §7`, "Window").

use super::{Facts, Invariant, deletes, word};
use crate::world::{Commit, Who};
use messaging_machines::relay::schema::ORDER;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What each connection was sent of each machine and did not acknowledge, by its place in the queue.
#[derive(Default)]
pub(super) struct Window(BTreeMap<(u64, String), BTreeSet<Vec<u8>>>);

impl Invariant for Window {
    fn name(&self) -> &'static str {
        "delivery-window"
    }

    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String> {
        if commit.who != Who::Relay {
            return Ok(());
        }
        // An acknowledged envelope leaves the queue.
        for key in deletes(commit, ORDER.0) {
            let place = &key[key.len().saturating_sub(8)..];
            for flying in self.0.values_mut() {
                flying.remove(place);
            }
        }
        self.0.retain(|_, flying| !flying.is_empty());
        for effect in commit.effects.iter().filter(|effect| effect.contains(r#""frame":{"Deliver":"#)) {
            let Ok(effect) = serde_json::from_str::<Value>(effect) else { continue };
            let conn = effect["Send"]["conn"].as_u64().unwrap_or_default();
            let env = effect["Send"]["frame"]["Deliver"]["env"].as_str().unwrap_or_default();
            let Ok(env) = serde_json::from_str::<Value>(env) else { continue };
            let (id, from) = (word(&env, &["id"]), word(&env, &["from", "device"]));
            let Some(stored) = facts.stored.get(&id) else { continue };
            let flying = self.0.entry((conn, from.clone())).or_default();
            flying.insert(stored.position.clone());
            let (count, most) = (flying.len() as u64, crate::run::limits().delivery_window);
            if count > most {
                return Err(format!(
                    "connection {conn} was sent {count} of {from} at once, more than {most}"
                ));
            }
        }
        Ok(())
    }
}
