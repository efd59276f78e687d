//! The guard against agents that answer each other for ever (`messaging/1 §8.3`, loop guard). Volatile: a restart
//! starts a new window.

use messaging_proto::address::SessionAddress;
use messaging_proto::key::MachineId;
use messaging_proto::limits::LOOP_GUARD_WINDOW_MS;
use messaging_proto::name::SessionName;
use messaging_proto::time::Mono;
use std::collections::{BTreeMap, VecDeque};

/// Messages from one sender address to one session in a window (contract ipc §11.2).
const PER_ADDRESS: usize = 20;
/// Messages from one machine to one session: a session name is claimed, a machine is authenticated.
const PER_MACHINE: usize = 2 * PER_ADDRESS;
/// The most pairs kept before the idle ones are dropped.
const PAIRS: usize = 4_096;

/// Who writes to whom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pair {
    Address(SessionAddress, SessionName),
    Machine(MachineId, SessionName),
}

/// The times of the messages let through within the last window.
#[derive(Debug, Default)]
pub(crate) struct LoopGuard(BTreeMap<Pair, VecDeque<Mono>>);

impl LoopGuard {
    /// Counts a message and lets it through, or refuses it and counts nothing.
    pub(crate) fn admits(
        &mut self,
        machine: MachineId,
        from: &SessionAddress,
        to: &SessionName,
        now: Mono,
    ) -> bool {
        let address = Pair::Address(from.clone(), to.clone());
        let machine = Pair::Machine(machine, to.clone());
        if self.count(&address, now) >= PER_ADDRESS || self.count(&machine, now) >= PER_MACHINE {
            return false;
        }
        if self.0.len() >= PAIRS {
            self.0
                .retain(|_, times| times.back().is_some_and(|last| now.since(*last) < LOOP_GUARD_WINDOW_MS));
        }
        for pair in [address, machine] {
            self.0.entry(pair).or_default().push_back(now);
        }
        true
    }

    fn count(&mut self, pair: &Pair, now: Mono) -> usize {
        let Some(times) = self.0.get_mut(pair) else { return 0 };
        while times.front().is_some_and(|first| now.since(*first) >= LOOP_GUARD_WINDOW_MS) {
            times.pop_front();
        }
        times.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SessionAddress {
        SessionAddress::parse(text).unwrap()
    }

    #[test]
    fn twenty_an_address_forty_a_machine_in_a_sliding_window() {
        let machine = MachineId::parse("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").unwrap();
        let to = SessionName::parse("agent").unwrap();
        let mut guard = LoopGuard::default();
        for turn in 0..20 {
            assert!(guard.admits(machine, &address("bob/a@laptop"), &to, Mono(turn)));
        }
        assert!(!guard.admits(machine, &address("bob/a@laptop"), &to, Mono(20)));
        for turn in 20..40 {
            assert!(guard.admits(machine, &address("bob/b@laptop"), &to, Mono(turn)));
        }
        assert!(
            !guard.admits(machine, &address("bob/c@laptop"), &to, Mono(40)),
            "a new name is no new budget"
        );
        let other = SessionName::parse("other").unwrap();
        assert!(guard.admits(machine, &address("bob/c@laptop"), &other, Mono(40)));
        assert!(guard.admits(machine, &address("bob/a@laptop"), &to, Mono(LOOP_GUARD_WINDOW_MS)));
        assert!(!guard.admits(machine, &address("bob/a@laptop"), &to, Mono(LOOP_GUARD_WINDOW_MS)));
    }
}
