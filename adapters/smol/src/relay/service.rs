//! The relay's sockets, threads and driver, from listening to the last close.

use super::arrivals::Arrivals;
use super::conn::Conns;
use super::metrics::{self, Metrics};
use super::perform::Performer;
use super::poller::Pollers;
use super::server::{Server, Shared};
use super::tls::Tls;
use super::{RelayOptions, http};
use crate::capture::Capture;
use crate::driver::{Bounds, Driver, Failed, Setup};
use crate::guard::{Cap, Counted};
use crate::log::Log;
use crate::store::{Location, OpenError, Options, RedbStore, Refusal, Schema, StoreFault};
use async_executor::{Executor, Task};
use async_io::{Async, Timer, block_on};
use futures_lite::future;
use http_body_util::Full;
use hyper::header::{self, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, StatusCode};
use messaging_machines::Machine;
use messaging_machines::capture::Origin;
use messaging_machines::relay::io::{Effect, Event};
use messaging_machines::relay::{Config, schema};
use messaging_proto::Code;
use smol_hyper::rt::FuturesIo;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of the store's page cache: small, since the kernel caches the file as well, so that memory is what it is going
/// to be after seconds of load, not after minutes.
const CACHE_BYTES: usize = if cfg!(test) { 1 << 20 } else { 4 << 20 };
/// How long a stopping relay waits for its sockets to take what waits and close.
const STOP_TIMEOUT: Duration = Duration::from_secs(6);
/// How long a nudge waits for room among the machine's events.
const NUDGE_TIMEOUT: Duration = Duration::from_millis(200);
/// Close code: the relay is stopping.
const GOING_AWAY: u16 = 1001;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4_096;
/// The first wait before a failing store is tried again. Tests on a busy machine look at what is said meanwhile.
const RETRY_MS: u64 = if cfg!(test) { 4_000 } else { 1_000 };
/// Sockets that ask for metrics at once.
const METRICS_SOCKETS: usize = 16;

/// Why the relay did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store is not ours to open: exit 78.
    #[error("{}", .0.as_str())]
    Refused(Refusal),
    /// Anything else: exit 1.
    #[error("{code}: {text}")]
    Failed {
        /// Which kind.
        code: Code,
        /// What, in words of ours.
        text: String,
    },
}

impl StartError {
    fn failed(code: Code, text: impl Into<String>) -> Self {
        Self::Failed { code, text: text.into() }
    }
}

/// A relay that serves.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where it serves metrics.
    pub metrics: Option<SocketAddr>,
    server: Arc<Server>,
    driver: Driver<Event>,
    accepting: Vec<Task<()>>,
    stop: async_channel::Sender<()>,
    workers: Vec<std::thread::JoinHandle<()>>,
}

/// Starts the relay. `ended` is called when its machine's thread ends, told or not.
///
/// # Errors
/// Why it did not start.
pub fn start(
    options: &RelayOptions,
    log: &Log,
    ended: Box<dyn FnOnce() + Send>,
) -> Result<Running, StartError> {
    start_at(options, Location::new(&options.db), log, ended, messaging_machines::relay::Relay::new)
}

/// Starts a relay around any machine that speaks its events and effects.
pub(super) fn start_at<M, B>(
    options: &RelayOptions,
    location: Location,
    log: &Log,
    ended: Box<dyn FnOnce() + Send>,
    build: B,
) -> Result<Running, StartError>
where
    M: Machine<Event = Event, Effect = Effect> + 'static,
    B: Fn(Config) -> M + Send + 'static,
{
    raise_file_limit();
    let tls = options.tls.as_ref().map(Tls::load).transpose();
    let tls = tls.map_err(|error| StartError::failed(Code::InvalidRequest, format!("tls: {error}")))?;
    // One sync a commit: `store` says why.
    let store_options =
        Options { cache_bytes: CACHE_BYTES, quick_repair: false, journal: Some(&schema::TABLES) };
    let store = match RedbStore::open(&location, Schema::CURRENT, store_options) {
        Ok(store) => Ok(store),
        Err(OpenError::Refused(reason)) => return Err(StartError::Refused(reason)),
        Err(OpenError::Busy) => {
            return Err(StartError::failed(Code::InvalidState, "another relay has the database open"));
        }
        // §7 Store failures: a full disk does not stop the start, nor a file that may not grow.
        Err(OpenError::Fault(fault)) if fault.cannot_grow() => Err(fault),
        Err(OpenError::Fault(fault) | OpenError::Lost(fault)) => {
            return Err(StartError::failed(Code::Internal, format!("the database: {fault}")));
        }
    };
    let opened = store.is_ok();
    let reopen = move || {
        if opened && !location.path().exists() {
            // Somebody moved it: an empty one in its place would tell every member that it is none.
            return Err(OpenError::Fault(StoreFault("not_found")));
        }
        RedbStore::reopen(&location, Schema::CURRENT, store_options)
    };
    let listener = listen(&options.listen)?;
    let address = local(&listener)?;
    let metrics = options.metrics.as_deref().map(listen).transpose()?;
    let metrics_address = metrics.as_ref().map(local).transpose()?;
    let config = Config {
        relay_id: options
            .relay_id
            .clone()
            .unwrap_or_else(|| default_id(&options.listen, address, tls.is_some()))
            .into(),
        team_creation: options.team_creation,
        genesis: options.genesis.clone(),
        limits: options.limits.clone(),
    };
    let capture =
        options.capture.clone().map(|capture| Capture::open(capture, &schema::TABLES, log)).transpose();
    let capture = capture.map_err(|error| StartError::failed(Code::Internal, format!("capture: {error}")))?;
    let built = capture.as_ref().map(Capture::built);
    let shared = Arc::new(Shared {
        conns: Conns::new(&options.limits),
        arrivals: Arrivals::new(&options.limits),
        metrics: Metrics::default(),
        limits: options.limits.clone(),
        log: log.clone(),
    });
    let driver = Driver::spawn(Setup::<M, _> {
        name: "relay",
        store,
        reopen: Box::new(reopen),
        build: Box::new(move || {
            if let Some(built) = &built {
                built.note(Origin::Relay(Box::new(config.clone())));
            }
            build(config.clone())
        }),
        perform: Performer::new(Arc::clone(&shared)),
        bounds: Bounds { retry_ms: RETRY_MS, ..Bounds::default() },
        log: log.clone(),
        capture,
        ended,
    })
    .map_err(|error| StartError::failed(Code::Internal, error.to_string()))?;
    let executor = Arc::new(Executor::new());
    let pollers = Pollers::new(workers())
        .map_err(|error| StartError::failed(Code::Internal, format!("pollers: {error}")))?;
    let (stop, stopped) = async_channel::bounded(1);
    let server = Arc::new(Server::new(
        shared,
        Arc::clone(&executor),
        pollers,
        options.trusted_proxies.clone(),
        &driver,
        options.version.clone(),
        tls,
    ));
    let mut accepting = vec![executor.spawn(accept(Arc::clone(&server), listener))];
    if let Some(listener) = metrics {
        if metrics_address.is_some_and(|address| !address.ip().is_loopback()) {
            log.warn("relay.insecure", &[("what", "metrics".into())]);
        }
        accepting.push(executor.spawn(accept_metrics(Arc::clone(&server), listener)));
    }
    let workers = spawn_workers(&executor, &server.pollers, &stopped)?;
    log.info("relay.listening", &[("port", address.port().into())]);
    Ok(Running { address, metrics: metrics_address, server, driver, accepting, stop, workers })
}

impl Running {
    /// How many events the machine has taken.
    #[must_use]
    pub fn progress(&self) -> u64 {
        self.server.health.delay.count()
    }

    /// Whether the store fails (`store_failing`).
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.server.health.store_failing()
    }

    /// Gives the machine something to take, if it takes anything: a timer that may find nothing due.
    pub fn nudge(&self) {
        let send = async {
            self.driver.events.send(Event::Timer).await;
        };
        block_on(future::or(send, async {
            Timer::after(NUDGE_TIMEOUT).await;
        }));
    }

    /// Reads the certificate and its key again, for connections from now on. On an error the old ones stay. Nothing
    /// to do without TLS. Reads files: call it where blocking is fine.
    pub fn reload(&self) {
        let Some(tls) = &self.server.tls else { return };
        match tls.reload() {
            Ok(()) => self.server.shared.log.info("tls.reloaded", &[]),
            Err(error) => {
                self.server.shared.log.error("tls.reload_failed", &[("error", error.to_string().into())]);
            }
        }
    }

    /// Stops gracefully (`§7`): accepts nothing more, lets the machine commit and say its last, closes every
    /// socket with 1001, closes the store.
    ///
    /// # Errors
    /// Why the machine had ended before.
    pub fn stop(self) -> Result<(), Failed> {
        let Self { server, driver, accepting, stop, workers, .. } = self;
        // Cancels the tasks, which drops the listeners.
        drop(accepting);
        server.health.stop();
        let events = driver.events.clone();
        // Without a machine nobody takes it: the driver ends for the flag.
        block_on(future::or(
            async {
                events.send(Event::Stop).await;
            },
            async {
                Timer::after(STOP_TIMEOUT).await;
            },
        ));
        drop(events);
        let ended = driver.join();
        for conn in server.shared.conns.all() {
            conn.outbox.close(GOING_AWAY);
            conn.outbox.wake();
        }
        let end = Instant::now() + STOP_TIMEOUT;
        while !server.shared.conns.is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.close();
        for worker in workers {
            // A worker that panicked has ended the process already.
            let _ = worker.join();
        }
        ended
    }
}

fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8)
}

fn spawn_workers(
    executor: &Arc<Executor<'static>>,
    pollers: &Pollers,
    stopped: &async_channel::Receiver<()>,
) -> Result<Vec<std::thread::JoinHandle<()>>, StartError> {
    pollers
        .each()
        .map(|poller| {
            let (executor, stopped) = (Arc::clone(executor), stopped.clone());
            // Ends when the channel closes.
            let work = move || {
                let _ = poller.run(&executor, stopped.recv());
            };
            std::thread::Builder::new().name("relay-io".to_owned()).spawn(work)
        })
        .collect::<Result<_, _>>()
        .map_err(|error| StartError::failed(Code::Internal, error.to_string()))
}

fn listen(address: &str) -> Result<TcpListener, StartError> {
    let failed =
        |error: std::io::Error| StartError::failed(Code::Internal, format!("listen on {address}: {error}"));
    let listener =
        TcpListener::bind(address.to_socket_addrs().map_err(failed)?.collect::<Vec<_>>().as_slice())
            .map_err(failed)?;
    // Every client of a restarted relay dials within a second.
    rustix::net::listen(&listener, BACKLOG).map_err(|error| failed(error.into()))?;
    Ok(listener)
}

fn local(listener: &TcpListener) -> Result<SocketAddr, StartError> {
    listener.local_addr().map_err(|error| StartError::failed(Code::Internal, error.to_string()))
}

/// `ws://<listen>` (`wss://` with TLS), with the port that was taken.
fn default_id(listen: &str, address: SocketAddr, tls: bool) -> String {
    let host = listen.rsplit_once(':').map_or(listen, |(host, _)| host);
    let url = format!("{}://{host}:{}", if tls { "wss" } else { "ws" }, address.port());
    messaging_proto::relay_url::relay_origin(&url).unwrap_or(url)
}

/// One file descriptor a socket: takes what the system allows.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Fewer sockets are served then, and the rest waits in the backlog.
    let _ = setrlimit(Resource::Nofile, limit);
}

async fn accept(server: Arc<Server>, listener: TcpListener) {
    let Ok(listener) = Async::new(listener) else { return };
    loop {
        let Some((stream, peer)) = accept_one(&listener, &server.shared.log).await else { continue };
        // Past the cap a socket is dropped before any HTTP is read (§7, "Raw sockets").
        let Some(raw) = server.sockets.take() else { continue };
        let _ = stream.get_ref().set_nodelay(true);
        server.executor.spawn(http::serve(Arc::clone(&server), stream, peer.ip(), raw)).detach();
    }
}

async fn accept_one(listener: &Async<TcpListener>, log: &Log) -> Option<(Async<TcpStream>, SocketAddr)> {
    match listener.accept().await {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            // Out of file descriptors, most likely: sockets that close make room.
            log.warn("relay.accept_failed", &[("error", format!("{:?}", error.kind()).into())]);
            Timer::after(Duration::from_millis(100)).await;
            None
        }
    }
}

async fn accept_metrics(server: Arc<Server>, listener: TcpListener) {
    let Ok(listener) = Async::new(listener) else { return };
    let sockets = Cap::new(METRICS_SOCKETS);
    loop {
        let Some((stream, _)) = accept_one(&listener, &server.shared.log).await else { continue };
        let Some(socket) = sockets.take() else { continue };
        server.executor.spawn(serve_metrics(Arc::clone(&server), stream, socket)).detach();
    }
}

async fn serve_metrics(server: Arc<Server>, stream: Async<TcpStream>, socket: Counted) {
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let response = if request.method() == Method::GET && request.uri().path() == "/metrics" {
            let mut response = http::plain(StatusCode::OK);
            *response.body_mut() = Full::from(metrics::page(&server));
            let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        } else {
            http::plain(StatusCode::NOT_FOUND)
        };
        async move { Ok::<_, Infallible>(response) }
    });
    http::one_request(FuturesIo::new(stream), service).await;
    drop(socket);
}
