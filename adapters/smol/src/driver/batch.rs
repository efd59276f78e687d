//! One group commit: what its steps wrote and what they will say once that is durable.

use super::{Bounds, Perform};
use crate::clock;
use crate::store::{RedbStore, StoreFault};
use messaging_machines::{Machine, Writes};
use std::sync::Arc;

/// Steps that become durable together.
pub(super) struct Batch<M: Machine, P: Perform<M>> {
    pub(super) writes: Writes,
    pub(super) effects: Vec<M::Effect>,
    pub(super) receipts: Vec<P::Receipt>,
    events: usize,
    /// When its first write was made.
    opened_micros: u64,
}

impl<M: Machine, P: Perform<M>> Batch<M, P> {
    pub(super) const fn new() -> Self {
        Self { writes: Writes::new(), effects: Vec::new(), receipts: Vec::new(), events: 0, opened_micros: 0 }
    }

    /// Counts a step whose effects wait here.
    pub(super) fn add(&mut self, effects: Vec<M::Effect>, receipt: Option<P::Receipt>, now_micros: u64) {
        if self.events == 0 {
            self.opened_micros = now_micros;
        }
        self.events += 1;
        self.effects.extend(effects);
        self.receipts.extend(receipt);
    }

    /// How many steps wait here.
    pub(super) const fn events(&self) -> usize {
        self.events
    }

    /// Whether it must not grow any more.
    pub(super) fn full(&self, bounds: &Bounds, now_micros: u64) -> bool {
        self.events >= bounds.events
            || self.writes.bytes() >= bounds.bytes
            || (self.events > 0 && now_micros.saturating_sub(self.opened_micros) >= bounds.age_micros)
    }
}

/// A batch on its way to the disk.
pub(super) struct Committing<M: Machine, P: Perform<M>> {
    pub(super) writes: Arc<Writes>,
    pub(super) effects: Vec<M::Effect>,
    pub(super) receipts: Vec<P::Receipt>,
}

struct Job {
    store: Arc<RedbStore>,
    writes: Arc<Writes>,
}

/// How a commit went.
pub(super) struct Done {
    pub(super) result: Result<(), StoreFault>,
    pub(super) micros: u64,
    pub(super) rows: u64,
}

impl Done {
    /// Commits a batch.
    pub(super) fn of(store: &RedbStore, writes: &Writes) -> Self {
        let start = clock::mono_micros();
        let result = store.log(writes);
        let rows = writes.iter().count() as u64;
        Self { result, micros: clock::mono_micros().saturating_sub(start), rows }
    }
}

/// The thread that commits. Holds no store between jobs.
pub(super) struct Committer {
    jobs: async_channel::Sender<Job>,
    done: async_channel::Receiver<Done>,
}

impl Committer {
    pub(super) fn spawn(name: &str) -> std::io::Result<Self> {
        let (jobs, to_do) = async_channel::bounded::<Job>(1);
        let (report, done) = async_channel::bounded(1);
        std::thread::Builder::new().name(format!("{name}-commit")).spawn(move || {
            while let Ok(job) = to_do.recv_blocking() {
                let done = Done::of(&job.store, &job.writes);
                // Reopening needs every handle gone before the failure is known.
                drop(job);
                if report.send_blocking(done).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { jobs, done })
    }

    /// Starts a commit. One at a time, so there is always room.
    pub(super) fn start(&self, store: &Arc<RedbStore>, writes: &Arc<Writes>) {
        // A committer that is gone shows when its report is awaited.
        let _ = self.jobs.try_send(Job { store: Arc::clone(store), writes: Arc::clone(writes) });
    }

    /// The report, if it is there.
    pub(super) fn try_done(&self) -> Option<Done> {
        match self.done.try_recv() {
            Ok(done) => Some(done),
            Err(async_channel::TryRecvError::Empty) => None,
            Err(async_channel::TryRecvError::Closed) => Some(Self::gone()),
        }
    }

    /// The report.
    pub(super) async fn done(&self) -> Done {
        self.done.recv().await.unwrap_or_else(|_| Self::gone())
    }

    /// The report, blocking this thread.
    pub(super) fn wait_done(&self) -> Done {
        self.done.recv_blocking().unwrap_or_else(|_| Self::gone())
    }

    fn gone() -> Done {
        Done { result: Err(StoreFault("committer")), micros: 0, rows: 0 }
    }
}
