//! How fast chats go (`messaging/1 §8.2`, "Pacing"; `§6.9`, "Pacing"). Volatile: a restart starts the windows again.

use messaging_proto::key::MachineId;
use messaging_proto::name::PersonId;
use messaging_proto::pacing::A2h;
use messaging_proto::time::Mono;
use std::collections::{BTreeMap, VecDeque};

/// Chat envelopes a minute to one machine: ten below what it takes.
const PER_MINUTE: usize = 50;
const MINUTE_MS: u64 = 60_000;

/// The counts.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// When chat envelopes for a machine were made, within the last minute.
    machines: BTreeMap<MachineId, VecDeque<Mono>>,
    /// Lines by this person's agents, by the person they are to.
    to: BTreeMap<PersonId, A2h>,
    /// Lines by a person's agents to this one.
    from: BTreeMap<PersonId, A2h>,
}

impl Pace {
    /// Whether a line may go to these machines, and by an agent to these persons.
    ///
    /// # Errors
    /// How many milliseconds until it may.
    pub(super) fn check<'a>(
        &mut self,
        machines: impl IntoIterator<Item = &'a MachineId>,
        persons: impl IntoIterator<Item = &'a PersonId>,
        now: Mono,
    ) -> Result<(), u64> {
        let mut until: Option<Mono> = None;
        for machine in machines {
            let Some(times) = self.machines.get_mut(machine) else { continue };
            times.retain(|at| now.since(*at) < MINUTE_MS);
            // The one that must leave for the count to fall below.
            if let Some(last) = times.len().checked_sub(PER_MINUTE).and_then(|at| times.get(at)) {
                until = until.max(Some(last.plus(MINUTE_MS)));
            }
        }
        for person in persons {
            if let Some(Err(at)) = self.to.get(person).map(|counter| counter.check(now)) {
                until = until.max(Some(at));
            }
        }
        until.map_or(Ok(()), |until| Err(until.since(now).max(1)))
    }

    /// Counts what goes to these machines. Changes of channels count, and are never refused.
    pub(super) fn sent<'a>(&mut self, machines: impl IntoIterator<Item = &'a MachineId>, now: Mono) {
        for machine in machines {
            let times = self.machines.entry(*machine).or_default();
            times.retain(|at| now.since(*at) < MINUTE_MS);
            times.push_back(now);
        }
    }

    /// Counts a line by an agent to these persons.
    pub(super) fn sent_by_agent<'a>(&mut self, persons: impl IntoIterator<Item = &'a PersonId>, now: Mono) {
        for person in persons {
            self.to.entry(person.clone()).or_default().accept(now);
        }
    }

    /// Whether a line by one of `person`'s agents may come in.
    pub(super) fn may_enter(&self, person: &PersonId, now: Mono) -> bool {
        self.from.get(person).is_none_or(|counter| counter.check(now).is_ok())
    }

    /// A line by one of `person`'s agents came in.
    pub(super) fn entered(&mut self, person: &PersonId, now: Mono) {
        self.from.entry(person.clone()).or_default().accept(now);
    }

    /// Forgets machines and persons that are no longer members.
    pub(crate) fn retain(
        &mut self,
        machine: impl Fn(&MachineId) -> bool,
        person: impl Fn(&PersonId) -> bool,
    ) {
        self.machines.retain(|id, _| machine(id));
        self.to.retain(|id, _| person(id));
        self.from.retain(|id, _| person(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §8.2: fifty within any minute, and the wait is until the oldest of them is a minute old.
    #[test]
    fn fifty_in_any_minute() {
        let machine = MachineId::parse("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").unwrap();
        let mut pace = Pace::default();
        for number in 0..50 {
            assert_eq!(pace.check([&machine], [], Mono(number)), Ok(()), "{number}");
            pace.sent([&machine], Mono(number));
        }
        assert_eq!(pace.check([&machine], [], Mono(50)), Err(59_950));
        assert_eq!(pace.check([&machine], [], Mono(59_999)), Err(1));
        assert_eq!(pace.check([&machine], [], Mono(60_000)), Ok(()));
        // A change is not refused, and counts: now two must leave.
        pace.sent([&machine], Mono(59_999));
        assert_eq!(pace.check([&machine], [], Mono(60_000)), Err(1));
        assert_eq!(pace.check([&machine], [], Mono(60_001)), Ok(()));
    }

    #[test]
    fn an_agents_lines_are_counted_by_person() {
        let [one, other] = ["ann", "bob"].map(|name| PersonId::parse(name).unwrap());
        let mut pace = Pace::default();
        for _ in 0..30 {
            assert_eq!(pace.check([], [&one], Mono(7)), Ok(()));
            pace.sent_by_agent([&one], Mono(7));
            assert!(pace.may_enter(&one, Mono(7)));
            pace.entered(&one, Mono(7));
        }
        assert_eq!(pace.check([], [&one, &other], Mono(8)), Err(3_599_999));
        assert_eq!(pace.check([], [&other], Mono(8)), Ok(()));
        assert!(!pace.may_enter(&one, Mono(8)) && pace.may_enter(&other, Mono(8)));
        pace.retain(|_| true, |person| *person != one);
        assert_eq!(pace.check([], [&one], Mono(8)), Ok(()));
        assert!(pace.may_enter(&one, Mono(8)));
    }
}
