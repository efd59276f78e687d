//! A delivery's stage never moves back, and nothing that was said of it is unsaid (`messaging/1 §8.4`).

use super::{Facts, Invariant, rows, word};
use crate::world::{Commit, Who};
use serde_json::Value;
use std::collections::BTreeMap;

/// The order of the stages, written down again on purpose. The two ends come after every other.
const ORDER: [&str; 9] =
    ["accepted", "relayed", "delivered", "held", "handed_to_agent", "read", "replied", "rejected", "expired"];

/// The stages of every envelope so far.
#[derive(Default)]
pub(super) struct Forward(BTreeMap<(usize, Vec<u8>), Vec<String>>);

impl Invariant for Forward {
    fn name(&self) -> &'static str {
        "stages-forward"
    }

    fn commit(&mut self, commit: &Commit<'_>, _: &Facts) -> Result<(), String> {
        let Who::Daemon(number) = commit.who else { return Ok(()) };
        for (key, sent) in rows(commit, "sent") {
            let history = sent.get("history").and_then(Value::as_array).into_iter().flatten();
            let stages: Vec<String> = history.map(|reached| word(reached, &["stage"])).collect();
            let id = String::from_utf8_lossy(key).into_owned();
            let before = self.0.entry((number, key.to_vec())).or_default();
            if !stages.starts_with(before) {
                return Err(format!("envelope {id}: {before:?} became {stages:?}"));
            }
            let place = |stage: &String| ORDER.iter().position(|of| of == stage);
            // A message that was held is delivered later, once: the only step that is not along the order.
            let back = stages.windows(2).find(|two| {
                place(&two[0]) >= place(&two[1])
                    && (two[0].as_str(), two[1].as_str()) != ("held", "delivered")
            });
            if let Some(two) = back {
                return Err(format!("envelope {id} moved back: {two:?}"));
            }
            *before = stages;
        }
        Ok(())
    }
}
