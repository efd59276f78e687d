//! The client's end of the daemon's API (`messaging/1 §8.2`), without I/O: bytes in, bytes and notices out.
//!
//! [`ClientMachine`] is one connection. Whoever drives it owns the socket and the clock: it gives every byte that was
//! read to [`ClientMachine::received`], writes what [`ClientMachine::call`] returns, and bounds its waits by itself
//! ([`call_timeout`], [`IPC_CONNECT_MS`]). `messaging_smol::client` drives it with blocking sockets, `messaging-mcp`
//! and `examples/tokio_agent.rs` in tokio.
//!
//! ```
//! use messaging_machines::client::{ClientMachine, Notice};
//!
//! let mut machine = ClientMachine::new("0.1.0");
//! let mut notices = Vec::new();
//! machine.received(
//!     br#"{"jsonrpc":"2.0","method":"hello","params":{"daemon":"messagingd","version":"0.1.0","protocol":1,"pid":7}}
//! "#,
//!     &mut notices,
//! );
//! assert!(matches!(&notices[..], [Notice::Ready(hello)] if hello.pid == 7));
//! let (call, line) = machine.call("daemon.health", serde_json::json!({})).unwrap();
//! assert_eq!(line.last(), Some(&b'\n'));
//! machine.received(br#"{"jsonrpc":"2.0","id":1,"result":{"state":"running"}}
//! "#, &mut notices);
//! assert!(matches!(&notices[1], Notice::Reply(id, Ok(result)) if *id == call && result["state"] == "running"));
//! ```

mod error;
mod hello;

pub use error::ClientError;
pub use hello::{Hello, IPC_PROTOCOL};

use messaging_proto::Code;
use serde_json::{Value, json};
use std::collections::BTreeSet;
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

/// Longest hello. A first line that is longer is somebody else's.
const HELLO_BYTES: usize = 65_536;

/// A call of this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(u64);

/// What came of the bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// The daemon said who it is, and it is of this release. Calls may be made.
    Ready(Hello),
    /// A call's result.
    Reply(CallId, Result<Value, ClientError>),
    /// An event's `params`.
    Event(Value),
    /// The connection is of no more use. Every call under way was answered before this.
    Ended(ClientError),
}

#[derive(Debug)]
enum Phase {
    Hello,
    Open,
    Ended,
}

/// One connection, from the first byte to the last.
#[derive(Debug)]
pub struct ClientMachine {
    version: String,
    phase: Phase,
    /// The line that is not complete yet.
    partial: Vec<u8>,
    next_id: u64,
    calls: BTreeSet<CallId>,
}

impl ClientMachine {
    /// A connection nothing was read from yet, of a client of release `version`.
    #[must_use]
    pub fn new(version: &str) -> Self {
        let version = version.to_owned();
        Self { version, phase: Phase::Hello, partial: Vec::new(), next_id: 0, calls: BTreeSet::new() }
    }

    /// Makes a call: its id, and the line to write. Before the hello nothing may be sent.
    ///
    /// # Errors
    /// `too_large` for a line the daemon would not take, `daemon_unavailable` when the connection is not open.
    pub fn call(&mut self, method: &str, params: Value) -> Result<(CallId, Vec<u8>), ClientError> {
        if !matches!(self.phase, Phase::Open) {
            return Err(ClientError::unavailable("there is no connection to the daemon"));
        }
        let id = CallId(self.next_id + 1);
        let line = json!({"jsonrpc": "2.0", "id": id.0, "method": method, "params": params});
        let mut line = line.to_string().into_bytes();
        if line.len() > IPC_REQUEST_BYTES {
            return Err(ClientError::new(Code::TooLarge, "the request is larger than 1 MiB"));
        }
        line.push(b'\n');
        self.next_id = id.0;
        self.calls.insert(id);
        Ok((id, line))
    }

    /// Nobody waits for this call any more; its reply is dropped.
    pub fn abandon(&mut self, call: CallId) {
        self.calls.remove(&call);
    }

    /// Takes what was read, in whatever pieces.
    pub fn received(&mut self, mut bytes: &[u8], out: &mut Vec<Notice>) {
        while !matches!(self.phase, Phase::Ended) {
            let Some(at) = bytes.iter().position(|byte| *byte == b'\n') else {
                self.partial.extend_from_slice(bytes);
                let limit = if matches!(self.phase, Phase::Hello) { HELLO_BYTES } else { IPC_LINE_BYTES };
                if self.partial.len() > limit {
                    self.too_long(out);
                }
                return;
            };
            let (line, rest) = bytes.split_at(at);
            bytes = rest.get(1..).unwrap_or_default();
            if self.partial.len() + line.len() > IPC_LINE_BYTES {
                return self.too_long(out);
            }
            if self.partial.is_empty() {
                self.line(line, out);
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(line);
                self.line(&whole, out);
            }
        }
    }

    /// The socket ended, or could not be read or written any more.
    pub fn closed(&mut self, out: &mut Vec<Notice>) {
        self.end(
            match self.phase {
                Phase::Hello => ClientError::unavailable("the daemon closed the connection before its hello"),
                _ if self.partial.is_empty() => ClientError::unavailable("the daemon closed the connection"),
                _ => ClientError::unavailable("the daemon's line was cut short"),
            },
            out,
        );
    }

    /// Ends the connection for a reason of the driver's, such as a hello that did not come in time.
    pub fn end(&mut self, why: ClientError, out: &mut Vec<Notice>) {
        if matches!(self.phase, Phase::Ended) {
            return;
        }
        self.phase = Phase::Ended;
        self.partial = Vec::new();
        out.extend(std::mem::take(&mut self.calls).into_iter().map(|id| Notice::Reply(id, Err(why.clone()))));
        out.push(Notice::Ended(why));
    }

    fn too_long(&mut self, out: &mut Vec<Notice>) {
        let why = match self.phase {
            Phase::Hello => ClientError::mismatch("what answers on the socket is not a messagingd"),
            _ => ClientError::unavailable("the daemon's line was too long"),
        };
        self.end(why, out);
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<Notice>) {
        if matches!(self.phase, Phase::Hello) {
            return match Hello::parse(line).map(|hello| (hello.check(&self.version), hello)) {
                Some((Ok(()), hello)) => {
                    self.phase = Phase::Open;
                    out.push(Notice::Ready(hello));
                }
                Some((Err(why), _)) => self.end(why, out),
                None => {
                    self.end(ClientError::mismatch("what answers on the socket is not this messagingd"), out);
                }
            };
        }
        let Ok(mut value) = serde_json::from_slice::<Value>(line) else { return };
        if value.get("method").and_then(Value::as_str) == Some("event") {
            out.push(Notice::Event(value.get_mut("params").map(Value::take).unwrap_or_default()));
        } else if value.get("id").is_some_and(Value::is_null) {
            // The daemon could not read a line of ours: it cannot say which, so every call under way fails.
            let error = ClientError::from_reply(value.get("error").unwrap_or(&Value::Null));
            let calls = std::mem::take(&mut self.calls);
            out.extend(calls.into_iter().map(|id| Notice::Reply(id, Err(error.clone()))));
        } else if let Some(id) = value.get("id").and_then(Value::as_u64).map(CallId)
            && self.calls.remove(&id)
        {
            out.push(Notice::Reply(
                id,
                match value.get("error") {
                    Some(error) => Err(ClientError::from_reply(error)),
                    None => Ok(value.get_mut("result").map(Value::take).unwrap_or_default()),
                },
            ));
        }
    }
}

/// How long a call of `method` may take (`ipcCallMs`): the time of the method, plus its `waitMs`.
#[must_use]
pub fn call_timeout(method: &str, params: &Value) -> Duration {
    let slow = ["team.", "device.", "identity.", "directory."].iter().any(|group| method.starts_with(group))
        || method == "daemon.snapshot";
    let wait = params.get("waitMs").and_then(Value::as_u64).unwrap_or(0);
    Duration::from_millis(if slow { IPC_SLOW_CALL_MS } else { IPC_CALL_MS }.saturating_add(wait))
}

#[cfg(test)]
mod tests;
