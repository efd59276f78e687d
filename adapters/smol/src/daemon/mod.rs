//! The daemon as a process: a private home, one owner, two Unix sockets, one link to a relay (`messaging/1 §8`).
//!
//! [`run`] is the process, from its options to its exit status; [`start`] is the service in it.

pub(crate) mod dial;
mod gate;
mod ipc;
mod keep;
mod link;
mod lock;
mod perform;
mod run;
mod service;
mod snapshot;
mod sockets;
#[cfg(test)]
mod tests;
mod wake;

pub use run::run;
pub use service::{Running, StartError, start};

use crate::capture::CaptureOptions;
use crate::home::Home;
use crate::log::Level;

/// Everything `messagingd` can be told (contract ipc §6.2).
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// The home.
    pub home: Home,
    /// The loudest log lines.
    pub log_level: Level,
    /// Where everything the machine is given and says is kept: a secret file.
    pub capture: Option<CaptureOptions>,
    /// The release.
    pub version: String,
}

impl DaemonOptions {
    /// The defaults, for this release.
    #[must_use]
    pub fn new(home: Home) -> Self {
        Self { home, log_level: Level::Info, capture: None, version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}
