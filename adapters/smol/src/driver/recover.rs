//! From a failed store to a new machine (`messaging/1 §7`, "Store failures").

use super::run::Run;
use super::{Failed, Perform, Queued, park};
use crate::clock;
use crate::entropy::NoEntropy;
use crate::store::{OpenError, RedbStore, StoreFault};
use messaging_machines::Machine;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl<M: Machine, P: Perform<M>> Run<M, P> {
    /// Opens and probes the store until a write commits; nothing when the process stops first. A store that is lost is
    /// given up.
    ///
    /// `commits` is the counter of the last commit that was known to be durable.
    pub(super) fn recover(&mut self, fault: StoreFault, commits: u64) -> Result<Option<RedbStore>, Failed> {
        self.health.failing.store(true, Ordering::Relaxed);
        let mut fault = fault;
        let mut retry_ms = self.bounds.retry_ms;
        let mut took_effect = None;
        // An open store answers reads meanwhile, so that `/readyz` tells a full disk from a lost one.
        let mut store = self.open(commits, &mut took_effect)?;
        loop {
            self.health.store_errors.fetch_add(1, Ordering::Relaxed);
            self.log.error("store.failing", &[("error", fault.0.into()), ("retryMs", retry_ms.into())]);
            let wait_ms = self.jittered(retry_ms)?;
            if !self.refuse_for(wait_ms) {
                return Ok(None);
            }
            retry_ms = retry_ms.saturating_mul(2).min(self.bounds.retry_max_ms);
            if store.is_err() {
                store = self.open(commits, &mut took_effect)?;
            }
            fault = match store {
                Ok(open) => match open.probe() {
                    Ok(()) => {
                        self.health.failing.store(false, Ordering::Relaxed);
                        let durable = took_effect.unwrap_or(false);
                        self.log.warn("store.recovered", &[("lastBatchDurable", durable.into())]);
                        return Ok(Some(open));
                    }
                    Err(fault) => {
                        // The handle is dead after its first failure.
                        drop(open);
                        store = self.open(commits, &mut took_effect)?;
                        fault
                    }
                },
                Err(fault) => {
                    store = Err(fault);
                    fault
                }
            };
        }
    }

    /// Opens the file; the first time that succeeds, notes whether the failed batch is there.
    fn open(
        &mut self,
        commits: u64,
        took_effect: &mut Option<bool>,
    ) -> Result<Result<RedbStore, StoreFault>, Failed> {
        let store = match (self.reopen)() {
            Ok(store) => Ok(store),
            Err(OpenError::Lost(fault)) => return Err(Failed::Store(fault)),
            Err(OpenError::Fault(fault)) => Err(fault),
            Err(OpenError::Busy) => Err(StoreFault("busy")),
            Err(OpenError::Refused(reason)) => Err(StoreFault(reason.as_str())),
        };
        self.health.closed.store(store.is_err(), Ordering::Relaxed);
        if let Ok(store) = &store {
            took_effect.get_or_insert(store.commits() > commits);
        }
        Ok(store)
    }

    /// Between half of `ms` and `ms`.
    fn jittered(&mut self, ms: u64) -> Result<u64, NoEntropy> {
        let draw = self.entropy.draw()?;
        let draw = u64::from_be_bytes(draw[..8].try_into().unwrap_or_default());
        Ok(ms - draw % (ms / 2 + 1))
    }

    /// Refuses events for `ms`; whether to go on then.
    fn refuse_for(&mut self, ms: u64) -> bool {
        let end = clock::mono().plus(ms);
        loop {
            let left = end.since(clock::mono());
            if left == 0 {
                return true;
            }
            if self.health.stopping() {
                return false;
            }
            let next = park::wait(self.events.recv(), Some(Duration::from_millis(left.min(500))));
            match next {
                Some(Ok(Queued { event, .. })) => {
                    self.perform.refuse(event);
                    self.perform.flush();
                }
                Some(Err(_)) => return false,
                None => {}
            }
        }
    }
}
