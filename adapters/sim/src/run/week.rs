//! More than a week later: everything that has an end has ended (`messaging/1 §4`, `§5`, `§6.3`, `§6.9`, `§7`). The machines sleep
//! through it, so that it costs minutes; what came due meanwhile is done when they wake.

use super::Play;
use super::finish::{Checked, need, rows};
use messaging_machines::relay::schema;
use messaging_proto::identity::{IdentityFile, RETAIN_MS};
use messaging_proto::limits::CLOCK_SKEW_MS;
use std::collections::BTreeSet;
use zeroize::Zeroizing;

/// How long they sleep: past the life of every envelope, every key that is kept for it, and every waiting task.
const ASLEEP_MS: u64 = RETAIN_MS + 4 * CLOCK_SKEW_MS;
/// How long they have when they are awake, in virtual milliseconds.
const AWAKE_MS: u64 = 600_000;

impl Play {
    /// Lets the week pass and looks.
    pub(super) fn a_week_later(&mut self, live: &[usize]) -> Checked {
        let keys = |table: &'static str, number: usize, play: &Self| -> BTreeSet<Vec<u8>> {
            let of = play.world.nodes[number].base.iter().filter(move |(of, ..)| of.0 == table);
            of.map(|(_, key, _)| key.to_vec()).collect()
        };
        let known: Vec<_> = live.iter().map(|number| keys("seen", *number, self)).collect();
        let dedupe = |play: &Self| -> BTreeSet<Vec<u8>> {
            let of = play.world.relay.base.iter().filter(|(table, ..)| table.0 == schema::SEEN.0);
            of.map(|(_, key, _)| key.to_vec()).collect()
        };
        let taken = dedupe(self);
        self.world.sleep(ASLEEP_MS);
        self.world.pass(AWAKE_MS);
        self.check()?;
        self.agreed(live)?;
        for (number, known) in live.iter().zip(known) {
            self.rested(*number)?;
            let base = &self.world.nodes[*number].base;
            let open = |stage: &str| ["accepted", "relayed", "held"].contains(&stage);
            let late = rows(base, "sent").into_iter().find(|(_, row)| {
                let last = row["history"].as_array().and_then(|history| history.last());
                let stage = last.and_then(|last| last["stage"].as_str()).unwrap_or_default();
                open(stage) && row["exp"].as_u64().is_some_and(|exp| exp + CLOCK_SKEW_MS < self.world.wall)
            });
            need(late.is_none(), "expired-is-said", || format!("machine {number}: {:?} never ended", late))?;
            need(rows(base, "held").is_empty(), "undecided", || {
                format!("machine {number} still holds a request")
            })?;
            need(rows(base, "idem").is_empty(), "forgotten", || {
                format!("machine {number} keeps idempotency keys")
            })?;
            let seen = keys("seen", *number, self);
            need(seen.is_disjoint(&known), "forgotten", || {
                format!("machine {number} keeps what it knew against duplicates past its time")
            })?;
            let waits = rows(base, "task").into_iter().find(|(_, task)| {
                let state = task["status"]["state"].as_str().unwrap_or_default();
                task["role"] == "executor" && state.ends_with("_REQUIRED")
            });
            need(waits.is_none(), "waiting-task-ends", || {
                format!("machine {number}: {:?} still waits", waits)
            })?;
            let file = self.world.nodes[*number].identity.clone().map(Zeroizing::new).map(IdentityFile::new);
            let identity = file.and_then(|file| file.read().ok());
            let old = identity.is_some_and(|identity| {
                identity.retained().any(|(_, until)| until.0 + CLOCK_SKEW_MS < self.world.wall)
            });
            need(!old, "retired-keys", || format!("machine {number} keeps a retired key past its time"))?;
        }
        need(dedupe(self).is_disjoint(&taken), "forgotten", || {
            "the relay keeps what it knew against duplicates past its time".to_owned()
        })?;
        self.same_tasks(live, true)
    }
}
