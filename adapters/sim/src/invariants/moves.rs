//! A task moves along its table only (`messaging/1 §6.3`), on both sides. The table is written down again on purpose.

use super::{Facts, Invariant, rows, word};
use crate::world::{Commit, Who};
use std::collections::BTreeMap;

const TABLE: [(&str, &[&str]); 4] = [
    (
        "SUBMITTED",
        &["WORKING", "INPUT_REQUIRED", "AUTH_REQUIRED", "COMPLETED", "FAILED", "REJECTED", "CANCELED"],
    ),
    ("WORKING", &["INPUT_REQUIRED", "AUTH_REQUIRED", "COMPLETED", "FAILED", "CANCELED"]),
    ("INPUT_REQUIRED", &["WORKING", "COMPLETED", "FAILED", "CANCELED"]),
    ("AUTH_REQUIRED", &["WORKING", "COMPLETED", "FAILED", "CANCELED"]),
];

/// The state of every record so far.
#[derive(Default)]
pub(super) struct Moves(BTreeMap<(usize, Vec<u8>), String>);

impl Invariant for Moves {
    fn name(&self) -> &'static str {
        "tasks-by-table"
    }

    fn commit(&mut self, commit: &Commit<'_>, _: &Facts) -> Result<(), String> {
        let Who::Daemon(number) = commit.who else { return Ok(()) };
        for (key, task) in rows(commit, "task") {
            let state = word(&task, &["status", "state"]).trim_start_matches("TASK_STATE_").to_owned();
            let before = self.0.insert((number, key.to_vec()), state.clone());
            let Some(before) = before.filter(|before| *before != state) else { continue };
            // What leaves an end is another check's.
            let next = TABLE.iter().find(|(from, _)| *from == before).map(|(_, next)| *next);
            if next.is_some_and(|next| !next.contains(&state.as_str())) {
                return Err(format!("task {} went from {before} to {state}", word(&task, &["id"])));
            }
        }
        Ok(())
    }
}
