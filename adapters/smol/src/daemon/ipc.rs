//! Local connections: lines in, lines out (contract ipc §1).

use super::gate::Gate;
use crate::client::IPC_REQUEST_BYTES;
use crate::driver::Events;
use crate::outbox::{Item, Outbox};
use async_io::{Async, Timer};
use futures_lite::{AsyncWriteExt, future};
use messaging_machines::daemon::io::{Event, IpcId, Tier};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// `ipcBufferBytes`: unsent bytes to one connection.
pub(super) const IPC_BUFFER_BYTES: usize = 33_554_432;
/// Unsent bytes to all connections together: past it the one that is behind most is dropped.
pub(super) const IPC_TOTAL_BYTES: usize = 4 * IPC_BUFFER_BYTES;
/// How long a closing connection may take to read what waits.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
const CHUNK_BYTES: usize = 16 * 1024;

/// One connection.
#[derive(Clone, Debug)]
struct Open {
    outbox: Arc<Outbox>,
    gate: Arc<Gate>,
}

/// The open local connections.
#[derive(Debug, Default)]
pub(super) struct Ipc {
    open: Mutex<BTreeMap<IpcId, Open>>,
    total: Arc<AtomicUsize>,
}

impl Ipc {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpcId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, id: IpcId) -> Option<Arc<Outbox>> {
        self.lock().get(&id).map(|open| Arc::clone(&open.outbox))
    }

    pub(super) fn all(&self) -> Vec<Arc<Outbox>> {
        self.lock().values().map(|open| Arc::clone(&open.outbox)).collect()
    }

    /// The connection that is behind most, when all of them together are behind too far.
    pub(super) fn hoarder(&self) -> Option<Arc<Outbox>> {
        if self.total.load(Ordering::Relaxed) <= IPC_TOTAL_BYTES {
            return None;
        }
        let most = self.lock().values().max_by_key(|open| open.outbox.bytes()).cloned();
        most.map(|open| open.outbox)
    }

    /// The machine took a line of this many bytes.
    pub(super) fn taken(&self, id: IpcId, bytes: usize) {
        let gate = self.lock().get(&id).map(|open| Arc::clone(&open.gate));
        if let Some(gate) = gate {
            gate.left(bytes);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

/// Serves one connection from its accept to its end.
pub(super) async fn serve(
    ipc: &Ipc,
    id: IpcId,
    tier: Tier,
    stream: Async<UnixStream>,
    events: Events<Event>,
) {
    let outbox = Arc::new(Outbox::new(Arc::clone(&ipc.total)));
    let gate = Arc::new(Gate::default());
    ipc.lock().insert(id, Open { outbox: Arc::clone(&outbox), gate: Arc::clone(&gate) });
    if events.send(Event::IpcOpened { conn: id, tier }).await {
        let lines = Lines { id, gate: &gate, events: &events };
        future::or(read(&outbox, &stream, &lines), write(&outbox, &stream)).await;
    }
    outbox.abort();
    ipc.lock().remove(&id);
    events.send(Event::IpcClosed { conn: id }).await;
}

/// Turns bytes into lines until the end of the stream.
async fn read(outbox: &Outbox, stream: &Async<UnixStream>, lines: &Lines<'_>) {
    let mut pending: Vec<u8> = Vec::new();
    let mut chunk = [0; CHUNK_BYTES];
    let mut too_long = false;
    loop {
        let count = match stream.get_ref().read(&mut chunk) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if stream.readable().await.is_err() {
                    return;
                }
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        // Nothing is heard behind a close, nor behind a line that was too long.
        if too_long || outbox.ending().is_some() {
            continue;
        }
        let mut rest = &chunk[..count];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            pending.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut pending);
            too_long = line.len() > IPC_REQUEST_BYTES;
            if !lines.send(line).await {
                return;
            }
            if too_long {
                break;
            }
        }
        if !too_long {
            pending.extend_from_slice(rest);
            if pending.len() > IPC_REQUEST_BYTES {
                too_long = true;
                if !lines.send(std::mem::take(&mut pending)).await {
                    return;
                }
            }
        }
        if pending.is_empty() {
            // A long line's room is not kept for the next one.
            pending = Vec::new();
        }
    }
}

/// The way of a connection's lines to the machine.
struct Lines<'a> {
    id: IpcId,
    gate: &'a Gate,
    events: &'a Events<Event>,
}

impl Lines<'_> {
    /// Sends one once the machine is not too far behind. Whether there is a machine.
    async fn send(&self, line: Vec<u8>) -> bool {
        let event = if line.len() > IPC_REQUEST_BYTES {
            Event::IpcTooLong { conn: self.id }
        } else {
            self.gate.enter(line.len()).await;
            Event::IpcLine { conn: self.id, line }
        };
        self.events.send(event).await
    }
}

/// Writes what waits until a close.
async fn write(outbox: &Outbox, stream: &Async<UnixStream>) {
    loop {
        match outbox.next() {
            Some(Item::Text(mut line)) => {
                let bytes = line.len();
                line.push('\n');
                if !write_line(outbox, stream, line.as_bytes()).await {
                    return;
                }
                outbox.flushed(bytes);
            }
            Some(Item::Mark) => {}
            Some(Item::Close(_) | Item::Abort) => return,
            None => outbox.ready().await,
        }
    }
}

/// Writes a line; whether it was taken. A connection that is to be closed has a time limit.
async fn write_line(outbox: &Outbox, mut stream: &Async<UnixStream>, line: &[u8]) -> bool {
    let late = async {
        outbox.ended(false).await;
        Timer::after(CLOSE_TIMEOUT).await;
        false
    };
    future::or(async { stream.write_all(line).await.is_ok() }, late).await
}
