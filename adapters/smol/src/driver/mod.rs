//! Feeds a machine and keeps its promises (`machines::machine`, "What a driver owes").
//!
//! A machine runs on a thread of its own; a second thread commits. Events queue in a bounded channel.
//!
//! ```text
//!   adapters ──events──▶ step, step, step ──writes──▶ commit ──done──▶ effects ──▶ adapters
//!                        (the open batch)             (the committing one)
//! ```
//!
//! While one batch commits, the next accumulates: its steps read through both. So one sync serves everything that
//! arrived during the one before it, and a lone event waits for one sync only (which then runs on the machine's own
//! thread). Effects leave strictly in the order
//! of their steps, each batch after its commit; a step that wrote nothing while nothing is open or committing says
//! its effects at once.
//!
//! # When the store fails
//!
//! A commit that failed may be there or not, and redb's handle is dead either way. The driver then drops the
//! machine, both batches and their effects: nobody was told. It hands the adapter what it took but never answered
//! ([`Perform::reset`]), refuses what arrives meanwhile ([`Perform::refuse`]), opens the file again and probes it
//! with a small write, after 1 s and doubling to a minute with jitter. When a probe commits it builds a new machine
//! over the store and tells it what outlived the old one ([`Perform::resume`]). A machine that can do without writing
//! ([`Perform::failing`]) is built at once, and answers meanwhile what only reads.
//!
//! A page that is damaged for good fails whoever asks for what stands on it, again and again. A machine that can be told
//! so ([`Perform::passes_over_damage`]) is built anew at once over the same open store, and the store counts as whole: one
//! broken page is not a minute of `internal` for everybody.

mod batch;
mod damage;
mod health;
mod park;
mod reading;
mod recover;
mod run;
#[cfg(test)]
mod tests;

pub use health::{COMMIT_BUCKETS_MICROS, Health, Histogram};

use crate::capture::Capture;
use crate::clock;
use crate::entropy::NoEntropy;
use crate::log::Log;
use crate::store::{OpenError, RedbStore, StoreFault};
use messaging_machines::Machine;
use std::sync::Arc;
use std::thread::JoinHandle;

/// What an adapter does with effects, and with events that no machine will answer. On the driver's thread: nothing
/// here may block.
pub trait Perform<M: Machine>: Send + 'static {
    /// What it takes to answer an event whose batch failed.
    type Receipt: Send;

    /// Notes an event before the machine takes it. Nothing for events that need no answer.
    fn receipt(&mut self, event: &M::Event) -> Option<Self::Receipt>;

    /// Does an effect whose step is durable.
    fn perform(&mut self, effect: M::Effect) -> Flow;

    /// Called once after a run of effects.
    fn flush(&mut self) {}

    /// The machine is gone. `lost` are the events it took in batches that are not known to be durable, in order;
    /// `unsaid` the effects nobody saw. Peers are told "try again", never "not done".
    fn reset(&mut self, lost: Vec<Self::Receipt>, unsaid: Vec<M::Effect>);

    /// The machine is gone although nothing failed: another takes its place at once, over the same rows. Nothing was
    /// lost, and nothing is unsaid.
    fn renew(&mut self) {
        self.reset(Vec::new(), Vec::new());
    }

    /// Whether a machine of this kind may be given up and built anew, at once, when what it asked for stands on a damaged
    /// page of the store: whatever else is in it is served on. Otherwise that is a failure as any other.
    fn passes_over_damage(&self) -> bool {
        false
    }

    /// As [`Perform::reset`], for a machine that met a damaged page. The store takes writes.
    fn damaged(&mut self, lost: Vec<Self::Receipt>, unsaid: Vec<M::Effect>) {
        self.reset(lost, unsaid);
    }

    /// What is lost with one of the first events of a machine ([`Perform::resume`]) that met a damaged page, so that the
    /// next machine does not meet it for the same reason.
    fn blame(&self, _event: &M::Event) -> Option<Self::Receipt> {
        None
    }

    /// An event arrived while there is no machine.
    fn refuse(&mut self, event: M::Event);

    /// The first events of a new machine: that it starts, and what is still open from before.
    fn resume(&mut self) -> Vec<M::Event>;

    /// What tells a machine that the store takes no writes, or takes them again. Nothing when machines of this kind cannot
    /// go on without writing: then there is none while the store fails.
    fn failing(&mut self, _failing: bool) -> Option<M::Event> {
        None
    }
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// The machine is done: commit what is open, close the store and end.
    Stop,
}

/// How much one batch may gather, and how patiently a failing store is tried again.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Events in a batch.
    pub events: usize,
    /// Bytes written by a batch.
    pub bytes: usize,
    /// Age of a batch before its commit begins, in microseconds.
    pub age_micros: u64,
    /// Events waiting for the machine; senders wait beyond that.
    pub queue: usize,
    /// Time without load before the store is settled, in milliseconds.
    pub settle_ms: u64,
    /// The first wait before a failing store is tried again, in milliseconds.
    pub retry_ms: u64,
    /// The longest such wait.
    pub retry_max_ms: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            events: 256,
            bytes: 1 << 20,
            age_micros: 5_000,
            queue: 1_024,
            settle_ms: 2_000,
            retry_ms: 1_000,
            retry_max_ms: 60_000,
        }
    }
}

/// Opens the store again.
pub type Reopen = Box<dyn FnMut() -> Result<RedbStore, OpenError> + Send>;

/// Everything a driver needs.
pub struct Setup<M: Machine, P> {
    /// The names of its threads and what its log lines are about, such as `relay`.
    pub name: &'static str,
    /// The store, opened once already; or why it could not be written, when that is no reason not to start: the driver
    /// then begins as after a failure (`messaging/1 §7`, "Store failures").
    pub store: Result<RedbStore, StoreFault>,
    /// Opens it again after a failure.
    pub reopen: Reopen,
    /// Builds a machine over whatever the store holds.
    pub build: Box<dyn FnMut() -> M + Send>,
    /// Does what machines say.
    pub perform: P,
    /// Sizes.
    pub bounds: Bounds,
    /// Log lines of the driver itself.
    pub log: Log,
    /// Where everything the machine is given and says is kept, if anywhere. `build` says what each machine is built from.
    pub capture: Option<Capture>,
    /// Called when its thread ends, however it does.
    pub ended: Box<dyn FnOnce() + Send>,
}

/// An event and when it was queued.
struct Queued<E> {
    at_micros: u64,
    event: E,
}

/// Where adapters put events. Clones share one queue.
pub struct Events<E>(async_channel::Sender<Queued<E>>);

impl<E> Clone for Events<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E> Events<E> {
    /// Queues an event, waiting for room. Whether the driver still runs.
    pub async fn send(&self, event: E) -> bool {
        self.0.send(Queued { at_micros: clock::mono_micros(), event }).await.is_ok()
    }

    /// Queues an event, blocking this thread while there is no room. Whether the driver still runs.
    pub fn send_blocking(&self, event: E) -> bool {
        self.0.send_blocking(Queued { at_micros: clock::mono_micros(), event }).is_ok()
    }
}

/// A running driver.
pub struct Driver<E> {
    /// Where its events go.
    pub events: Events<E>,
    /// How its store is, and what it measured.
    pub health: Arc<Health>,
    thread: JoinHandle<Result<(), Failed>>,
}

/// Why a driver ended before it was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// The operating system gave no randomness.
    #[error(transparent)]
    Entropy(#[from] NoEntropy),
    /// A thread could not be started.
    #[error("a thread could not be started")]
    Thread,
    /// The store is damaged or gone: opening it again and again would not help.
    #[error("the store is lost: {0}")]
    Store(StoreFault),
    /// The machine panicked.
    #[error("the machine failed")]
    Panicked,
}

/// Calls back when dropped, so also when the thread panics.
struct OnEnd(Option<Box<dyn FnOnce() + Send>>);

impl Drop for OnEnd {
    fn drop(&mut self) {
        if let Some(ended) = self.0.take() {
            ended();
        }
    }
}

impl<E: Send + 'static> Driver<E> {
    /// Starts the driver's threads.
    ///
    /// # Errors
    /// [`Failed::Thread`].
    pub fn spawn<M, P>(setup: Setup<M, P>) -> Result<Self, Failed>
    where
        M: Machine<Event = E> + 'static,
        P: Perform<M>,
    {
        let (sender, events) = async_channel::bounded(setup.bounds.queue);
        let health = Arc::new(Health::default());
        let committer = batch::Committer::spawn(setup.name).map_err(|_| Failed::Thread)?;
        let for_thread = Arc::clone(&health);
        let thread = std::thread::Builder::new()
            .name(setup.name.to_owned())
            .spawn(move || {
                let mut setup = setup;
                let _ended = OnEnd(Some(std::mem::replace(&mut setup.ended, Box::new(|| {}))));
                run::run(setup, events, committer, &for_thread)
            })
            .map_err(|_| Failed::Thread)?;
        Ok(Self { events: Events(sender), health, thread })
    }

    /// Waits until the machine stopped.
    ///
    /// # Errors
    /// Why it ended otherwise.
    pub fn join(self) -> Result<(), Failed> {
        drop(self.events);
        self.thread.join().map_err(|_| Failed::Panicked)?
    }
}
