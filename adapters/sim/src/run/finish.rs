//! Peace: every fault ends, and within a bounded virtual time everybody agrees, nothing waits, and nothing is undecided.

use super::Play;
use crate::chaos;
use messaging_machines::relay::{gauges, schema};
use messaging_machines::store::MemoryBase;
use messaging_proto::limits::CLOCK_SKEW_MS;
use messaging_proto::time::Wall;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// How long everybody has to come to rest, in virtual milliseconds.
const PEACE_MS: u64 = 600_000;

pub(super) type Checked = Result<(), (String, String)>;

pub(super) fn need(holds: bool, invariant: &str, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err((format!("liveness/{invariant}"), what())) }
}

/// A daemon's rows of a table: a version byte, then JSON.
pub(super) fn rows(base: &MemoryBase, table: &str) -> Vec<(Vec<u8>, Json)> {
    let of = base.iter().filter(|(other, ..)| other.0 == table);
    of.filter_map(|(_, key, row)| Some((key.to_vec(), serde_json::from_slice(row.get(1..)?).ok()?))).collect()
}

impl Play {
    /// Ends every fault, waits, and looks.
    pub(super) fn finish(&mut self) -> Checked {
        self.heal();
        self.world.pass(PEACE_MS);
        self.check()?;
        // One that never got what it was to be shown is a machine like any other.
        let forked = self.world.relay.forked.clone();
        self.world.relay.forked = forked.into_iter().filter(|number| self.is_off_chain(*number)).collect();
        let out = |number: &usize| self.removed.contains(number) || self.world.relay.forked.contains(number);
        let live: Vec<usize> = (0..self.machines.len()).filter(|number| !out(number)).collect();
        self.agreed(&live)?;
        for number in &live {
            self.rested(*number)?;
        }
        self.settled(&live)?;
        self.same_tasks(&live, false)?;
        self.guests_settled()?;
        self.forks_are_told()?;
        self.check()?;
        self.a_week_later(&live)?;
        self.check()
    }

    fn heal(&mut self) {
        let world = &mut self.world;
        for number in 0..world.nodes.len() {
            world.end_silence(number);
        }
        for node in &mut world.nodes {
            node.crash = None;
            node.fail_saves.clear();
            node.reaches = true;
            node.latency = 0;
            node.slow = 0;
            node.drop_frames = 0;
            node.swap = false;
            node.skew = 0;
            node.fail_writes = 0;
        }
        world.relay.fail = None;
        world.relay.fail_writes = 0;
        world.relay.fork_to = None;
        world.relay.swallow = None;
        world.relay.cut_after_append = 0;
        world.relay.skew = 0;
        world.reach(true);
        if !self.seen.borrow().facts.lied.is_empty() {
            // A relay that lied is replaced by one that does not; another has to make good by itself.
            world.restart_relay();
        }
        world.pass(200_000);
    }

    /// Whether a machine holds an entry that is not the relay's.
    fn is_off_chain(&self, number: usize) -> bool {
        let relay = self.world.relay.base.iter().filter(|(table, ..)| table.0 == schema::ROSTER.0);
        let relay: BTreeMap<&[u8], &[u8]> =
            relay.map(|(_, key, row)| (&key[key.len().saturating_sub(8)..], row)).collect();
        let mut own = self.world.nodes[number].base.iter().filter(|(table, ..)| table.0 == "roster");
        own.any(|(_, key, row)| relay.get(key) != row.get(1..).as_ref())
    }

    /// All are connected, on one chain, without an alarm.
    pub(super) fn agreed(&mut self, live: &[usize]) -> Checked {
        // A machine whose removal never reached the relay is a member like any other.
        chaos::agree_of(&mut self.world, live).map_err(|what| ("liveness/agreement".to_owned(), what))
    }

    /// Nothing waits to be sent, and no request is undecided past its end.
    pub(super) fn rested(&mut self, number: usize) -> Checked {
        let base = &self.world.nodes[number].base;
        let gone = self.removed.iter().chain(&self.world.relay.forked);
        let gone: Vec<&String> = gone.map(|number| &self.machines[*number]).collect();
        let waits = rows(base, "outbox");
        let waiting = waits.iter().find(|(_, row)| {
            let env = row.get("env").and_then(Json::as_str).unwrap_or_default();
            !gone.iter().any(|machine| env.contains(machine.as_str()))
        });
        need(waiting.is_none(), "outbox", || {
            format!(
                "machine {number}: {} envelopes wait, such as {:?}",
                waits.len(),
                waiting.map(|(_, row)| &row["id"])
            )
        })?;
        need(rows(base, "local").is_empty(), "local", || format!("machine {number}: local mail waits"))?;
        let late = |row: &Json| row["exp"].as_u64().is_some_and(|exp| exp + 60_000 < self.world.wall);
        let held = rows(base, "held");
        let late = held.iter().find(|(_, row)| late(row));
        need(late.is_none(), "undecided", || {
            format!("machine {number}: {:?} is held past its end", late.map(|(_, row)| &row["id"]))
        })
    }

    /// Whether the clocks of two machines and the relay between them were ever further apart than the protocol allows
    /// (`messaging/1 §5`): what one wrote may have come before its time to another, which refuses it then, and a receipt
    /// is not answered.
    fn apart(&self, a: usize, b: usize) -> bool {
        let all = [self.skews[a], self.skews[b], self.skews[self.machines.len()]];
        let (least, most) =
            all.iter().fold((0, 0), |(low, high), (least, most)| (low.min(*least), high.max(*most)));
        u64::try_from(most - least).is_ok_and(|most| most > CLOCK_SKEW_MS)
    }

    /// Everything that was accepted, or acked by the relay, has come somewhere.
    fn settled(&self, live: &[usize]) -> Checked {
        let stages: Vec<BTreeMap<String, String>> = self
            .world
            .nodes
            .iter()
            .map(|node| {
                let stage = |row: &Json| {
                    let last = row["history"].as_array().and_then(|history| history.last()).cloned();
                    last.and_then(|last| last["stage"].as_str().map(str::to_owned)).unwrap_or_default()
                };
                let id = |key: &[u8]| String::from_utf8_lossy(key).trim_end_matches('\0').to_owned();
                rows(&node.base, "sent").iter().map(|(key, row)| (id(key), stage(row))).collect()
            })
            .collect();
        let held_to = |sent: &&super::Sent| {
            live.contains(&sent.from) && live.contains(&sent.to) && !self.apart(sent.from, sent.to)
        };
        for sent in self.sends.iter().filter(held_to) {
            let stage = stages[sent.from].get(&sent.id).map(String::as_str);
            // A row may be gone after `retention.sentDays`.
            let settled = stage.is_none_or(|stage| !["accepted", "relayed"].contains(&stage));
            need(settled, "settled", || {
                format!("machine {}: {} to machine {} is still {stage:?}", sent.from, sent.id, sent.to)
            })?;
        }
        let seen = self.seen.borrow();
        for id in &seen.facts.relayed {
            let Some(stored) = seen.facts.stored.get(id) else { continue };
            let number =
                |machine: &String| live.iter().copied().find(|number| self.machines[*number] == *machine);
            let (Some(to), Some(from)) = (number(&stored.to), number(&stored.from)) else { continue };
            if self.apart(from, to) {
                continue;
            }
            let ended = stored.exp.is_some_and(|exp| exp < self.world.wall);
            let dealt = seen.facts.seen.get(&to).is_some_and(|seen| seen.contains(id));
            need(dealt || ended, "relayed-is-delivered", || {
                format!("{id} was relayed and machine {to} never had it")
            })?;
        }
        let queued = self.world.relay.base.iter().filter(|(table, ..)| table.0 == schema::ORDER.0).count();
        let counted = gauges(&self.world.relay.base, Wall(self.world.wall)).map_or(0, |gauges| gauges.rows);
        need(counted == queued as u64, "queue-count", || {
            format!("the relay counts {counted} of {queued} envelopes")
        })?;
        // Whoever is removed takes along what waits for it and what it sent.
        let all = self.world.relay.forked.is_empty();
        need(queued == 0 || !all, "queue", || format!("{queued} envelopes wait at the relay"))
    }

    /// Both sides of a task know the same state. `ended` once its request's life is over: the requester of one that was held
    /// and let through hears nothing until an agent is shown it (`messaging/1 §8.4`), and gives up at that time.
    pub(super) fn same_tasks(&self, live: &[usize], ended: bool) -> Checked {
        let seen = self.seen.borrow();
        let held = |number: usize, request: &str| {
            seen.facts.held.get(&number).is_some_and(|ids| ids.contains(request))
        };
        let mut states: BTreeMap<String, Vec<(usize, String, String)>> = BTreeMap::new();
        for number in live {
            for (_, task) in rows(&self.world.nodes[*number].base, "task") {
                if ended && live.iter().any(|at| held(*at, task["request"].as_str().unwrap_or_default())) {
                    continue;
                }
                let word = |value: &Json| value.as_str().unwrap_or_default().to_owned();
                let one = (*number, word(&task["role"]), word(&task["status"]["state"]));
                states.entry(word(&task["id"])).or_default().push(one);
            }
        }
        for (task, sides) in states {
            let same = sides.windows(2).all(|two| two[0].2 == two[1].2 || self.apart(two[0].0, two[1].0));
            need(same, "tasks-agree", || format!("task {task}: {sides:?}"))?;
        }
        Ok(())
    }
}
