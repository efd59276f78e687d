//! Reading goes on while writes fail (`messaging/1 §7`, "Store failures").

use super::damage::Loss;
use super::run::{End, Run, Session};
use super::{Flow, Perform, park};
use crate::clock;
use crate::store::{RedbStore, StoreFault};
use messaging_machines::Machine;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl<M: Machine, P: Perform<M>> Run<M, P> {
    /// Begins a machine that is told to write nothing; none when machines of this kind cannot.
    pub(super) fn begin_reading(&mut self, store: &Arc<RedbStore>) -> Option<Result<Session<M, P>, End>> {
        let told = self.perform.failing(true)?;
        let mut session = self.begin(Arc::clone(store));
        // Whoever connects from here on waits for its turn.
        self.health.reading.store(true, Ordering::Relaxed);
        let events = std::iter::once(told).chain(self.perform.resume()).collect::<Vec<_>>();
        for event in events {
            if let Err(end) = self.read_step(&mut session, |run, session| run.step(session, event)) {
                self.lose(session, Loss::Renewed);
                return Some(Err(end));
            }
        }
        Some(Ok(session))
    }

    /// Serves what only reads for `ms`.
    pub(super) fn read_for(&mut self, session: &mut Session<M, P>, ms: u64) -> Result<Flow, End> {
        let end = clock::mono().plus(ms);
        loop {
            if self.timer_due(session) {
                if self.read_step(session, Self::timer)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
                continue;
            }
            let left = end.since(self.mono);
            if left == 0 {
                return Ok(Flow::Continue);
            }
            let deadline = session.deadline().map_or(left, |at| at.since(self.mono).clamp(1, left));
            let next = park::wait(self.events.recv(), Some(Duration::from_millis(deadline.min(500))));
            let flow = match next {
                Some(Ok(queued)) => self.read_step(session, |run, session| run.take(session, queued))?,
                Some(Err(_)) => Flow::Stop,
                None => Flow::Continue,
            };
            if flow == Flow::Stop {
                return Ok(flow);
            }
        }
    }

    /// A step of a machine that may not write. One that did is ahead of its store, and given up.
    fn read_step(
        &mut self,
        session: &mut Session<M, P>,
        step: impl FnOnce(&mut Self, &mut Session<M, P>) -> Result<Flow, End>,
    ) -> Result<Flow, End> {
        let flow = step(self, session)?;
        if session.wrote() { Err(End::Store(StoreFault("wrote"))) } else { Ok(flow) }
    }
}
