//! One connection: the caller's side, and the thread that reads.

use super::{ClientError, Hello, IPC_LINE_BYTES, IPC_REQUEST_BYTES, Options, Tier, call_timeout};
use crate::home::{check_directory, check_socket};
use messaging_proto::Code;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Events kept for a caller that does not take them; past it the connection is dropped.
const EVENTS_MAX: usize = 65_536;

/// A connection to a daemon.
#[derive(Debug)]
pub struct Client {
    shared: Arc<Shared>,
    writer: Mutex<UnixStream>,
    hello: Hello,
    tier: Tier,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next_id: u64,
    /// Calls under way, with the reply once it is there.
    calls: BTreeMap<u64, Option<Result<Value, ClientError>>>,
    events: VecDeque<Value>,
    /// Why the connection ended.
    ended: Option<ClientError>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    /// Connects, checks that the socket is private and the daemon is of this release (`§8.2`).
    ///
    /// # Errors
    /// `forbidden` when the home or the socket is not private, `daemon_unavailable` when nothing answers,
    /// `daemon_mismatch` when something else does.
    pub fn connect(options: &Options) -> Result<Self, ClientError> {
        let (stream, reader, hello) = open(options)?;
        hello.check(&options.version)?;
        let shared = Arc::new(Shared::default());
        let for_reader = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("ipc-reader".to_owned())
            .spawn(move || read_lines(reader, &for_reader))
            .map_err(|error| ClientError::new(Code::Internal, error.to_string()))?;
        Ok(Self { shared, writer: Mutex::new(stream), hello, tier: options.tier })
    }

    /// What the daemon on this socket says of itself, whatever its release: for `daemon stop`.
    ///
    /// # Errors
    /// As [`Client::connect`], but for a daemon of another release.
    pub fn probe(options: &Options) -> Result<Hello, ClientError> {
        open(options).map(|(_, _, hello)| hello)
    }

    /// What the daemon said of itself.
    #[must_use]
    pub const fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Which socket this is.
    #[must_use]
    pub const fn tier(&self) -> Tier {
        self.tier
    }

    /// Calls `method` and waits for its result, as long as the method may take ([`call_timeout`]).
    ///
    /// # Errors
    /// The daemon's refusal; `daemon_unavailable` when the connection ends or no reply comes in time. The call
    /// may then have taken effect.
    pub fn call(&self, method: &str, params: Value) -> Result<Value, ClientError> {
        let timeout = call_timeout(method, &params);
        self.call_within(method, params, timeout)
    }

    /// Calls `method` and waits at most `timeout` for its result.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn call_within(&self, method: &str, params: Value, timeout: Duration) -> Result<Value, ClientError> {
        let id = {
            let mut state = self.shared.lock();
            state.next_id += 1;
            let id = state.next_id;
            state.calls.insert(id, None);
            id
        };
        let result = self.send(id, method, params).and_then(|()| self.wait(id, timeout));
        self.shared.lock().calls.remove(&id);
        result
    }

    fn send(&self, id: u64, method: &str, params: Value) -> Result<(), ClientError> {
        let mut line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        if line.len() > IPC_REQUEST_BYTES {
            return Err(ClientError::new(Code::TooLarge, "the request is larger than 1 MiB"));
        }
        line.push('\n');
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_all(line.as_bytes()).map_err(|_| self.gone())
    }

    fn wait(&self, id: u64, timeout: Duration) -> Result<Value, ClientError> {
        let end = Instant::now() + timeout;
        let mut state = self.shared.lock();
        loop {
            if let Some(reply) = state.calls.get_mut(&id).and_then(Option::take) {
                return reply;
            }
            if let Some(why) = &state.ended {
                return Err(why.clone());
            }
            let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                return Err(ClientError::unavailable("the daemon did not answer in time"));
            };
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The next event's `params`, waiting at most `timeout` (for ever without one). Nothing when none came.
    ///
    /// # Errors
    /// Why the connection ended, once every event before that was taken.
    pub fn next_event(&self, timeout: Option<Duration>) -> Result<Option<Value>, ClientError> {
        let end = timeout.map(|timeout| Instant::now() + timeout);
        let mut state = self.shared.lock();
        loop {
            if let Some(event) = state.events.pop_front() {
                return Ok(Some(event));
            }
            if let Some(why) = &state.ended {
                return Err(why.clone());
            }
            state = match end {
                None => self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(end) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(None);
                    }
                    self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Waits until the daemon closes the connection, at most `timeout`; whether it did.
    #[must_use]
    pub fn wait_closed(&self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        let mut state = self.shared.lock();
        while state.ended.is_none() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn gone(&self) -> ClientError {
        self.shared
            .lock()
            .ended
            .clone()
            .unwrap_or_else(|| ClientError::unavailable("the connection was lost"))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Wakes the reader, which owns the other half.
        let _ = self.writer.lock().unwrap_or_else(PoisonError::into_inner).shutdown(Shutdown::Both);
    }
}

type Opened = (UnixStream, BufReader<UnixStream>, Hello);

fn open(options: &Options) -> Result<Opened, ClientError> {
    let socket = options.socket();
    check_directory(options.home.path(), options.owner)?;
    check_directory(&options.home.run(), options.owner)?;
    check_socket(&socket, options.owner)?;
    let stream = UnixStream::connect(&socket).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => {
            ClientError::new(Code::Forbidden, "this user may not use the daemon's socket")
        }
        _ => ClientError::unavailable("no daemon answers; start it with: messaging daemon start"),
    })?;
    let io = |error: std::io::Error| ClientError::new(Code::Internal, error.to_string());
    let mut reader = BufReader::new(stream.try_clone().map_err(io)?);
    let hello = read_hello(&mut reader, options.hello_timeout)?;
    stream.set_read_timeout(None).map_err(io)?;
    Ok((stream, reader, hello))
}

fn read_hello(reader: &mut BufReader<UnixStream>, timeout: Duration) -> Result<Hello, ClientError> {
    let end = Instant::now() + timeout;
    let mut line = Vec::new();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || reader.get_ref().set_read_timeout(Some(left)).is_err() {
            return Err(ClientError::mismatch(
                "what answers on the socket says no hello; stop it and start the daemon",
            ));
        }
        let chunk = match reader.fill_buf() {
            Ok([]) => {
                return Err(ClientError::unavailable("the daemon closed the connection before its hello"));
            }
            Ok(chunk) => chunk,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                continue;
            }
            Err(_) => return Err(ClientError::unavailable("the connection was lost before the hello")),
        };
        let (taken, done) =
            chunk.iter().position(|byte| *byte == b'\n').map_or((chunk.len(), false), |at| (at + 1, true));
        line.extend_from_slice(&chunk[..taken]);
        reader.consume(taken);
        if done {
            return Hello::parse(&line)
                .ok_or_else(|| ClientError::mismatch("what answers on the socket is not this messagingd"));
        }
        if line.len() > 65_536 {
            return Err(ClientError::mismatch("what answers on the socket is not a messagingd"));
        }
    }
}

fn read_lines(mut reader: BufReader<UnixStream>, shared: &Shared) {
    let mut line = Vec::new();
    let why = loop {
        line.clear();
        match reader.by_ref().take(IPC_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line) {
            Ok(0) => break ClientError::unavailable("the daemon closed the connection"),
            Ok(_) if line.last() != Some(&b'\n') => {
                break ClientError::unavailable("the daemon's line was cut short or too long");
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => break ClientError::unavailable("the connection was lost"),
        }
        if !take_line(&line, shared) {
            break ClientError::unavailable("more events came than were read");
        }
    };
    let _ = reader.get_ref().shutdown(Shutdown::Both);
    shared.lock().ended = Some(why);
    shared.changed.notify_all();
}

/// Sorts one line; whether to go on.
fn take_line(line: &[u8], shared: &Shared) -> bool {
    let Ok(mut value) = serde_json::from_slice::<Value>(line) else { return true };
    let mut state = shared.lock();
    if value.get("method").and_then(Value::as_str) == Some("event") {
        if state.events.len() >= EVENTS_MAX {
            return false;
        }
        state.events.push_back(value["params"].take());
    } else if let Some(slot) = value.get("id").and_then(Value::as_u64).and_then(|id| state.calls.get_mut(&id))
    {
        *slot = Some(match value.get("error") {
            Some(error) => Err(ClientError::from_reply(error)),
            None => Ok(value["result"].take()),
        });
    } else if value.get("id").is_some_and(Value::is_null) {
        // The daemon could not read a line of ours: it cannot say which, so every call under way fails.
        let error = ClientError::from_reply(&value["error"]);
        for slot in state.calls.values_mut().filter(|slot| slot.is_none()) {
            *slot = Some(Err(error.clone()));
        }
    }
    drop(state);
    shared.changed.notify_all();
    true
}
