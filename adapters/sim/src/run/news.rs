//! Roster entries are news: while nothing is wrong between a machine and the relay, it has every entry as soon as the relay does
//! (`messaging/1 §7`, "Other frames"). Heads in envelopes would make good for a relay or a daemon that keeps the news to itself, later.

use super::Play;
use super::finish::{Checked, need};
use messaging_machines::relay::schema;

impl Play {
    /// Looks after an act, when everything that can arrive has arrived.
    pub(super) fn news_is_out(&self) -> Checked {
        let facts = &self.seen.borrow().facts;
        let honest = facts.lied.is_empty() && facts.forked.is_empty() && facts.garbled.is_empty();
        // An entry's time is judged by the clocks of its author, the relay and whoever hears of it.
        if !honest || self.skews.iter().any(|skew| *skew != (0, 0)) {
            return Ok(());
        }
        let relay = &self.world.relay.base;
        let entries = relay.iter().filter(|(table, ..)| table.0 == schema::ROSTER.0).count();
        for number in (0..self.machines.len()).filter(|number| !self.removed.contains(number)) {
            if !self.world.is_undisturbed(number) {
                continue;
            }
            let own = self.world.nodes[number].base.iter().filter(|(table, ..)| table.0 == "roster").count();
            need(own == entries, "roster-news", || {
                format!("machine {number} has {own} of {entries} entries, and nothing keeps the rest from it")
            })?;
        }
        Ok(())
    }
}
