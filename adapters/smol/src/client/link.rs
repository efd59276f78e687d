//! One connection: the caller's side, and the thread that reads.

use super::{CallId, ClientError, ClientMachine, Hello, Notice, Options, Tier, call_timeout, connect_error};
use messaging_proto::Code;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
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

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    machine: ClientMachine,
    /// Calls under way, with the reply once it is there.
    calls: BTreeMap<CallId, Option<Result<Value, ClientError>>>,
    events: VecDeque<Value>,
    /// Why the connection ended.
    ended: Option<ClientError>,
}

impl State {
    /// Sorts what came; whether to go on.
    fn take(&mut self, notices: &mut Vec<Notice>) -> bool {
        for notice in notices.drain(..) {
            match notice {
                Notice::Reply(id, reply) => {
                    if let Some(slot) = self.calls.get_mut(&id) {
                        *slot = Some(reply);
                    }
                }
                Notice::Event(event) => self.events.push_back(event),
                Notice::Ended(why) => self.ended = Some(why),
                Notice::Ready(_) => {}
            }
        }
        self.ended.is_none()
    }
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
        let Opened { stream, machine, hello, mut early } = open(options)?;
        let reader =
            stream.try_clone().map_err(|error| ClientError::new(Code::Internal, error.to_string()))?;
        let mut state = State { machine, calls: BTreeMap::new(), events: VecDeque::new(), ended: None };
        state.take(&mut early);
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let for_reader = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("ipc-reader".to_owned())
            .spawn(move || read_all(reader, &for_reader))
            .map_err(|error| ClientError::new(Code::Internal, error.to_string()))?;
        Ok(Self { shared, writer: Mutex::new(stream), hello, tier: options.tier })
    }

    /// What the daemon on this socket says of itself, whatever its release: for `daemon stop`.
    ///
    /// # Errors
    /// As [`Client::connect`], but for a daemon of another release.
    pub fn probe(options: &Options) -> Result<Hello, ClientError> {
        let socket = options.checked_socket()?;
        let mut stream = UnixStream::connect(socket).map_err(|error| connect_error(&error))?;
        let mut line = Vec::new();
        read_within(&mut stream, options.hello_timeout, |piece| {
            let Some(bytes) = piece else {
                return Some(Err(ClientError::unavailable(
                    "the daemon closed the connection before its hello",
                )));
            };
            line.extend_from_slice(bytes);
            let first = line.split(|byte| *byte == b'\n').next().filter(|first| first.len() < line.len());
            match first.map(Hello::parse) {
                Some(Some(hello)) => Some(Ok(hello)),
                Some(None) => Some(Err(ClientError::mismatch("what answers is not a messagingd"))),
                None if line.len() > 65_536 => {
                    Some(Err(ClientError::mismatch("what answers is not a messagingd")))
                }
                None => None,
            }
        })
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
        let (id, line) = {
            let mut state = self.shared.lock();
            if let Some(why) = &state.ended {
                return Err(why.clone());
            }
            let (id, line) = state.machine.call(method, params)?;
            state.calls.insert(id, None);
            (id, line)
        };
        let result = self.write(&line).and_then(|()| self.wait(id, timeout));
        let mut state = self.shared.lock();
        state.calls.remove(&id);
        state.machine.abandon(id);
        drop(state);
        result
    }

    fn write(&self, line: &[u8]) -> Result<(), ClientError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_all(line).map_err(|_| self.gone())
    }

    fn wait(&self, id: CallId, timeout: Duration) -> Result<Value, ClientError> {
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

/// A connection whose hello was read.
struct Opened {
    stream: UnixStream,
    machine: ClientMachine,
    hello: Hello,
    /// What came with the hello.
    early: Vec<Notice>,
}

fn open(options: &Options) -> Result<Opened, ClientError> {
    let socket = options.checked_socket()?;
    let mut stream = UnixStream::connect(socket).map_err(|error| connect_error(&error))?;
    let mut machine = ClientMachine::new(&options.version);
    let mut early = Vec::new();
    let hello = read_within(&mut stream, options.hello_timeout, |piece| {
        match piece {
            Some(bytes) => machine.received(bytes, &mut early),
            None => machine.closed(&mut early),
        }
        match early.first() {
            Some(Notice::Ready(hello)) => Some(Ok(hello.clone())),
            Some(Notice::Ended(why)) => Some(Err(why.clone())),
            _ => None,
        }
    })?;
    stream.set_read_timeout(None).map_err(|error| ClientError::new(Code::Internal, error.to_string()))?;
    Ok(Opened { stream, machine, hello, early })
}

/// Reads until `take` has an answer, at most `timeout` in all. `None` is the end of the stream.
fn read_within<T>(
    stream: &mut UnixStream,
    timeout: Duration,
    mut take: impl FnMut(Option<&[u8]>) -> Option<Result<T, ClientError>>,
) -> Result<T, ClientError> {
    let end = Instant::now() + timeout;
    let mut buffer = [0; 4096];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err(ClientError::mismatch(
                "what answers on the socket says no hello; stop it and start the daemon",
            ));
        }
        let answer = match stream.read(&mut buffer) {
            Ok(0) => take(None),
            Ok(count) => take(buffer.get(..count)),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                continue;
            }
            Err(_) => take(None),
        };
        if let Some(answer) = answer {
            return answer;
        }
    }
}

fn read_all(mut stream: UnixStream, shared: &Shared) {
    let mut buffer = vec![0; 65_536];
    let mut notices = Vec::new();
    loop {
        let read = match stream.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => 0,
            Ok(count) => count,
        };
        let mut state = shared.lock();
        match buffer.get(..read) {
            Some(bytes) if !bytes.is_empty() => state.machine.received(bytes, &mut notices),
            _ => state.machine.closed(&mut notices),
        }
        let mut go_on = state.take(&mut notices);
        if go_on && state.events.len() > EVENTS_MAX {
            state.machine.end(ClientError::unavailable("more events came than were read"), &mut notices);
            go_on = state.take(&mut notices);
        }
        drop(state);
        shared.changed.notify_all();
        if !go_on {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}
