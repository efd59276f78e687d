//! How often a machine comes back.
//!
//! Each `hello` that is taken tells every other online member, twice: that the machine came, and later that it went. So a
//! machine that connects, is thrown out and connects again as fast as it can would make the relay talk to everybody.
//! Nothing says that a `hello` must be answered at once: one that comes too often waits in its connection. Only those
//! that were taken count, so nobody delays another machine by naming it.

use messaging_machines::relay::limits::Limits;
use messaging_proto::hash::RealmId;
use messaging_proto::key::MachineId;
use messaging_proto::time::Mono;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Each arrival is paid for with this time.
const COST_MS: u64 = 1_000;
/// So many may come at once, from a client with a bad network.
const BURST_MS: u64 = 10 * COST_MS;
/// Machines remembered before those that paid are forgotten.
const KEPT: usize = 1_024;

/// When each machine that came of late has paid for it.
#[derive(Debug)]
pub(super) struct Arrivals {
    paid: Mutex<Paid>,
    /// The longest wait: well within a client's patience, and ours.
    most_ms: u64,
}

#[derive(Debug, Default)]
struct Paid {
    at: BTreeMap<(RealmId, MachineId), Mono>,
    /// How many are remembered before the next tidying.
    room: usize,
}

impl Arrivals {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { paid: Mutex::default(), most_ms: limits.hello_timeout_ms / 2 }
    }

    fn lock(&self) -> MutexGuard<'_, Paid> {
        self.paid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a `hello` that was taken.
    pub(super) fn took(&self, team: RealmId, machine: MachineId, now: Mono) {
        let mut paid = self.lock();
        if paid.at.len() >= paid.room.max(KEPT) {
            paid.at.retain(|_, at| *at > now);
            paid.room = paid.at.len() * 2;
        }
        let at = paid.at.entry((team, machine)).or_insert(now);
        let most = now.plus(BURST_MS + self.most_ms);
        *at = (*at).max(now).plus(COST_MS).min(most);
    }

    /// How long a `hello` waits, in milliseconds.
    pub(super) fn wait_ms(&self, team: RealmId, machine: MachineId, now: Mono) -> u64 {
        self.lock().at.get(&(team, machine)).map_or(0, |at| at.since(now.plus(BURST_MS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use messaging_proto::hash::sha256;
    use messaging_proto::key::SigningKey;

    #[test]
    fn ten_at_once_then_one_a_second_each_machine_for_itself() {
        let arrivals = Arrivals::new(&Limits::default());
        let team = sha256(b"team");
        let machine = |seed| SigningKey::from_seed([seed; 32]).machine();
        let wait = |seed, now| arrivals.wait_ms(team, machine(seed), Mono(now));
        for _ in 0..10 {
            assert_eq!(wait(1, 5_000), 0);
            arrivals.took(team, machine(1), Mono(5_000));
        }
        arrivals.took(team, machine(1), Mono(5_000));
        assert_eq!((wait(1, 5_000), wait(1, 5_400), wait(1, 6_000)), (1_000, 600, 0));
        assert_eq!((wait(2, 5_000), arrivals.wait_ms(sha256(b"other"), machine(1), Mono(5_000))), (0, 0));
        // However many connections it opens: within the time that `hello` may take.
        (0..1_000).for_each(|_| arrivals.took(team, machine(1), Mono(6_000)));
        assert_eq!(wait(1, 6_000), 5_000);
        assert_eq!(wait(1, 11_000), 0);
    }

    #[test]
    fn those_that_paid_are_forgotten() {
        let arrivals = Arrivals::new(&Limits::default());
        for index in 0..5_000_u64 {
            let team = sha256(&index.to_be_bytes());
            arrivals.took(team, SigningKey::from_seed([1; 32]).machine(), Mono(index * 100));
        }
        assert!(arrivals.lock().at.len() <= KEPT);
    }
}
