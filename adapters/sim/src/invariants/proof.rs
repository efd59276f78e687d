//! A stage is said of a delivery only when it is true (`messaging/1 §5`, "Counterpart binding"; `§6.4`; `§8.4`): whoever the envelope
//! went to had come so far before its sender heard so, whatever others sign. An end by time comes after that time.

use super::{Facts, Invariant, rows, word};
use crate::world::{Commit, Who};
use messaging_proto::limits::CLOCK_SKEW_MS;
use serde_json::Value;
use std::collections::BTreeSet;

/// What became of every envelope at the machine that got it.
#[derive(Default)]
pub(super) struct Proved {
    /// What an agent was shown at least.
    shown: BTreeSet<String>,
    /// What was read.
    read: BTreeSet<String>,
    /// What has an answer: the daemon that got it, and what it answers.
    answered: BTreeSet<(usize, String)>,
}

impl Invariant for Proved {
    fn name(&self) -> &'static str {
        "stage-is-proved"
    }

    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String> {
        let Who::Daemon(number) = commit.who else { return Ok(()) };
        for (_, item) in rows(commit, "inbox") {
            let (id, stage) = (word(&item, &["id"]), word(&item, &["stage"]));
            if stage != "delivered" {
                self.shown.insert(id.clone());
            }
            if stage == "read" {
                self.read.insert(id);
            }
            self.answered.insert((number, word(&item, &["replyTo"])));
        }
        for (key, sent) in rows(commit, "sent") {
            let id = String::from_utf8_lossy(key).trim_end_matches('\0').to_owned();
            let last = sent.get("history").and_then(Value::as_array).and_then(|history| history.last());
            let stage = last.map(|last| word(last, &["stage"])).unwrap_or_default();
            let any = |of: &std::collections::BTreeMap<usize, BTreeSet<String>>| {
                of.values().any(|ids| ids.contains(&id))
            };
            let proved = match stage.as_str() {
                "relayed" => facts.stored.contains_key(&id),
                "delivered" => any(&facts.seen),
                "held" => any(&facts.held),
                "handed_to_agent" => self.shown.contains(&id),
                "read" => self.read.contains(&id),
                "replied" => self.answered.contains(&(number, id.clone())),
                "expired" => sent["exp"].as_u64().is_some_and(|exp| exp <= commit.wall + CLOCK_SKEW_MS),
                _ => true,
            };
            if !proved {
                return Err(format!("envelope {id} is called {stage} and did not come so far"));
            }
        }
        Ok(())
    }
}
