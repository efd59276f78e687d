//! What the relay's threads share about one connection: what waits to be sent, and how it stands.

use super::preauth::Place;
use messaging_machines::relay::io::ConnId;
use messaging_proto::hash::RealmId;
use messaging_proto::key::MachineId;
use messaging_proto::limits;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

/// Something for the socket, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A text message.
    Text(String),
    /// Report when everything before this has left.
    Mark,
    /// Close with this code.
    Close(u16),
    /// Drop the connection now.
    Abort,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) id: ConnId,
    pub(super) address: String,
    state: Mutex<State>,
    /// Bytes of all sockets.
    total: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct State {
    items: VecDeque<Item>,
    /// Bytes in `items` and bytes handed to the socket that it has not taken yet.
    bytes: usize,
    waker: Option<Waker>,
    phase: Phase,
    /// Since when a close or an abort is queued.
    ending: Option<Instant>,
}

#[derive(Debug)]
enum Phase {
    /// Before `hello`: holds a slot of the caps.
    Preauth {
        _place: Place,
    },
    Authenticated(RealmId, MachineId),
}

impl Conn {
    fn new(id: ConnId, place: Place, total: Arc<AtomicUsize>) -> Self {
        let address = place.address().to_owned();
        let state = State {
            items: VecDeque::new(),
            bytes: 0,
            waker: None,
            phase: Phase::Preauth { _place: place },
            ending: None,
        };
        Self { id, address, state: Mutex::new(state), total }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message; the bytes that now wait for this socket. Nothing is queued behind a close.
    /// The task is not woken: see [`Conn::wake`].
    pub(super) fn push(&self, text: String) -> usize {
        let mut state = self.lock();
        if state.ending.is_some() {
            return 0;
        }
        state.bytes += text.len();
        self.total.fetch_add(text.len(), Ordering::Relaxed);
        state.items.push_back(Item::Text(text));
        state.bytes
    }

    /// Queues a mark.
    pub(super) fn mark(&self) {
        let mut state = self.lock();
        if state.ending.is_none() {
            state.items.push_back(Item::Mark);
        }
    }

    /// Queues a close; the first one counts.
    pub(super) fn close(&self, code: u16) {
        let mut state = self.lock();
        if state.ending.is_none() {
            state.ending = Some(Instant::now());
            state.items.push_back(Item::Close(code));
        }
    }

    /// Drops everything queued, and the connection.
    pub(super) fn abort(&self) {
        let mut state = self.lock();
        state.ending.get_or_insert_with(Instant::now);
        state.items.clear();
        state.items.push_back(Item::Abort);
        self.total.fetch_sub(std::mem::take(&mut state.bytes), Ordering::Relaxed);
    }

    /// Wakes the connection's task.
    pub(super) fn wake(&self) {
        let waker = self.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The next item.
    pub(super) fn next(&self) -> Option<Item> {
        self.lock().items.pop_front()
    }

    /// Waits until there is an item.
    pub(super) async fn ready(&self) {
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.items.is_empty() {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }

    /// The socket took `bytes` of what [`Conn::next`] gave.
    pub(super) fn flushed(&self, bytes: usize) {
        let mut state = self.lock();
        // After an abort everything is forgotten already.
        let bytes = bytes.min(state.bytes);
        state.bytes -= bytes;
        self.total.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Leaves the caps before `hello` (`§7`).
    pub(super) fn authenticate(&self, team: RealmId, machine: MachineId) {
        self.lock().phase = Phase::Authenticated(team, machine);
    }

    /// Whose connection it is, once authenticated and unless it is closing.
    pub(super) fn authenticated(&self) -> Option<(RealmId, MachineId)> {
        let state = self.lock();
        match &state.phase {
            Phase::Authenticated(team, machine) if state.ending.is_none() => Some((*team, *machine)),
            _ => None,
        }
    }

    /// Whether a close or an abort is queued: what arrives now is not for the machine.
    pub(super) fn ending(&self) -> bool {
        self.lock().ending.is_some()
    }

    /// Since when a close is queued.
    pub(super) fn closing_since(&self) -> Option<Instant> {
        self.lock().ending
    }

    /// Waits until a close (unless it is `noticed`) or an abort is queued.
    pub(super) async fn ended(&self, noticed: bool) {
        poll_fn(|cx| {
            let mut state = self.lock();
            let abort = state.items.front() == Some(&Item::Abort);
            if abort || (!noticed && state.ending.is_some()) {
                return Poll::Ready(());
            }
            state.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// The size limit of a message now.
    pub(super) fn frame_limit(&self) -> usize {
        match self.lock().phase {
            Phase::Preauth { .. } => limits::PRE_AUTH_FRAME_BYTES,
            Phase::Authenticated(..) => limits::FRAME_BYTES,
        }
    }

    fn is_authenticated(&self) -> bool {
        matches!(self.lock().phase, Phase::Authenticated(..))
    }

    fn buffered(&self) -> usize {
        self.lock().bytes
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        let bytes = self.lock().bytes;
        self.total.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Every open connection.
#[derive(Debug, Default)]
pub(super) struct Conns {
    open: Mutex<BTreeMap<ConnId, Arc<Conn>>>,
    total: Arc<AtomicUsize>,
}

impl Conns {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ConnId, Arc<Conn>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection.
    pub(super) fn open(&self, id: ConnId, place: Place) -> Arc<Conn> {
        let conn = Arc::new(Conn::new(id, place, Arc::clone(&self.total)));
        self.lock().insert(id, Arc::clone(&conn));
        conn
    }

    pub(super) fn get(&self, id: ConnId) -> Option<Arc<Conn>> {
        self.lock().get(&id).cloned()
    }

    pub(super) fn remove(&self, id: ConnId) {
        self.lock().remove(&id);
    }

    pub(super) fn all(&self) -> Vec<Arc<Conn>> {
        self.lock().values().cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Bytes that wait for all sockets.
    pub(super) fn buffered(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// What waits for each socket.
    pub(super) fn buffered_each(&self) -> Vec<(ConnId, u64)> {
        self.all().iter().map(|conn| (conn.id, conn.buffered() as u64)).collect()
    }

    /// How many have said `hello`.
    pub(super) fn authenticated(&self) -> usize {
        self.all().iter().filter(|conn| conn.is_authenticated()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::preauth::Places;
    use super::*;
    use messaging_machines::relay::limits::Limits;

    #[test]
    fn bytes_are_counted_until_the_socket_took_them() {
        let places = Places::new(&Limits::default());
        let conns = Conns::default();
        let conn = conns.open(ConnId(1), places.take("a").unwrap());
        assert_eq!(conn.push("12345".to_owned()), 5);
        conn.mark();
        assert_eq!(conn.next(), Some(Item::Text("12345".to_owned())));
        assert_eq!((conns.buffered(), conn.next()), (5, Some(Item::Mark)));
        conn.flushed(5);
        assert_eq!(conns.buffered(), 0);
        conn.push("123".to_owned());
        conn.abort();
        assert_eq!((conns.buffered(), conn.next()), (0, Some(Item::Abort)));
        conn.flushed(3);
        assert_eq!(conns.buffered(), 0, "forgotten bytes are not taken off twice");
        assert_eq!(conn.push("x".to_owned()), 0);
        conns.remove(ConnId(1));
        drop(conn);
        assert_eq!((places.taken(), conns.buffered()), (0, 0));
    }

    #[test]
    fn hello_gives_the_slot_back_and_raises_the_limit() {
        let places = Places::new(&Limits::default());
        let conns = Conns::default();
        let conn = conns.open(ConnId(1), places.take("a").unwrap());
        assert_eq!((conn.frame_limit(), conns.authenticated()), (32_768, 0));
        let machine = messaging_proto::key::SigningKey::from_seed([1; 32]).machine();
        conn.authenticate(messaging_proto::hash::sha256(b"team"), machine);
        assert_eq!((conn.frame_limit(), places.taken(), conns.authenticated()), (1_048_576, 0, 1));
        assert!(conn.authenticated().is_some());
        conn.close(1001);
        assert!(conn.authenticated().is_none(), "a closing connection is not resumed");
    }
}
