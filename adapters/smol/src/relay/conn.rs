//! What the relay's threads share about its connections.

use super::preauth::Place;
use crate::clock;
use crate::outbox::Outbox;
use messaging_machines::relay::io::ConnId;
use messaging_machines::relay::limits::Limits;
use messaging_proto::hash::RealmId;
use messaging_proto::key::MachineId;
use messaging_proto::limits;
use messaging_proto::time::Mono;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest that a connection over its budget is not read, in milliseconds.
const HOLD_BACK_MS: u64 = 250;

/// One connection.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) id: ConnId,
    pub(super) address: String,
    pub(super) outbox: Outbox,
    phase: Mutex<Phase>,
    /// The size limit of a message before `hello`.
    preauth_bytes: usize,
    /// Nothing is read before this: a millisecond of the monotonic clock.
    read_after_ms: AtomicU64,
}

#[derive(Debug)]
enum Phase {
    /// Before `hello`: holds a place of the caps.
    Preauth {
        _place: Place,
    },
    Authenticated(RealmId, MachineId),
}

impl Conn {
    fn new(id: ConnId, place: Place, total: Arc<AtomicUsize>, preauth_bytes: usize) -> Self {
        let address = place.address().to_owned();
        let phase = Mutex::new(Phase::Preauth { _place: place });
        Self {
            id,
            address,
            outbox: Outbox::new(total),
            phase,
            preauth_bytes,
            read_after_ms: AtomicU64::new(0),
        }
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves the caps before `hello` (`§7`).
    pub(super) fn authenticate(&self, team: RealmId, machine: MachineId) {
        *self.phase() = Phase::Authenticated(team, machine);
    }

    /// Whose connection it is, once authenticated and unless it is closing.
    pub(super) fn authenticated(&self) -> Option<(RealmId, MachineId)> {
        match &*self.phase() {
            Phase::Authenticated(team, machine) if self.outbox.ending().is_none() => Some((*team, *machine)),
            _ => None,
        }
    }

    /// The size limit of a message now.
    pub(super) fn frame_limit(&self) -> usize {
        match *self.phase() {
            Phase::Preauth { .. } => self.preauth_bytes,
            Phase::Authenticated(..) => limits::FRAME_BYTES,
        }
    }

    /// Its machine is over a budget: nothing more is read for `wait_ms`, a quarter of a second at most. Each frame costs a
    /// signature check before it can be refused, so that a flood is held back where it comes in.
    pub(super) fn hold_back(&self, wait_ms: u64) {
        let until = clock::mono().plus(wait_ms.min(HOLD_BACK_MS));
        self.read_after_ms.fetch_max(until.0, Ordering::Relaxed);
    }

    /// For how long nothing is read.
    pub(super) fn held_back(&self) -> Option<Duration> {
        let left = Mono(self.read_after_ms.load(Ordering::Relaxed)).since(clock::mono());
        (left > 0).then(|| Duration::from_millis(left))
    }

    fn is_authenticated(&self) -> bool {
        matches!(*self.phase(), Phase::Authenticated(..))
    }
}

/// Every open connection.
#[derive(Debug)]
pub(super) struct Conns {
    open: Mutex<BTreeMap<ConnId, Arc<Conn>>>,
    total: Arc<AtomicUsize>,
    preauth_bytes: usize,
}

impl Conns {
    pub(super) fn new(limits: &Limits) -> Self {
        let preauth_bytes = usize::try_from(limits.pre_auth_frame_bytes).unwrap_or(usize::MAX);
        Self { open: Mutex::default(), total: Arc::default(), preauth_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ConnId, Arc<Conn>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection.
    pub(super) fn open(&self, id: ConnId, place: Place) -> Arc<Conn> {
        let conn = Arc::new(Conn::new(id, place, Arc::clone(&self.total), self.preauth_bytes));
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
        self.all().iter().map(|conn| (conn.id, conn.outbox.bytes() as u64)).collect()
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

    #[test]
    fn hello_gives_the_place_back_and_raises_the_limit() {
        let places = Places::new(&Limits::default());
        let conns = Conns::new(&Limits::default());
        let conn = conns.open(ConnId(1), places.take("a").unwrap());
        assert_eq!((conn.frame_limit(), conns.authenticated(), places.taken()), (32_768, 0, 1));
        let machine = messaging_proto::key::SigningKey::from_seed([1; 32]).machine();
        conn.authenticate(messaging_proto::hash::sha256(b"team"), machine);
        assert_eq!((conn.frame_limit(), conns.authenticated(), places.taken()), (1_048_576, 1, 0));
        assert!(conn.authenticated().is_some());
        conn.outbox.close(1001);
        assert!(conn.authenticated().is_none(), "a closing connection is not resumed");
    }
}
