//! The loop.

use super::batch::{Batch, Committer, Committing, Done};
use super::damage::{Allowance, Loss};
use super::recover::Recovered;
use super::{Bounds, Failed, Flow, Health, Perform, Queued, Reopen, Setup, park};
use crate::capture::Capture;
use crate::clock;
use crate::entropy::{Entropy, NoEntropy};
use crate::log::Log;
use crate::store::{Reader, RedbStore, StoreFault};
use async_channel::{Receiver, TryRecvError};
use futures_lite::future;
use messaging_machines::{Machine, Out, Step, Txn};
use messaging_proto::time::Mono;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A sleep is at most this long: it does not count system sleep, the machine's clock does.
const SLEEP_MAX_MS: u64 = 5_000;
/// How long a commit is put off for more events, when there are likely to be.
const LINGER: Duration = Duration::from_micros(200);
/// Batches of fewer events are not put off.
const LINGER_LEAST: usize = 6;
/// Nor are those of so many.
const LINGER_MOST: usize = 48;
/// A timer that changed nothing is not repeated sooner than this.
const SPIN_MS: u64 = 10;

pub(super) struct Run<M: Machine, P: Perform<M>> {
    pub(super) name: &'static str,
    pub(super) events: Receiver<Queued<M::Event>>,
    pub(super) perform: P,
    pub(super) reopen: Reopen,
    pub(super) build: Box<dyn FnMut() -> M + Send>,
    pub(super) bounds: Bounds,
    pub(super) log: Log,
    pub(super) health: Arc<Health>,
    pub(super) entropy: Entropy,
    committer: Committer,
    capture: Option<Capture>,
    pub(super) mono: Mono,
    /// Events in a batch, as it was of late.
    usual: usize,
    /// The open batch was waited for already.
    lingered: bool,
    pub(super) allowance: Allowance,
}

/// One machine over one open store.
pub(super) struct Session<M: Machine, P: Perform<M>> {
    machine: M,
    reader: Reader,
    store: Arc<RedbStore>,
    open: Batch<M, P>,
    committing: Option<Committing<M, P>>,
    out: Out<M::Effect>,
    /// Whether the last step wrote or said something.
    stirred: bool,
    not_before: Mono,
    last_commit: Mono,
    /// The report of what is committing came in, and it was a failure.
    failed: bool,
}

/// Why a session ended.
pub(super) enum End {
    /// The machine is done, or nobody sends events any more.
    Stopped,
    /// A new file of a capture begins, with a new machine.
    Renewed,
    Store(StoreFault),
    /// What was asked for stands on a damaged page of the store.
    Damaged(StoreFault),
    Entropy(NoEntropy),
}

impl From<NoEntropy> for End {
    fn from(error: NoEntropy) -> Self {
        Self::Entropy(error)
    }
}

impl<M: Machine, P: Perform<M>> Session<M, P> {
    /// When the machine wants a timer.
    pub(super) fn deadline(&self) -> Option<Mono> {
        self.machine.deadline().map(|(at, _)| at.max(self.not_before))
    }

    /// Whether something is written that is not durable.
    pub(super) fn wrote(&self) -> bool {
        !self.open.writes.is_empty()
    }
}

/// What a wait ended with.
enum Woken<E> {
    Done(Done),
    Event(Queued<E>),
    Orphaned,
    Time,
}

pub(super) fn run<M: Machine, P: Perform<M>>(
    setup: Setup<M, P>,
    events: Receiver<Queued<M::Event>>,
    committer: Committer,
    health: &Arc<Health>,
) -> Result<(), Failed> {
    let mut run = Run {
        name: setup.name,
        events,
        perform: setup.perform,
        reopen: setup.reopen,
        build: setup.build,
        bounds: setup.bounds,
        log: setup.log,
        health: Arc::clone(health),
        entropy: Entropy::new(),
        committer,
        capture: setup.capture,
        mono: clock::mono(),
        usual: 0,
        lingered: false,
        allowance: Allowance::default(),
    };
    let mut next = match setup.store {
        Ok(store) => Recovered::Store(Arc::new(store)),
        Err(fault) => run.recover(fault, 0)?,
    };
    loop {
        let (mut session, first) = match next {
            Recovered::Store(store) => (run.begin(store), run.perform.resume()),
            Recovered::Session(session) => (*session, run.perform.failing(false).into_iter().collect()),
            Recovered::Stopped => return Ok(()),
        };
        let fault = match run.serve(&mut session, first) {
            End::Stopped => {
                run.close(session);
                return Ok(());
            }
            End::Renewed => {
                next = Recovered::Store(Arc::clone(&session.store));
                run.lose(session, Loss::Renewed);
                continue;
            }
            End::Damaged(_) if run.passes_over() => {
                next = Recovered::Store(Arc::clone(&session.store));
                run.lose(session, Loss::Damaged);
                continue;
            }
            End::Entropy(error) => return Err(error.into()),
            End::Store(fault) | End::Damaged(fault) => fault,
        };
        // Before anybody is answered for it.
        run.health.failing.store(true, Ordering::Relaxed);
        let commits = run.lose(session, Loss::Failed);
        next = run.recover(fault, commits)?;
    }
}

impl<M: Machine, P: Perform<M>> Run<M, P> {
    pub(super) fn begin(&mut self, store: Arc<RedbStore>) -> Session<M, P> {
        self.health.set_store(Some(&store));
        let (machine, reader) = ((self.build)(), store.reader());
        if let Some(capture) = &mut self.capture {
            capture.begin(&reader);
        }
        Session {
            machine,
            reader,
            store,
            open: Batch::new(),
            committing: None,
            out: Out::new(),
            stirred: false,
            not_before: self.allowance.timers_after,
            last_commit: self.mono,
            failed: false,
        }
    }

    /// Runs a machine until it stops or its store fails, from these events on.
    fn serve(&mut self, session: &mut Session<M, P>, first: Vec<M::Event>) -> End {
        for event in first {
            let blamed = self.perform.blame(&event);
            match self.step(session, event) {
                Ok(Flow::Continue) => {}
                Ok(Flow::Stop) => return End::Stopped,
                Err(end) => {
                    session.open.receipts.extend(blamed);
                    return end;
                }
            }
        }
        loop {
            match self.turn(session) {
                Ok(Flow::Continue) => {}
                Ok(Flow::Stop) => return End::Stopped,
                Err(end) => return end,
            }
        }
    }

    /// One turn: a finished commit, a new commit, a due timer and an event; a wait when there is none of them.
    fn turn(&mut self, session: &mut Session<M, P>) -> Result<Flow, End> {
        if session.committing.is_some()
            && let Some(done) = self.committer.try_done()
            && self.committed(session, done)? == Flow::Stop
        {
            return Ok(Flow::Stop);
        }
        if self.capture.as_ref().is_some_and(Capture::full) {
            return self.renew(session);
        }
        let now_micros = clock::mono_micros();
        let full = session.open.full(&self.bounds, now_micros);
        if session.committing.is_none() && !session.open.writes.is_empty() {
            if self.events.is_empty() && !self.linger(session) {
                return self.commit_here(session);
            }
            if full {
                self.commit(session);
            }
        }
        if session.committing.is_some() && full && !session.open.writes.is_empty() {
            // The open batch may not grow; nothing can be done before the disk answers.
            let done = self.committer.wait_done();
            return self.committed(session, done);
        }
        if self.timer_due(session) && self.timer(session)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        match self.events.try_recv() {
            Ok(queued) => self.take(session, queued),
            Err(TryRecvError::Closed) if session.committing.is_none() && !session.wrote() => Ok(Flow::Stop),
            // The timer wrote. What it says waits for a commit, and no event need come before the next turn makes it.
            Err(_) if session.committing.is_none() && session.wrote() => Ok(Flow::Continue),
            Err(_) => self.wait(session),
        }
    }

    /// Ends what is open, and then the machine.
    fn renew(&mut self, session: &mut Session<M, P>) -> Result<Flow, End> {
        if session.committing.is_some() {
            let done = self.committer.wait_done();
            return self.committed(session, done);
        }
        if session.open.writes.is_empty() { Err(End::Renewed) } else { self.commit_here(session) }
    }

    /// Waits a moment for more when the batches before this one were large, so that there is more to come: the sync
    /// is what costs, and senders that wait for their acks send again when they have them. Whether more came.
    fn linger(&mut self, session: &mut Session<M, P>) -> bool {
        let events = session.open.events();
        if self.lingered || events >= self.usual.min(LINGER_MOST) || self.usual < LINGER_LEAST {
            return false;
        }
        self.lingered = true;
        // Senders that find nobody waiting need not wake anybody.
        std::thread::sleep(LINGER);
        !self.events.is_empty()
    }

    /// Commits the open batch on this thread: there is nothing else to do, and handing it over would cost a lone
    /// sender two switches of threads.
    fn commit_here(&mut self, session: &mut Session<M, P>) -> Result<Flow, End> {
        self.count(session);
        let Batch { writes, effects, receipts, .. } = std::mem::replace(&mut session.open, Batch::new());
        let done = Done::of(&session.store, &writes);
        session.committing = Some(Committing { writes: Arc::new(writes), effects, receipts });
        self.committed(session, done)
    }

    /// Remembers how large batches are of late, and what is in this one.
    fn count(&mut self, session: &Session<M, P>) {
        if let Some(capture) = &mut self.capture {
            capture.batch(&session.open.writes);
        }
        self.lingered = false;
        self.usual = (self.usual * 3 + session.open.events()).div_ceil(4);
    }

    /// Starts the commit of the open batch on the other thread, while more events are taken.
    fn commit(&mut self, session: &mut Session<M, P>) {
        self.count(session);
        let Batch { writes, effects, receipts, .. } = std::mem::replace(&mut session.open, Batch::new());
        let writes = Arc::new(writes);
        self.committer.start(&session.store, &writes);
        session.committing = Some(Committing { writes, effects, receipts });
    }

    fn committed(&mut self, session: &mut Session<M, P>, done: Done) -> Result<Flow, End> {
        if let Some(capture) = &mut self.capture {
            capture.done(done.result.is_ok());
        }
        done.result.map_err(|fault| {
            session.failed = true;
            End::Store(fault)
        })?;
        self.health.commits.add(done.micros);
        self.health.writes.fetch_add(done.rows, Ordering::Relaxed);
        session.last_commit = self.mono;
        let Some(batch) = session.committing.take() else { return Ok(Flow::Continue) };
        session.store.absorb(|| Arc::unwrap_or_clone(batch.writes));
        session.reader.refresh();
        if self.say(batch.effects) == Flow::Stop {
            return Ok(Flow::Stop);
        }
        if session.open.writes.is_empty() {
            // Steps that only read waited for the batch before them.
            let waiting = std::mem::replace(&mut session.open, Batch::new());
            return Ok(self.say(waiting.effects));
        }
        Ok(Flow::Continue)
    }

    pub(super) fn take(
        &mut self,
        session: &mut Session<M, P>,
        queued: Queued<M::Event>,
    ) -> Result<Flow, End> {
        self.health.delay.add(clock::mono_micros().saturating_sub(queued.at_micros));
        self.step(session, queued.event)
    }

    pub(super) fn step(&mut self, session: &mut Session<M, P>, event: M::Event) -> Result<Flow, End> {
        self.mono = self.mono.max(clock::mono());
        let step = Step::new(self.mono, clock::wall(), self.entropy.draw()?);
        let receipt = self.perform.receipt(&event);
        if let Some(capture) = &mut self.capture {
            capture.event::<M>(&step, &event);
        }
        let before = session.open.writes.bytes();
        let committing = session.committing.as_ref().map(|batch| &*batch.writes);
        let mut txn = Txn::new(&session.reader, committing, &mut session.open.writes);
        let handled = session.machine.handle(&step, event, &mut txn, &mut session.out);
        let effects = session.out.take();
        if let Some(capture) = &mut self.capture {
            capture.effects::<M>(handled.is_ok(), &effects);
        }
        session.stirred = !effects.is_empty() || session.open.writes.bytes() != before;
        if session.committing.is_none() && session.open.writes.is_empty() && handled.is_ok() {
            return Ok(self.say(effects));
        }
        session.open.add(effects, receipt, clock::mono_micros());
        match handled {
            Ok(()) => Ok(Flow::Continue),
            Err(_) => Err(match session.reader.fault().unwrap_or(StoreFault("read")) {
                fault if fault.is_damage() => End::Damaged(fault),
                fault => End::Store(fault),
            }),
        }
    }

    fn say(&mut self, effects: Vec<M::Effect>) -> Flow {
        if effects.is_empty() {
            return Flow::Continue;
        }
        for effect in effects {
            if self.perform.perform(effect) == Flow::Stop {
                self.perform.flush();
                return Flow::Stop;
            }
        }
        self.perform.flush();
        Flow::Continue
    }

    pub(super) fn timer_due(&mut self, session: &Session<M, P>) -> bool {
        self.mono = self.mono.max(clock::mono());
        session.deadline().is_some_and(|at| at <= self.mono)
    }

    /// Tells the machine that its deadline passed. It owes progress: a later deadline, or something said or written.
    /// A machine that breaks this must not spin.
    pub(super) fn timer(&mut self, session: &mut Session<M, P>) -> Result<Flow, End> {
        let due = session.machine.deadline();
        let flow = self.step(session, M::timer_event()).inspect_err(|end| self.hold_timers(end))?;
        let stuck = session.machine.deadline().is_some_and(|(at, _)| at <= self.mono);
        if stuck && !session.stirred {
            // Which timer: a closed enum and a time, so nothing a peer wrote.
            let which = format!("{due:?} then {:?} at {:?}", session.machine.deadline(), self.mono);
            self.log.error("driver.stuck", &[("machine", self.name.into()), ("timer", which.into())]);
            debug_assert!(false, "no progress after {due:?}");
            session.not_before = self.mono.plus(SPIN_MS);
        }
        Ok(flow)
    }

    /// Waits for a commit, an event or a deadline.
    fn wait(&mut self, session: &mut Session<M, P>) -> Result<Flow, End> {
        let committing = session.committing.is_some();
        let idle = !committing && session.open.writes.is_empty();
        let settle =
            (idle && session.store.unsettled()).then(|| session.last_commit.plus(self.bounds.settle_ms));
        let next = [settle, session.deadline()].into_iter().flatten().min();
        let sleep_ms = next.map(|at| at.since(self.mono).clamp(1, SLEEP_MAX_MS));
        let done = async {
            if committing { Woken::Done(self.committer.done().await) } else { future::pending().await }
        };
        let event = async {
            match self.events.recv().await {
                Ok(queued) => Woken::Event(queued),
                // What is committing is still said.
                Err(_) if committing => future::pending().await,
                Err(_) => Woken::Orphaned,
            }
        };
        let woken =
            park::wait(future::or(done, event), sleep_ms.map(Duration::from_millis)).unwrap_or(Woken::Time);
        match woken {
            Woken::Done(done) => self.committed(session, done),
            Woken::Event(queued) => self.take(session, queued),
            Woken::Orphaned => Ok(Flow::Stop),
            Woken::Time => {
                self.mono = self.mono.max(clock::mono());
                if settle.is_some_and(|at| at <= self.mono) {
                    session.store.settle().map_err(End::Store)?;
                    session.reader.refresh();
                }
                Ok(Flow::Continue)
            }
        }
    }

    /// Makes durable what is still open and closes the store.
    pub(super) fn close(&mut self, session: Session<M, P>) {
        let Session { machine, reader, store, open, committing, .. } = session;
        drop((machine, reader));
        self.health.set_store(None);
        let mut result = match committing {
            Some(_) => self.committer.wait_done().result,
            None => Ok(()),
        };
        if result.is_ok() && !open.writes.is_empty() {
            result = store.commit(&open.writes);
        }
        if let Some(capture) = &mut self.capture {
            capture.end(&open.writes, result.is_ok());
        }
        self.health.closed.store(true, Ordering::Relaxed);
        let result = result.and_then(|()| Arc::into_inner(store).map_or(Ok(()), RedbStore::close));
        if let Err(fault) = result {
            self.log.error("store.close_failed", &[("error", fault.0.into())]);
        }
    }

    /// Drops the machine and both batches, and hands the adapter what nobody will answer. The counter of the last
    /// commit that is known to be durable.
    pub(super) fn lose(&mut self, session: Session<M, P>, loss: Loss) -> u64 {
        let Session { machine, reader, store, open, committing, failed, .. } = session;
        drop((machine, reader));
        self.health.set_store(None);
        let (mut lost, mut unsaid) = (Vec::new(), Vec::new());
        if let Some(batch) = committing {
            // A read failed while this one was on its way; it may still arrive.
            let durable = !failed && self.committer.wait_done().result.is_ok();
            if let Some(capture) = self.capture.as_mut().filter(|_| !failed) {
                capture.done(durable);
            }
            if durable {
                self.say(batch.effects);
            } else {
                lost.extend(batch.receipts);
                unsaid.extend(batch.effects);
            }
        }
        lost.extend(open.receipts);
        unsaid.extend(open.effects);
        let commits = store.commits();
        drop(store);
        if let Some(capture) = &mut self.capture {
            capture.lost();
        }
        match loss {
            Loss::Renewed => self.perform.renew(),
            Loss::Failed => self.perform.reset(lost, unsaid),
            Loss::Damaged => self.perform.damaged(lost, unsaid),
        }
        self.perform.flush();
        commits
    }
}
