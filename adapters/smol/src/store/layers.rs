//! What readers and the checkpoint share: redb, and what the journal holds on top of it.

use super::{COMMITS, META, StoreFault, table};
use messaging_machines::store::{Table, Writes};
use redb::Database;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;

/// Rows that are durable in the journal and not in redb, the newer ones first.
#[derive(Debug, Default)]
pub(super) struct Layers {
    pub(super) active: Writes,
    /// On its way into redb.
    pub(super) frozen: Option<Arc<Writes>>,
    /// Changes whenever redb and `frozen` do: what was read of one belongs to what was read of the other.
    pub(super) generation: u64,
}

pub(super) struct Inner {
    pub(super) db: Database,
    layers: RwLock<Layers>,
    /// Why this store is of no more use.
    fault: Mutex<Option<StoreFault>>,
    /// redb's last commit saved no allocator state.
    pub(super) unsettled: AtomicBool,
}

impl Inner {
    pub(super) fn new(db: Database) -> Self {
        Self { db, layers: RwLock::default(), fault: Mutex::new(None), unsettled: AtomicBool::new(true) }
    }

    pub(super) fn layers(&self) -> RwLockReadGuard<'_, Layers> {
        self.layers.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn layers_mut(&self) -> RwLockWriteGuard<'_, Layers> {
        self.layers.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fault(&self) -> Option<StoreFault> {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why this store is of no more use; the first reason counts.
    pub(super) fn fail(&self, fault: StoreFault) {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
    }

    /// Puts rows into redb with the number of the last commit in them, synced.
    pub(super) fn write<'a>(
        &self,
        rows: impl Iterator<Item = (Table, &'a [u8], Option<&'a [u8]>)>,
        number: u64,
        quick_repair: bool,
    ) -> Result<(), StoreFault> {
        let mut txn = self.db.begin_write()?;
        txn.set_quick_repair(quick_repair);
        let mut rows = rows.peekable();
        while let Some((current, _, _)) = rows.peek().copied() {
            let mut open = txn.open_table(table(current))?;
            while let Some((_, key, value)) = rows.next_if(|(table, _, _)| *table == current) {
                match value {
                    Some(value) => drop(open.insert(key, value)?),
                    None => drop(open.remove(key)?),
                }
            }
        }
        txn.open_table(table(META))?.insert(COMMITS, number.to_be_bytes().as_slice())?;
        txn.commit()?;
        self.unsettled.store(!quick_repair, Ordering::Relaxed);
        Ok(())
    }

    /// Freezes what the journal holds, to be put into redb.
    fn freeze(&self) -> Arc<Writes> {
        let mut layers = self.layers_mut();
        let frozen = Arc::new(std::mem::take(&mut layers.active));
        layers.frozen = Some(Arc::clone(&frozen));
        layers.generation += 1;
        frozen
    }

    fn checkpoint(&self, frozen: &Writes, number: u64) {
        match self.write(frozen.iter(), number, true) {
            Ok(()) => {
                let mut layers = self.layers_mut();
                layers.frozen = None;
                layers.generation += 1;
            }
            Err(fault) => self.fail(fault),
        }
    }
}

/// The thread that puts what the journal held into redb, one checkpoint at a time. It is waited for when dropped, so that
/// the file is free then.
///
/// It is one thread for all of them: memory that a thread took is given back piece by piece after the thread ended.
#[derive(Default)]
pub(super) struct Checkpoint(Mutex<Option<Worker>>);

struct Worker {
    jobs: Sender<Job>,
    /// One word for each job that is done.
    done: Receiver<()>,
    busy: bool,
    thread: JoinHandle<()>,
}

struct Job {
    inner: Arc<Inner>,
    frozen: Arc<Writes>,
    number: u64,
}

impl Worker {
    fn spawn() -> std::io::Result<Self> {
        let (jobs, given) = channel::<Job>();
        let (finished, done) = channel();
        let thread = std::thread::Builder::new().name("checkpoint".to_owned()).spawn(move || {
            for job in given {
                job.inner.checkpoint(&job.frozen, job.number);
                // Before the word: who waits for it may close the file.
                drop(job);
                if finished.send(()).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { jobs, done, busy: false, thread })
    }

    /// Waits for the job under way; whether there can be another. A thread that panicked leaves its rows frozen and the
    /// journal as it is.
    fn wait(&mut self) -> bool {
        !std::mem::take(&mut self.busy) || self.done.recv().is_ok()
    }

    fn end(self) {
        drop(self.jobs);
        // What it panicked with was told on the way.
        let _ = self.thread.join();
    }
}

impl Checkpoint {
    fn worker(&self) -> MutexGuard<'_, Option<Worker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts everything up to `number` into redb while more is committed.
    pub(super) fn start(&self, inner: &Arc<Inner>, number: u64) {
        self.wait();
        let mut worker = self.worker();
        if worker.is_none() {
            *worker = Worker::spawn().ok();
        }
        let job = Job { inner: Arc::clone(inner), frozen: inner.freeze(), number };
        let given = worker.as_mut().is_some_and(|worker| {
            worker.busy = worker.jobs.send(job).is_ok();
            worker.busy
        });
        if !given {
            inner.fail(StoreFault("thread"));
        }
    }

    /// Waits until none is running.
    pub(super) fn wait(&self) {
        let mut worker = self.worker();
        if let Some(ended) = worker.take_if(|worker| !worker.wait()) {
            ended.end();
        }
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        self.wait();
        if let Some(worker) = self.worker().take() {
            worker.end();
        }
    }
}
