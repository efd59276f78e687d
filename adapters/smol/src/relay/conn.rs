//! What the relay's threads share about its connections.

use super::preauth::Place;
use crate::clock;
use crate::outbox::Outbox;
use messaging_machines::relay::io::ConnId;
use messaging_machines::relay::limits::{FREE_ACK_BYTES, Limits};
use messaging_proto::hash::RealmId;
use messaging_proto::key::MachineId;
use messaging_proto::limits;
use messaging_proto::time::Mono;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest that a connection over its budget is not read, in milliseconds, when what it says is small.
const HOLD_BACK_MS: u64 = 250;
/// The longest in any case.
const HOLD_BACK_MOST_MS: u64 = 5_000;
/// For so many milliseconds after a refusal a machine is read at the pace of its budget.
const PACED_MS: u64 = 10_000;

/// One connection.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) id: ConnId,
    pub(super) address: String,
    pub(super) outbox: Outbox,
    phase: Mutex<Phase>,
    /// The size limit of a message before `hello`.
    preauth_bytes: usize,
    /// What one machine may say in a minute.
    bytes_per_minute: u64,
    /// In how many messages.
    frames_per_minute: u64,
    /// Bytes of the latest message.
    latest_bytes: AtomicUsize,
    /// When its machine was over a budget last, as a millisecond of the monotonic clock; 0 before that.
    refused_ms: AtomicU64,
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
    fn new(id: ConnId, place: Place, conns: &Conns) -> Self {
        let address = place.address().to_owned();
        let phase = Mutex::new(Phase::Preauth { _place: place });
        Self {
            id,
            address,
            outbox: Outbox::new(Arc::clone(&conns.total)),
            phase,
            preauth_bytes: conns.preauth_bytes,
            bytes_per_minute: conns.bytes_per_minute,
            frames_per_minute: conns.frames_per_minute,
            latest_bytes: AtomicUsize::new(0),
            refused_ms: AtomicU64::new(0),
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

    /// A message came, of so many bytes.
    pub(super) fn heard(&self, bytes: usize) {
        self.latest_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Its machine is over a budget: nothing more is read for `wait_ms`. Each frame is parsed and its signature checked
    /// before it can be refused, so that a flood is held back where it comes in: for a quarter of a second at most, and for
    /// the time in which its budget pays for what was refused.
    pub(super) fn hold_back(&self, wait_ms: u64) {
        let most = HOLD_BACK_MS.max(self.bytes_ms(self.latest_bytes.load(Ordering::Relaxed)));
        let now = clock::mono();
        self.refused_ms.store(now.0, Ordering::Relaxed);
        self.read_after(now.plus(wait_ms.min(most).min(HOLD_BACK_MOST_MS)));
    }

    /// A message of so many bytes is about to be judged. Of a machine that was over a budget a moment ago nothing more is
    /// read until its budget has paid for this one; true then. What is no larger than an ack that may be free is not held
    /// up: a recipient can always ack its backlog.
    pub(super) fn paced(&self, bytes: usize) -> bool {
        let refused = self.refused_ms.load(Ordering::Relaxed);
        if refused == 0 || bytes <= FREE_ACK_BYTES {
            return false;
        }
        let now = clock::mono();
        let paced = now.since(Mono(refused)) < PACED_MS;
        if paced {
            let each = (60_000 / self.frames_per_minute.max(1)).max(self.bytes_ms(bytes));
            self.read_after(now.plus(each.min(HOLD_BACK_MOST_MS)));
        }
        paced
    }

    /// In which time the budget pays for so many bytes.
    fn bytes_ms(&self, bytes: usize) -> u64 {
        (bytes as u64).saturating_mul(60_000) / self.bytes_per_minute.max(1)
    }

    fn read_after(&self, time: Mono) {
        self.read_after_ms.fetch_max(time.0, Ordering::Relaxed);
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
    bytes_per_minute: u64,
    frames_per_minute: u64,
}

impl Conns {
    pub(super) fn new(limits: &Limits) -> Self {
        let preauth_bytes = usize::try_from(limits.pre_auth_frame_bytes).unwrap_or(usize::MAX);
        let Limits { bytes_per_minute, frames_per_minute, .. } = *limits;
        Self {
            open: Mutex::default(),
            total: Arc::default(),
            preauth_bytes,
            bytes_per_minute,
            frames_per_minute,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ConnId, Arc<Conn>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection.
    pub(super) fn open(&self, id: ConnId, place: Place) -> Arc<Conn> {
        let conn = Arc::new(Conn::new(id, place, self));
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

    #[test]
    fn a_flood_of_large_frames_is_held_back_for_as_long_as_they_cost() {
        let places = Places::new(&Limits::default());
        let conns = Conns::new(&Limits::default());
        for (bytes, wait_ms, most) in [(200, u64::MAX, 250), (1 << 20, u64::MAX, 1_875), (1 << 20, 30, 30)] {
            let conn = conns.open(ConnId(1), places.take("a").unwrap());
            assert_eq!(conn.held_back(), None);
            conn.heard(bytes);
            conn.hold_back(wait_ms);
            let held = conn.held_back().map_or(0, |held| held.as_millis());
            assert!(held <= most && held * 2 > most, "{held} of {most}");
        }
    }

    #[test]
    fn who_was_over_a_budget_is_read_at_its_pace_but_for_acks() {
        let conns = Conns::new(&Limits::default());
        let conn = conns.open(ConnId(1), Places::new(&Limits::default()).take("a").unwrap());
        assert!(!conn.paced(1_000) && conn.held_back().is_none(), "never refused");
        conn.hold_back(1);
        std::thread::sleep(Duration::from_millis(2));
        assert!(!conn.paced(128) && conn.held_back().is_none());
        let start = std::time::Instant::now();
        assert!(conn.paced(129));
        while conn.held_back().is_some() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(start.elapsed() >= Duration::from_millis(99), "600 a minute: {:?}", start.elapsed());
    }
}
