//! Connections and their phases (`messaging/1 §7`, "Connecting"; contract wire-core §7.3).

use super::Timer;
use super::io::ConnId;
use super::limits::Limits;
use super::schema::Seat;
use messaging_proto::frame::Nonce;
use messaging_proto::hash::RealmId;
use messaging_proto::key::{ByText, MachineId};
use messaging_proto::time::Mono;
use std::collections::{BTreeMap, BTreeSet};

/// Connections given up in one step.
const BUDGET: usize = 256;

/// Where a connection is in its life. Each phase owns only what it may use.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// Nobody knows who it is.
    Awaiting(Awaiting),
    /// It said a valid `hello`.
    Live(Live),
    /// The relay closed it; whatever still comes is ignored.
    Closing,
}

/// A connection before `hello`.
#[derive(Clone, Debug)]
pub(super) struct Awaiting {
    /// The client's address: for limits only.
    pub(super) address: String,
    /// What its `hello` or `join` signs.
    pub(super) nonce: Nonce,
    /// Frames so far.
    pub(super) frames: u64,
}

/// An authenticated connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    pub(super) team: RealmId,
    pub(super) machine: MachineId,
    pub(super) seat: Seat,
}

/// Why a connection is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// No valid `hello` in time.
    Hello,
    /// No frame in time.
    Silent,
}

struct Connection {
    phase: Phase,
    heard: Mono,
    /// Its entry in the watch list.
    watch: Mono,
}

pub(super) struct Connections {
    hello_timeout_ms: u64,
    silence_ms: u64,
    all: BTreeMap<ConnId, Connection>,
    /// The one connection of each machine of a team. One key in two teams is a machine of each, as it has a queue in each.
    /// By text, as `welcome` lists them; the key without a machine is none, and before all of its team.
    live: BTreeMap<(RealmId, Option<ByText>), ConnId>,
    /// When to look at a connection again; it may have been heard since.
    watch: BTreeSet<(Mono, ConnId)>,
}

impl Connections {
    pub(super) const fn new(limits: &Limits) -> Self {
        Self {
            hello_timeout_ms: limits.hello_timeout_ms,
            silence_ms: limits.silence_ms,
            all: BTreeMap::new(),
            live: BTreeMap::new(),
            watch: BTreeSet::new(),
        }
    }

    /// A connection that has to say who it is.
    pub(super) fn open(&mut self, conn: ConnId, now: Mono, address: String, nonce: Nonce) {
        let watch = now.plus(self.hello_timeout_ms);
        self.put(conn, Phase::Awaiting(Awaiting { address, nonce, frames: 0 }), now, watch);
    }

    /// Makes a connection its machine's one. The one before it, if any, is closing from now on.
    pub(super) fn authenticate(&mut self, conn: ConnId, now: Mono, live: Live) -> Option<ConnId> {
        let key = (live.team, Some(ByText(live.machine)));
        let before = self.live.insert(key, conn).filter(|before| *before != conn);
        if let Some(before) = before {
            self.set_closing(before);
        }
        self.put(conn, Phase::Live(live), now, now.plus(self.silence_ms));
        before
    }

    /// The relay closes a connection; what it was until now.
    pub(super) fn close(&mut self, conn: ConnId) -> Option<Live> {
        let live = self.leave(conn);
        self.set_closing(conn);
        live
    }

    /// A connection ended; what it was until now.
    pub(super) fn ended(&mut self, conn: ConnId) -> Option<Live> {
        let live = self.leave(conn);
        if let Some(gone) = self.all.remove(&conn) {
            self.watch.remove(&(gone.watch, conn));
        }
        live
    }

    /// A frame came: its connection is alive.
    pub(super) fn heard(&mut self, conn: ConnId, now: Mono) -> Option<&mut Phase> {
        let connection = self.all.get_mut(&conn)?;
        connection.heard = now;
        Some(&mut connection.phase)
    }

    pub(super) fn live(&self, conn: ConnId) -> Option<Live> {
        match self.all.get(&conn)?.phase {
            Phase::Live(live) => Some(live),
            Phase::Awaiting(_) | Phase::Closing => None,
        }
    }

    /// The connection of a machine.
    pub(super) fn of(&self, team: &RealmId, machine: &MachineId) -> Option<ConnId> {
        self.live.get(&(*team, Some(ByText(*machine)))).copied()
    }

    /// The online machines of a team, ascending by their text (contract wire-core §7.2, `welcome`).
    pub(super) fn online(&self, team: &RealmId) -> impl Iterator<Item = (MachineId, ConnId)> {
        let team = *team;
        let from = self.live.range((team, None)..);
        from.take_while(move |((of, _), _)| *of == team)
            .filter_map(|((_, machine), conn)| machine.map(|machine| (machine.0, *conn)))
    }

    /// How many are authenticated.
    pub(super) fn authenticated(&self) -> u64 {
        self.live.len() as u64
    }

    /// Every connection that is not closing yet.
    pub(super) fn open_ones(&self) -> Vec<ConnId> {
        let open =
            |(conn, one): (&ConnId, &Connection)| (!matches!(one.phase, Phase::Closing)).then_some(*conn);
        self.all.iter().filter_map(open).collect()
    }

    /// Connections whose time is over, at most some of them. The caller closes each.
    pub(super) fn late(&mut self, now: Mono) -> Vec<(ConnId, Late)> {
        let mut late = Vec::new();
        for _ in 0..BUDGET {
            let Some((at, conn)) = self.watch.first().copied().filter(|(at, _)| *at <= now) else { break };
            self.watch.remove(&(at, conn));
            let Some(connection) = self.all.get_mut(&conn) else { continue };
            match connection.phase {
                Phase::Awaiting(_) => late.push((conn, Late::Hello)),
                // §7.1 Liveness.
                Phase::Live(_) if now.since(connection.heard) >= self.silence_ms => {
                    late.push((conn, Late::Silent))
                }
                Phase::Live(_) => {
                    connection.watch = connection.heard.plus(self.silence_ms);
                    self.watch.insert((connection.watch, conn));
                }
                Phase::Closing => {}
            }
        }
        late
    }

    /// When this wants a step, and which.
    pub(super) fn deadline(&self) -> Option<(Mono, Timer)> {
        self.watch.first().map(|(at, _)| (*at, Timer::Connection))
    }

    fn put(&mut self, conn: ConnId, phase: Phase, heard: Mono, watch: Mono) {
        if let Some(before) = self.all.insert(conn, Connection { phase, heard, watch }) {
            self.watch.remove(&(before.watch, conn));
        }
        self.watch.insert((watch, conn));
    }

    fn set_closing(&mut self, conn: ConnId) {
        if let Some(connection) = self.all.get_mut(&conn) {
            connection.phase = Phase::Closing;
            self.watch.remove(&(connection.watch, conn));
        }
    }

    /// Takes a live connection out of the online list. A replaced one is closing already, and not in it.
    fn leave(&mut self, conn: ConnId) -> Option<Live> {
        let live = self.live(conn)?;
        self.live.remove(&(live.team, Some(ByText(live.machine))));
        Some(live)
    }
}
