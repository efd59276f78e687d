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
//! [`Client`] is `Sync`: several threads may call at once. A thread of its own reads the socket and gives the bytes to
//! the [`ClientMachine`], which sorts replies from events; it ends with the connection. A program with a runtime of
//! its own drives the same machine there, after [`Options::checked_socket`].
//!
//! Two complete programs are in `examples/`: `echo_agent.rs`, an agent that answers messages and executes tasks over
//! [`Client`], and `tokio_agent.rs`, the machine in tokio.

mod link;

pub use link::Client;
pub use messaging_machines::client::{
    CallId, ClientError, ClientMachine, Hello, IPC_CALL_MS, IPC_CONNECT_MS, IPC_LINE_BYTES, IPC_PROTOCOL,
    IPC_REQUEST_BYTES, IPC_SLOW_CALL_MS, Notice, call_timeout,
};

use crate::home::{Home, HomeError, Owner, check_directory, check_socket};
use messaging_proto::Code;
use std::path::PathBuf;
use std::time::Duration;

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

    /// The path of the socket, once the home, `run/` and the socket itself were found private (`§8.2`).
    ///
    /// # Errors
    /// `forbidden` when one of them is not, `daemon_unavailable` when one does not exist.
    pub fn checked_socket(&self) -> Result<PathBuf, ClientError> {
        check_directory(self.home.path(), self.owner)?;
        check_directory(&self.home.run(), self.owner)?;
        let socket = self.socket();
        check_socket(&socket, self.owner)?;
        Ok(socket)
    }

    fn socket(&self) -> PathBuf {
        match self.tier {
            Tier::Agent => self.home.agent_socket(),
            Tier::Admin => self.home.admin_socket(),
        }
    }
}

/// What a socket that cannot be connected means.
#[must_use]
pub fn connect_error(error: &std::io::Error) -> ClientError {
    if error.kind() == std::io::ErrorKind::PermissionDenied {
        ClientError::new(Code::Forbidden, "this user may not use the daemon's socket")
    } else {
        ClientError::unavailable("no daemon answers; start it with: messaging daemon start")
    }
}

impl From<HomeError> for ClientError {
    fn from(error: HomeError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

#[cfg(test)]
mod tests;
