//! The client machine in tokio: one connection, a task that reads and a task that writes.

use messaging_smol::client::{
    CallId, ClientError, ClientMachine, Hello, IPC_CONNECT_MS, Notice, Options, call_timeout, connect_error,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot, watch};

/// What takes the events.
pub(crate) type Events = Arc<dyn Fn(&Value) + Send + Sync>;

type Reply = oneshot::Sender<Result<Value, ClientError>>;

/// A connection whose hello was read. Dropping it closes the socket.
pub(crate) struct Link {
    state: Arc<Mutex<State>>,
    lines: mpsc::Sender<Vec<u8>>,
    ended: watch::Receiver<bool>,
}

struct State {
    machine: ClientMachine,
    calls: BTreeMap<CallId, Reply>,
    events: Events,
    ready: Option<oneshot::Sender<Result<Hello, ClientError>>>,
    ended: watch::Sender<bool>,
}

impl State {
    fn deliver(&mut self, notices: Vec<Notice>) {
        for notice in notices {
            match notice {
                Notice::Ready(hello) => {
                    if let Some(ready) = self.ready.take() {
                        let _ = ready.send(Ok(hello));
                    }
                }
                Notice::Reply(id, reply) => {
                    if let Some(waiting) = self.calls.remove(&id) {
                        let _ = waiting.send(reply);
                    }
                }
                Notice::Event(event) => (self.events)(&event),
                Notice::Ended(why) => {
                    if let Some(ready) = self.ready.take() {
                        let _ = ready.send(Err(why));
                    }
                    let _ = self.ended.send(true);
                }
            }
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// Connects and reads the hello.
    ///
    /// # Errors
    /// `forbidden`, `daemon_unavailable`, `daemon_mismatch`, as the blocking client.
    pub(crate) async fn open(options: &Options, events: Events) -> Result<Self, ClientError> {
        let socket = options.checked_socket()?;
        let stream = UnixStream::connect(socket).await.map_err(|error| connect_error(&error))?;
        let (reader, writer) = stream.into_split();
        let (ready, hello) = oneshot::channel();
        let (ended_sender, ended) = watch::channel(false);
        let state = Arc::new(Mutex::new(State {
            machine: ClientMachine::new(&options.version),
            calls: BTreeMap::new(),
            events,
            ready: Some(ready),
            ended: ended_sender,
        }));
        let (lines, to_write) = mpsc::channel(64);
        tokio::spawn(read(reader, Arc::clone(&state), ended.clone()));
        tokio::spawn(write(writer, to_write));
        let link = Self { state, lines, ended };
        match tokio::time::timeout(Duration::from_millis(IPC_CONNECT_MS), hello).await {
            Ok(Ok(hello)) => hello.map(|_| link),
            Ok(Err(_)) => Err(ClientError::unavailable("the connection was lost before the hello")),
            Err(_) => Err(ClientError::mismatch("what answers on the socket says no hello")),
        }
    }

    /// Whether the connection has ended.
    pub(crate) fn is_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Waits for the end of the connection.
    pub(crate) fn until_ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut ended = self.ended.clone();
        async move {
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }

    /// Calls a method and waits for its result, as long as the method may take.
    ///
    /// # Errors
    /// The daemon's refusal; `daemon_unavailable` when the connection ends or no reply comes in time.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, ClientError> {
        let timeout = call_timeout(method, &params);
        let (sender, reply) = oneshot::channel();
        let (id, line) = {
            let mut state = lock(&self.state);
            let (id, line) = state.machine.call(method, params)?;
            state.calls.insert(id, sender);
            (id, line)
        };
        // Forgets the call also when whoever waits for it gives up.
        let _forget = Forget { state: &self.state, id };
        let gone = || ClientError::unavailable("the connection was lost");
        self.lines.send(line).await.map_err(|_| gone())?;
        match tokio::time::timeout(timeout, reply).await {
            Ok(reply) => reply.map_err(|_| gone())?,
            Err(_) => Err(ClientError::unavailable("the daemon did not answer in time")),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = lock(&self.state).ended.send(true);
    }
}

struct Forget<'a> {
    state: &'a Mutex<State>,
    id: CallId,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        let mut state = lock(self.state);
        state.calls.remove(&self.id);
        state.machine.abandon(self.id);
    }
}

async fn read(mut reader: OwnedReadHalf, state: Arc<Mutex<State>>, mut ended: watch::Receiver<bool>) {
    let mut buffer = vec![0; 65_536];
    loop {
        let count = tokio::select! {
            read = reader.read(&mut buffer) => read.unwrap_or(0),
            _ = ended.wait_for(|ended| *ended) => return,
        };
        let mut notices = Vec::new();
        let mut state = lock(&state);
        match buffer.get(..count) {
            Some(bytes) if !bytes.is_empty() => state.machine.received(bytes, &mut notices),
            _ => state.machine.closed(&mut notices),
        }
        state.deliver(notices);
    }
}

/// Writes whole lines, so that a caller that gives up leaves none half written. Ends with the link.
async fn write(mut writer: OwnedWriteHalf, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if writer.write_all(&line).await.is_err() {
            return;
        }
    }
}
