//! The relay as a process: one port for HTTP and WebSocket, one store, one machine (`messaging/1 §7`).
//!
//! [`run`] is the process, from its options to its exit status; [`start`] is the service in it, for tests and for
//! embedding. Sockets run on a few worker threads, which also parse frames and check signatures; the machine runs
//! on a thread of its own behind [`crate::driver`].

mod arrivals;
mod conn;
mod http;
mod metrics;
mod perform;
#[cfg(target_os = "linux")]
mod poller;
#[cfg(not(target_os = "linux"))]
#[path = "poller_elsewhere.rs"]
mod poller;
mod preauth;
mod proxy;
mod run;
mod server;
mod service;
mod socket;
#[cfg(test)]
mod tests;
mod tls;
mod wire;
mod ws;

pub use run::run;
pub use service::{Running, StartError, start};
pub use tls::TlsFiles;

use crate::capture::CaptureOptions;
use crate::log::Level;
use messaging_machines::relay::limits::Limits;
use messaging_proto::key::MachineId;
use std::net::IpAddr;
use std::path::PathBuf;

/// Everything `messaging-relay` can be told (contract ipc §6.3).
#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// Where to listen, `host:port`. Port 0 takes a free one.
    pub listen: String,
    /// The store's file.
    pub db: PathBuf,
    /// The relay's id; `ws://` (`wss://` with TLS) and the address it listens on when not set.
    pub relay_id: Option<String>,
    /// Whether teams can be founded here.
    pub team_creation: bool,
    /// When not empty, only these machines found teams.
    pub genesis: Vec<MachineId>,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpAddr>,
    /// The certificate and key of the relay's own TLS; plain text, for a proxy, when not set.
    pub tls: Option<TlsFiles>,
    /// How much the relay holds and takes.
    pub limits: Limits,
    /// Where `/metrics` is served, `host:port`.
    pub metrics: Option<String>,
    /// The loudest log lines.
    pub log_level: Level,
    /// Where everything the machine is given and says is kept: a secret file.
    pub capture: Option<CaptureOptions>,
    /// The release.
    pub version: String,
}

impl RelayOptions {
    /// The defaults, for this release.
    #[must_use]
    pub fn new(listen: impl Into<String>, db: impl Into<PathBuf>) -> Self {
        Self {
            listen: listen.into(),
            db: db.into(),
            relay_id: None,
            team_creation: true,
            genesis: Vec::new(),
            trusted_proxies: Vec::new(),
            tls: None,
            limits: Limits::default(),
            metrics: None,
            log_level: Level::Info,
            capture: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}
