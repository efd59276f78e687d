//! From a failed store to a new machine (`messaging/1 §7`, "Store failures").

use super::damage::Loss;
use super::run::{End, Run, Session};
use super::{Failed, Flow, Perform, Queued, park};
use crate::clock;
use crate::entropy::NoEntropy;
use crate::store::{OpenError, RedbStore, StoreFault};
use messaging_machines::Machine;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How a wait ended: with the machine that was read from, or with the process.
enum Passed<M: Machine, P: Perform<M>> {
    On(Option<Box<Session<M, P>>>),
    Stopped,
}

/// How a failure ended.
pub(super) enum Recovered<M: Machine, P: Perform<M>> {
    /// The store takes writes.
    Store(Arc<RedbStore>),
    /// The same, and its machine was read from meanwhile.
    Session(Box<Session<M, P>>),
    /// The process stops.
    Stopped,
}

impl<M: Machine, P: Perform<M>> Run<M, P> {
    /// Opens and probes the store until a write commits, or the process stops. A store that is lost is given up. What only
    /// reads is served meanwhile, when the store opens and the machine can do without writing.
    ///
    /// `commits` is the counter of the last commit that was known to be durable.
    pub(super) fn recover(&mut self, fault: StoreFault, commits: u64) -> Result<Recovered<M, P>, Failed> {
        self.health.failing.store(true, Ordering::Relaxed);
        let mut fault = fault;
        let mut retry_ms = self.bounds.retry_ms;
        let mut took_effect = None;
        // An open store answers reads meanwhile, so that `/readyz` tells a full disk from a lost one.
        let mut store = self.open(commits, &mut took_effect)?;
        loop {
            self.health.full.store(fault.is_full(), Ordering::Relaxed);
            self.health.store_errors.fetch_add(1, Ordering::Relaxed);
            self.log.error("store.failing", &[("error", fault.0.into()), ("retryMs", retry_ms.into())]);
            let wait_ms = self.jittered(retry_ms)?;
            let session = self.pass(store.as_ref().ok(), wait_ms);
            self.health.reading.store(false, Ordering::Relaxed);
            let Passed::On(session) = session? else { return Ok(Recovered::Stopped) };
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
                        return Ok(session.map_or(Recovered::Store(open), Recovered::Session));
                    }
                    Err(fault) => {
                        if let Some(session) = session {
                            self.lose(*session, Loss::Renewed);
                        }
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

    /// Lets `ms` pass: what only reads is served over an open store, and everything is refused without.
    fn pass(&mut self, store: Option<&Arc<RedbStore>>, ms: u64) -> Result<Passed<M, P>, Failed> {
        let end = clock::mono().plus(ms);
        match store.and_then(|store| self.begin_reading(store)) {
            Some(Ok(mut session)) => match self.read_for(&mut session, ms) {
                Ok(Flow::Continue) => return Ok(Passed::On(Some(Box::new(session)))),
                Ok(Flow::Stop) => {
                    self.close(session);
                    return Ok(Passed::Stopped);
                }
                Err(End::Entropy(error)) => return Err(error.into()),
                Err(_) => drop(self.lose(session, Loss::Failed)),
            },
            Some(Err(End::Entropy(error))) => return Err(error.into()),
            Some(Err(_)) | None => {}
        }
        self.health.reading.store(false, Ordering::Relaxed);
        let on = self.refuse_for(end.since(clock::mono()));
        Ok(if on { Passed::On(None) } else { Passed::Stopped })
    }

    /// Opens the file; the first time that succeeds, notes whether the failed batch is there.
    fn open(
        &mut self,
        commits: u64,
        took_effect: &mut Option<bool>,
    ) -> Result<Result<Arc<RedbStore>, StoreFault>, Failed> {
        let store = match (self.reopen)() {
            Ok(store) => Ok(Arc::new(store)),
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
