//! The daemon's sockets, files, threads and driver, from its home to its last line.

use super::keep::{Keeper, Kept};
use super::lock::{Lock, LockError};
use super::perform::{Performer, Shared, Wired};
use super::snapshot::Copier;
use super::sockets::{self, Sockets};
use super::{DaemonOptions, ipc};
use crate::capture::Capture;
use crate::client::{Hello, IPC_PROTOCOL};
use crate::driver::{Bounds, Driver, Events, Failed, Health, Setup};
use crate::home::{HomeError, private_directory};
use crate::log::Log;
use crate::store::{Location, OpenError, Options, RedbStore, Refusal, Schema, StoreFault};
use async_executor::{Executor, Task};
use async_io::{Async, Timer, block_on};
use messaging_machines::Machine;
use messaging_machines::capture::{DaemonOrigin, Origin};
use messaging_machines::daemon::io::{Effect, Event, IpcId, Tier};
use messaging_machines::daemon::{Config, Daemon, schema};
use messaging_proto::Code;
use messaging_proto::identity::Identity;
use std::collections::BTreeSet;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Bytes of the store's page cache.
const CACHE_BYTES: usize = 32 << 20;
/// How long a stopped daemon waits for its sockets to take its last lines.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
const WORKERS: usize = 2;

/// Why the daemon did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store is not ours to open: exit 78.
    #[error("store_refused: {}", .0.as_str())]
    Refused(Refusal),
    /// Anything else: exit 1.
    #[error("{code}: {text}")]
    Failed {
        /// `forbidden`, `invalid_state`, `invalid_request` or `internal`.
        code: Code,
        /// What, and what to do.
        text: String,
    },
}

impl StartError {
    fn failed(code: Code, error: &impl ToString) -> Self {
        Self::Failed { code, text: error.to_string() }
    }
}

impl From<HomeError> for StartError {
    fn from(error: HomeError) -> Self {
        Self::failed(error.code(), &error)
    }
}

/// A daemon that serves.
pub struct Running {
    shared: Arc<Shared>,
    health: Arc<Health>,
    events: Events<Event>,
    driver: Driver<Event>,
    keeper: Keeper,
    copier: Copier,
    sockets: sockets::SocketFiles,
    accepting: Vec<Task<()>>,
    stop: async_channel::Sender<()>,
    workers: Vec<std::thread::JoinHandle<()>>,
    lock: Lock,
}

/// Starts the daemon in its home. `log` makes the log once the home is known to be ours; `ended` is called when the
/// machine's thread ends, which is how a daemon that was told to stop over its API ends.
///
/// Sets the process's umask to 077: nothing it makes is anybody else's, whatever umask it was started with.
///
/// # Errors
/// Why it did not start.
pub fn start(
    options: &DaemonOptions,
    log: impl FnOnce(&DaemonOptions) -> std::io::Result<Log>,
    ended: Box<dyn FnOnce() + Send>,
) -> Result<Running, StartError> {
    start_with(options, Location::new(&options.home.store()), log, ended, Daemon::new)
}

/// Starts a daemon around any machine that speaks its events and effects, over a store that tests can make fail.
pub(super) fn start_with<M, B>(
    options: &DaemonOptions,
    location: Location,
    log: impl FnOnce(&DaemonOptions) -> std::io::Result<Log>,
    ended: Box<dyn FnOnce() + Send>,
    build: B,
) -> Result<Running, StartError>
where
    M: Machine<Event = Event, Effect = Effect> + 'static,
    B: Fn(Config, Option<Identity>, Option<Identity>) -> M + Send + 'static,
{
    let internal = |error: std::io::Error| StartError::failed(Code::Internal, &error);
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let home = &options.home;
    // A shared home stays searchable for its group until the configuration is known.
    prepare(home.path())?;
    prepare(&home.run())?;
    let lock = Lock::take(home).map_err(|error| match &error {
        LockError::Held(_) => StartError::failed(Code::InvalidState, &error),
        LockError::Io(_) => StartError::failed(Code::Internal, &error),
    })?;
    // The store is checked before anything else in the home is read (§8.8).
    let store = RedbStore::open_guarded(&location, Schema::CURRENT, STORE).map_err(|error| match error {
        OpenError::Refused(reason) => StartError::Refused(reason),
        OpenError::Busy => StartError::failed(Code::InvalidState, &"another process has the store open"),
        OpenError::Lost(fault) => StartError::failed(Code::Internal, &lost(fault)),
        OpenError::Fault(fault) => StartError::failed(Code::Internal, &format!("messaging.db: {fault}")),
    })?;
    let reopen = move || {
        RedbStore::reopen_guarded(&location, Schema::CURRENT, STORE).map_err(|error| match error {
            // Somebody put another file in its place.
            OpenError::Refused(reason) => OpenError::Lost(StoreFault(reason.as_str())),
            error => error,
        })
    };
    private_directory(&home.logs(), 0o700)?;
    let log = log(options).map_err(internal)?;
    let kept = Arc::new(Kept::load(home, &log).map_err(|error| StartError::failed(error.code, &error))?);
    let group = kept.settings().agent_group().and_then(|group| u32::try_from(group).ok());
    sockets::share(home, group)?;
    let Sockets { agent, admin, files } = sockets::listen(home, group)?;
    let pid = std::process::id();
    let capture =
        options.capture.clone().map(|capture| Capture::open(capture, schema::TABLES, &log)).transpose();
    let capture =
        capture.map_err(|error| StartError::failed(Code::Internal, &format!("capture: {error}")))?;
    let built = capture.as_ref().map(Capture::built);
    let shared = Arc::new(Shared {
        ipc: ipc::Ipc::default(),
        links: super::link::Links::default(),
        log: log.clone(),
        wired: OnceLock::new(),
    });
    let executor = Arc::new(Executor::new());
    let hello = Hello { version: options.version.clone(), protocol: IPC_PROTOCOL, pid, deployment: None };
    let (version, for_build) = (options.version.clone(), Arc::clone(&kept));
    let (begin, begun) = std::sync::mpsc::channel::<()>();
    let driver = Driver::spawn(Setup::<M, _> {
        name: "daemon",
        store: Ok(store),
        reopen: Box::new(reopen),
        build: Box::new(move || {
            // The first machine waits until its effects have somewhere to go.
            let _ = begun.recv();
            let parts = for_build.parts();
            if let Some(built) = &built {
                built.note(Origin::Daemon(Box::new(DaemonOrigin {
                    settings: parts.settings.to_text(),
                    version: version.clone(),
                    pid,
                    identity: parts.identity.as_ref().map(Identity::export),
                    pairing: parts.pairing.as_ref().map(Identity::export),
                })));
            }
            build(
                Config { settings: parts.settings, version: version.clone(), pid },
                parts.identity,
                parts.pairing,
            )
        }),
        perform: Performer {
            shared: Arc::clone(&shared),
            executor: Arc::clone(&executor),
            sockets: files.clone(),
            hello,
            dirty: Vec::new(),
            told: BTreeSet::new(),
        },
        bounds: Bounds::default(),
        log: log.clone(),
        capture,
        ended,
    })
    .map_err(|error| StartError::failed(Code::Internal, &error))?;
    let (keeper, saves) = Keeper::spawn(&kept, driver.events.clone(), &log).map_err(internal)?;
    let events = driver.events.clone();
    let copier = Copier::spawn(home, &driver.health, events.clone(), &log).map_err(internal)?;
    let snapshots = copier.snapshots();
    let _ = shared.wired.set(Wired {
        events: events.clone(),
        saves,
        snapshots,
        health: Arc::clone(&driver.health),
    });
    drop(begin);
    let ids = Arc::new(AtomicU64::new(1));
    let accepting = [(Tier::Agent, agent), (Tier::Admin, admin)]
        .into_iter()
        .map(|(tier, listener)| {
            let accept = accept(Arc::clone(&shared), Arc::clone(&executor), tier, listener, Arc::clone(&ids));
            executor.spawn(accept)
        })
        .collect();
    let (stop, stopped) = async_channel::bounded(1);
    let workers = (0..WORKERS)
        .map(|_| {
            let (executor, stopped) = (Arc::clone(&executor), stopped.clone());
            let work = move || {
                // Ends when the channel closes.
                let _ = block_on(executor.run(stopped.recv()));
            };
            std::thread::Builder::new().name("daemon-io".to_owned()).spawn(work)
        })
        .collect::<Result<_, _>>()
        .map_err(internal)?;
    let health = Arc::clone(&driver.health);
    Ok(Running {
        shared,
        health,
        events,
        driver,
        keeper,
        copier,
        sockets: files,
        accepting,
        stop,
        workers,
        lock,
    })
}

/// What to do about a store that is damaged or gone.
pub(super) fn lost(fault: StoreFault) -> String {
    format!(
        "messaging.db: {fault}; it was left as it is: put it back from a snapshot (docs/backup.md), or move the home \
         aside and set it up again"
    )
}

/// One sync a commit: a daemon's store is small, so that the walk after a crash is short.
const STORE: Options = Options { cache_bytes: CACHE_BYTES, quick_repair: false, journal: None };

/// Makes a directory, or checks the one that is there and leaves its mode to [`sockets::share`].
fn prepare(path: &std::path::Path) -> Result<(), HomeError> {
    match crate::home::check_directory(path, crate::home::Owner::me()) {
        Err(HomeError::Missing(_)) => private_directory(path, 0o700),
        checked => checked,
    }
}

async fn accept(
    shared: Arc<Shared>,
    executor: Arc<Executor<'static>>,
    tier: Tier,
    listener: UnixListener,
    ids: Arc<AtomicU64>,
) {
    let Ok(listener) = Async::new(listener) else { return };
    let Some(events) = shared.wired.get().map(|wired| wired.events.clone()) else { return };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let id = IpcId(ids.fetch_add(1, Ordering::Relaxed));
                let (shared, events) = (Arc::clone(&shared), events.clone());
                executor
                    .spawn(async move { ipc::serve(&shared.ipc, id, tier, stream, events).await })
                    .detach();
            }
            Err(error) => {
                // Out of file descriptors, most likely: connections that close make room.
                shared.log.warn("ipc.accept_failed", &[("error", format!("{:?}", error.kind()).into())]);
                Timer::after(Duration::from_millis(100)).await;
            }
        }
    }
}

impl Running {
    /// Asks the machine to stop, as a signal does.
    pub fn ask_to_stop(&self) {
        self.health.stop();
        let events = self.events.clone();
        block_on(futures_lite::future::or(
            async {
                events.send(Event::Stop).await;
            },
            async {
                Timer::after(STOP_TIMEOUT).await;
            },
        ));
    }

    /// Waits for the machine's end and closes everything: sockets, link, files, store, and the lock last.
    ///
    /// # Errors
    /// Why the machine ended unasked.
    pub fn finish(self) -> Result<(), Failed> {
        let Self { shared, driver, keeper, copier, sockets, accepting, stop, workers, lock, events, .. } =
            self;
        drop(events);
        let ended = driver.join();
        sockets.remove();
        drop(accepting);
        for outbox in shared.ipc.all() {
            outbox.close(0);
            outbox.wake();
        }
        for outbox in shared.links.all() {
            outbox.close(1001);
            outbox.wake();
        }
        keeper.finish();
        copier.finish();
        let end = Instant::now() + STOP_TIMEOUT;
        while !(shared.ipc.is_empty() && shared.links.is_empty()) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.close();
        for worker in workers {
            // A worker that panicked has ended the process already.
            let _ = worker.join();
        }
        drop(lock);
        ended
    }
}
