//! Counters, and the page of the metrics listener (`messaging/1 §7`, "Metrics").
//!
//! Every label value is from a closed vocabulary of ours: nothing a peer wrote is counted by name.

mod page;
pub(super) mod process;

pub(super) use page::page;

use messaging_machines::relay::io::Count;
use messaging_machines::relay::limits::Scope;
use messaging_proto::Code;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A cap that a socket or a `hello` met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Refused {
    /// `preauth_total`.
    PreauthTotal,
    /// `preauth_address`.
    PreauthAddress,
    /// `full`.
    Full,
}

impl From<Scope> for Refused {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Total => Self::PreauthTotal,
            Scope::Address => Self::PreauthAddress,
        }
    }
}

/// Why a socket was dropped for falling behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slow {
    /// Its own buffer.
    Socket,
    /// The budget of all sockets.
    Budget,
}

impl Slow {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Budget => "budget",
        }
    }
}

/// Counters since the process started.
#[derive(Debug, Default)]
pub(super) struct Metrics(Mutex<Counters>);

#[derive(Clone, Debug, Default)]
struct Counters {
    refused: BTreeMap<Refused, u64>,
    auth_failures: BTreeMap<Code, u64>,
    frames_in: BTreeMap<&'static str, u64>,
    frames_out: BTreeMap<&'static str, u64>,
    nacks: BTreeMap<Code, u64>,
    rate_limited: u64,
    queue_full: u64,
    purged: BTreeMap<&'static str, u64>,
    slow: BTreeMap<Slow, u64>,
    internal: BTreeMap<&'static str, u64>,
}

fn add<K: Ord>(counters: &mut BTreeMap<K, u64>, key: K, count: u64) {
    *counters.entry(key).or_default() += count;
}

impl Metrics {
    fn lock(&self) -> MutexGuard<'_, Counters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn refused(&self, refused: Refused) {
        add(&mut self.lock().refused, refused, 1);
    }

    pub(super) fn frame_out(&self, t: &'static str) {
        add(&mut self.lock().frames_out, t, 1);
    }

    pub(super) fn slow(&self, slow: Slow) {
        add(&mut self.lock().slow, slow, 1);
    }

    /// A refusal that no machine said.
    pub(super) fn nack(&self, code: Code) {
        add(&mut self.lock().nacks, code, 1);
    }

    /// An unexpected failure; `place` is a fixed word.
    pub(super) fn internal(&self, place: &'static str) {
        add(&mut self.lock().internal, place, 1);
    }

    /// What the machine counted.
    pub(super) fn count(&self, count: Count) {
        let mut counters = self.lock();
        match count {
            Count::FrameIn(t) => add(&mut counters.frames_in, t, 1),
            Count::Nack(code) => add(&mut counters.nacks, code, 1),
            Count::AuthFailure(code) => add(&mut counters.auth_failures, code, 1),
            Count::RateLimited => counters.rate_limited += 1,
            Count::QueueFull => counters.queue_full += 1,
            Count::RefusedFull => add(&mut counters.refused, Refused::Full, 1),
            Count::Purged(table, rows) => add(&mut counters.purged, table, rows),
        }
    }
}
