//! A client of the daemon's API (`messaging/1 §8.2`): blocking calls, and events on the side.
//!
//! ```no_run
//! use messaging_smol::client::{Client, Options};
//! use messaging_smol::home::Home;
//!
//! # fn main() -> Result<(), messaging_smol::client::ClientError> {
//! let home = Home::from_env().expect("a home");
//! let client = Client::connect(&Options::admin(home))?;
//! let status = client.call("daemon.status", serde_json::json!({}))?;
//! # Ok(()) }
//! ```
//!
//! [`Client`] is `Sync`: several threads may call at once. A thread of its own reads the socket and sorts replies
//! from events; it ends with the connection.

mod error;
mod hello;
mod link;

pub use error::ClientError;
pub use hello::{Hello, IPC_PROTOCOL};
pub use link::Client;

use crate::home::{Home, Owner};
use std::path::PathBuf;
use std::time::Duration;

/// Longest line of a client, LF excluded.
pub const IPC_REQUEST_BYTES: usize = 1_048_576;
/// Longest line of a daemon, LF excluded.
pub const IPC_LINE_BYTES: usize = 8_388_608;
/// How long a client waits for the hello.
pub const IPC_CONNECT_MS: u64 = 5_000;
/// How long a client waits for most replies.
pub const IPC_CALL_MS: u64 = 30_000;
/// How long a client waits for a reply that may need the relay.
pub const IPC_SLOW_CALL_MS: u64 = 130_000;

/// Which of the daemon's sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// `run/agent.sock`.
    Agent,
    /// `run/admin.sock`.
    Admin,
}

/// How to reach a daemon.
#[derive(Clone, Debug)]
pub struct Options {
    /// The daemon's home.
    pub home: Home,
    /// Which socket.
    pub tier: Tier,
    /// Whose sockets are trusted.
    pub owner: Owner,
    /// This client's release; the daemon's must be the same.
    pub version: String,
    /// How long to wait for the hello.
    pub hello_timeout: Duration,
}

impl Options {
    /// The admin socket of the daemon in `home`, for this release, trusting `MESSAGING_DAEMON_UID`.
    #[must_use]
    pub fn admin(home: Home) -> Self {
        Self {
            home,
            tier: Tier::Admin,
            owner: Owner::from_env(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            hello_timeout: Duration::from_millis(IPC_CONNECT_MS),
        }
    }

    /// The agent socket, likewise.
    #[must_use]
    pub fn agent(home: Home) -> Self {
        Self { tier: Tier::Agent, ..Self::admin(home) }
    }

    fn socket(&self) -> PathBuf {
        match self.tier {
            Tier::Agent => self.home.agent_socket(),
            Tier::Admin => self.home.admin_socket(),
        }
    }
}

/// How long a call of `method` may take (`ipcCallMs`): the time of the method, plus its `waitMs`.
#[must_use]
pub fn call_timeout(method: &str, params: &serde_json::Value) -> Duration {
    let slow = ["team.", "device.", "identity.", "directory."].iter().any(|group| method.starts_with(group))
        || method == "daemon.snapshot";
    let wait = params.get("waitMs").and_then(serde_json::Value::as_u64).unwrap_or(0);
    Duration::from_millis(if slow { IPC_SLOW_CALL_MS } else { IPC_CALL_MS }.saturating_add(wait))
}

#[cfg(test)]
mod tests;
