//! A machine that finds another roster than its own keeps the proof, in the step that finds it (`messaging/1 §4`, "Sequencing and
//! forks"; `§5`, "Roster head check"): the signed envelope, or the signed entry.

use super::{Facts, Invariant};
use crate::world::{Commit, Who};
use serde_json::Value;

/// Looks at what the log says was found.
pub(super) struct Kept;

impl Invariant for Kept {
    fn name(&self) -> &'static str {
        "evidence-is-kept"
    }

    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String> {
        let Who::Daemon(number) = commit.who else { return Ok(()) };
        let kept = |kind: u8| {
            facts.evidence.get(&number).is_some_and(|keys| keys.iter().any(|key| key.first() == Some(&kind)))
        };
        for effect in commit.effects.iter().filter(|effect| effect.starts_with(r#"{"Log""#)) {
            let effect: Value = serde_json::from_str(effect).unwrap_or_default();
            let found = effect["Log"]["event"].as_str().unwrap_or_default();
            let fork = effect["Log"]["fields"]
                .as_array()
                .is_some_and(|fields| fields.iter().any(|field| field[0] == "why" && field[1] == "fork"));
            if found == "roster.divergence" && !kept(b'd') {
                return Err("another chain was found, and its proof is not kept".to_owned());
            }
            if found == "roster.refused" && fork && !kept(b'f') {
                return Err("a forking entry was found and is not kept".to_owned());
            }
        }
        Ok(())
    }
}
