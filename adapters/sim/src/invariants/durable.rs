//! A daemon says only what its store holds: the commit gate at the sender's end (`messaging/1 §8.2`). What leaves for the relay
//! stands in the outbox, and what a client is told was accepted has its delivery record.

use super::{Facts, Invariant, word};
use crate::world::{Commit, Who};
use serde_json::Value;

/// Looks at every envelope that leaves and every answer to a send.
pub(super) struct SaidIsDurable;

impl Invariant for SaidIsDurable {
    fn name(&self) -> &'static str {
        "said-is-durable"
    }

    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String> {
        let Who::Daemon(number) = commit.who else { return Ok(()) };
        let queued = |id: &str| facts.queued.get(&number).is_some_and(|ids| ids.contains(id));
        let recorded = |id: &str| facts.recorded.get(&number).is_some_and(|ids| ids.contains(id));
        for effect in commit.effects {
            if effect.starts_with(r#"{"LinkSend""#) && effect.contains(r#"\"t\":\"send\""#) {
                let id = word(&frame(effect), &["env", "id"]);
                if !queued(&id) {
                    return Err(format!("envelope {id} left and was never in the outbox"));
                }
            }
            if effect.starts_with(r#"{"IpcSend""#) && effect.contains(r#"\"stage\":\"accepted\""#) {
                let answer = inner(effect, "IpcSend", "line");
                let results = answer["result"]["results"].as_array().cloned().unwrap_or_default();
                for result in results.iter().filter(|result| word(result, &["to"]).contains('/')) {
                    let id = word(result, &["envelopeId"]);
                    if word(result, &["stage"]) == "accepted" && !recorded(&id) {
                        return Err(format!("envelope {id} was called accepted and has no record"));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The frame that an effect sends to the relay.
pub(super) fn frame(effect: &str) -> Value {
    inner(effect, "LinkSend", "text")
}

fn inner(effect: &str, name: &str, text: &str) -> Value {
    let effect: Value = serde_json::from_str(effect).unwrap_or_default();
    effect[name][text].as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
