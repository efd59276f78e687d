//! Numbers that only rise: a machine's presence, as it says it and as the relay keeps it (`messaging/1 §6.5`, `§7`); the numbers of
//! chat lines, which are never used again; and a chat's read cursor (`§6.8`). A crash takes none of them back.

use super::durable::frame;
use super::{Facts, Invariant, deletes, puts, rows};
use crate::world::{Commit, Who};
use messaging_machines::relay::schema::{PRESENCE, PresenceRow};
use std::collections::{BTreeMap, BTreeSet};

/// The last of each.
#[derive(Default)]
pub(super) struct Rising {
    said: BTreeMap<usize, u64>,
    kept: BTreeMap<Vec<u8>, u64>,
    lines: BTreeMap<usize, BTreeSet<Vec<u8>>>,
    cursors: BTreeMap<(usize, Vec<u8>), u64>,
}

impl Invariant for Rising {
    fn name(&self) -> &'static str {
        "numbers-rise"
    }

    fn commit(&mut self, commit: &Commit<'_>, _: &Facts) -> Result<(), String> {
        let Who::Daemon(number) = commit.who else {
            // One that ended leaves nothing to be above (`§7`, "Other frames": the stored one).
            for key in deletes(commit, PRESENCE.0) {
                self.kept.remove(key);
            }
            for (key, row) in puts(commit, PRESENCE.0) {
                let Some(row) = PresenceRow::decode(row) else { continue };
                if self.kept.insert(key.to_vec(), row.seq).is_some_and(|before| before >= row.seq) {
                    return Err(format!("the relay kept presence {} after a later one", row.seq));
                }
            }
            return Ok(());
        };
        let mark = r#"\"t\":\"presence\""#;
        let presences = commit
            .effects
            .iter()
            .filter(|effect| effect.starts_with(r#"{"LinkSend""#) && effect.contains(mark));
        for effect in presences {
            let seq = frame(effect)["env"]["body"]["seq"].as_u64().unwrap_or_default();
            if self.said.insert(number, seq).is_some_and(|before| before >= seq) {
                return Err(format!("presence {seq} was said after a later one"));
            }
        }
        let lines = self.lines.entry(number).or_default();
        for (key, _) in puts(commit, "chat_line") {
            let newest = lines.last().is_none_or(|last| last.as_slice() < key);
            if lines.insert(key.to_vec()) && !newest {
                return Err(format!("line {key:?} was filed under a number before the last"));
            }
        }
        for (key, room) in rows(commit, "chat_room") {
            // A row that keeps its first value says so by leaving it out.
            let cursor = room["readUpTo"].as_u64().unwrap_or_default();
            if self.cursors.insert((number, key.to_vec()), cursor).is_some_and(|before| before > cursor) {
                return Err(format!("the read cursor of room {key:?} went back to {cursor}"));
            }
        }
        Ok(())
    }
}
