//! The relay (`messaging/1 §7`): store-and-forward for sealed envelopes, one signed roster per team.
//!
//! [`Relay`] is composed of roles, each with its own rules and tests: `connection` (who is connected, in which
//! phase), `hello`, `teams` (rosters and seats), `send` (the checks of an envelope), `queue` (what waits),
//! `delivery` (what is on its way), `presence`, [`limits`] and [`budget`]. The composer in this file and its
//! children `preauth`, `live`, `members` and `timers` routes: it asks the roles in the order of the specification
//! and says what they answer. Everything durable is in the store ([`schema`]).

pub mod budget;
mod config;
mod connection;
mod damage;
mod delivery;
mod hello;
pub mod io;
pub mod limits;
mod live;
mod members;
mod preauth;
mod presence;
mod queue;
mod say;
pub mod schema;
mod send;
mod teams;
mod timers;

pub use config::Config;
pub use queue::{Gauges, gauges};

use crate::machine::{Label, Machine, Out, Step};
use crate::store::{StoreDown, Txn};
use connection::{Connections, Phase};
use delivery::Deliveries;
use io::{ConnId, Count, Effect, Event, Unreadable};
use limits::{Budgets, Creates};
use messaging_proto::Code;
use messaging_proto::frame::{ClientFrame, Nonce, Parsed, Received, RelayFrame};
use messaging_proto::time::Mono;
use presence::Presences;
use queue::Queue;
use teams::Teams;

/// Close codes (contract wire-core §7.10).
pub(crate) mod close {
    /// The relay stops.
    pub(crate) const STOPPING: u16 = 1001;
    /// A frame is too large.
    pub(crate) const TOO_LARGE: u16 = 1009;
    /// The relay is full.
    pub(crate) const FULL: u16 = 1013;
    /// The `hello` was refused or late.
    pub(crate) const AUTH: u16 = 4001;
    /// The client broke the protocol, or fell silent.
    pub(crate) const PROTOCOL: u16 = 4002;
    /// The machine was removed.
    pub(crate) const REMOVED: u16 = 4003;
    /// The machine connected again.
    pub(crate) const REPLACED: u16 = 4004;
}

/// Why the relay's next deadline is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A connection is late with its `hello`, or may have fallen silent.
    Connection,
    /// A delivery is sent again.
    Redeliver,
    /// A link goes on with its backlog.
    Work,
    /// Envelopes end, or their ids are forgotten.
    Purge,
    /// A removed machine's envelopes are deleted.
    Sweep,
    /// Presences end.
    Presence,
}

/// What is made of the store at [`Event::Start`].
struct Parts {
    teams: Teams,
    queue: Queue,
    presences: Presences,
}

/// The relay's machine.
pub struct Relay {
    config: Config,
    connections: Connections,
    deliveries: Deliveries,
    budgets: Budgets,
    creates: Creates,
    /// Nothing before [`Event::Start`].
    parts: Option<Parts>,
    /// When `queue.full` was logged last.
    full_logged: Option<Mono>,
    /// The store takes no writes.
    failing: bool,
    stopping: bool,
}

/// The store's side, which every event but none before the first finds read.
fn held(parts: &mut Option<Parts>) -> Result<&mut Parts, StoreDown> {
    parts.as_mut().ok_or(StoreDown)
}

/// What the composer's children work with in one step.
struct Turn<'a, 'txn> {
    step: &'a Step,
    txn: &'a mut Txn<'txn>,
    out: &'a mut Out<Effect>,
}

impl Relay {
    /// A relay of which nothing is in memory. Its first event is [`Event::Start`].
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            connections: Connections::new(&config.limits),
            deliveries: Deliveries::new(&config.limits),
            budgets: Budgets::new(&config.limits),
            creates: Creates::default(),
            parts: None,
            full_logged: None,
            failing: false,
            stopping: false,
            config,
        }
    }

    /// Reads the store's side at the first event.
    fn start(&mut self, step: &Step, txn: &mut Txn<'_>) -> Result<(), StoreDown> {
        if self.parts.is_none() {
            schema::opening::record(txn)?;
            self.parts = Some(Parts {
                teams: Teams::start(txn)?,
                queue: Queue::start(step, txn)?,
                presences: Presences::start(step),
            });
        }
        Ok(())
    }
}

impl Machine for Relay {
    type Event = Event;
    type Effect = Effect;
    type Timer = Timer;

    fn handle(
        &mut self,
        step: &Step,
        event: Event,
        store: &mut Txn<'_>,
        out: &mut Out<Effect>,
    ) -> Result<(), StoreDown> {
        if let Event::Store { failing } = event {
            self.failing = failing;
        }
        self.start(step, store)?;
        let turn = &mut Turn { step, txn: store, out };
        self.route(turn, event)?;
        self.clear_damage(turn)
    }

    fn deadline(&self) -> Option<(Mono, Timer)> {
        if self.stopping {
            return None;
        }
        // What is due then would write.
        let parts = self.parts.as_ref().filter(|_| !self.failing);
        [
            self.connections.deadline(),
            self.deliveries.deadline(),
            parts.and_then(|parts| parts.queue.deadline()),
            parts.map(|parts| parts.presences.deadline()),
        ]
        .into_iter()
        .flatten()
        .min_by_key(|(at, _)| *at)
    }

    fn timer_event() -> Event {
        Event::Timer
    }
}

impl Relay {
    fn route(&mut self, turn: &mut Turn<'_, '_>, event: Event) -> Result<(), StoreDown> {
        match event {
            Event::Start => Ok(()),
            Event::Opened { conn, address } => {
                self.opened(turn, conn, address);
                Ok(())
            }
            Event::Resumed { conn, team, machine, .. } => self.resumed(turn, conn, team, machine),
            Event::Frame { conn, frame } => self.frame(turn, conn, &frame),
            Event::Unreadable { conn, why } => {
                let code = match why {
                    Unreadable::TooLarge => close::TOO_LARGE,
                    Unreadable::Binary => close::PROTOCOL,
                };
                if self
                    .connections
                    .heard(conn, turn.step.mono)
                    .is_some_and(|phase| !matches!(phase, Phase::Closing))
                {
                    self.drop_connection(turn, conn, code);
                }
                Ok(())
            }
            Event::Alive { conn } => {
                self.connections.heard(conn, turn.step.mono);
                Ok(())
            }
            Event::Drained { conn } => self.drained(turn, conn),
            Event::Closed { conn } => {
                let gone = self.connections.ended(conn);
                self.left(turn, gone);
                Ok(())
            }
            Event::Store { failing: true } => Ok(()),
            Event::Store { failing: false } => self.recovered(turn),
            Event::Timer => self.timer(turn),
            Event::Stop => {
                self.stop(turn);
                Ok(())
            }
        }
    }

    fn opened(&mut self, turn: &mut Turn<'_, '_>, conn: ConnId, address: String) {
        let nonce = Nonce(turn.step.draw(Label::Challenge));
        self.connections.open(conn, turn.step.mono, address, nonce);
        if self.stopping {
            self.drop_connection(turn, conn, close::STOPPING);
            return;
        }
        // §7 Connecting: the challenge comes first, at once.
        let relay = std::sync::Arc::clone(&self.config.relay_id);
        turn.say(conn, RelayFrame::Challenge { relay, nonce });
    }

    fn frame(
        &mut self,
        turn: &mut Turn<'_, '_>,
        conn: ConnId,
        frame: &Received<ClientFrame>,
    ) -> Result<(), StoreDown> {
        if self.stopping {
            return Ok(());
        }
        let Some(phase) = self.connections.heard(conn, turn.step.mono) else { return Ok(()) };
        if matches!(phase, Phase::Closing) {
            return Ok(());
        }
        turn.out.push(Effect::Count(Count::FrameIn(frame.t())));
        if matches!(frame.parsed, Parsed::Malformed) {
            return self.refuse_connection(turn, conn, Code::InvalidRequest, close::PROTOCOL);
        }
        match phase {
            Phase::Awaiting(awaiting) => {
                awaiting.frames += 1;
                let awaiting = awaiting.clone();
                self.before_hello(turn, conn, &awaiting, frame)
            }
            Phase::Live(live) => {
                let live = *live;
                self.after_hello(turn, conn, live, frame)
            }
            Phase::Closing => Ok(()),
        }
    }

    fn stop(&mut self, turn: &mut Turn<'_, '_>) {
        if !std::mem::replace(&mut self.stopping, true) {
            for conn in self.connections.open_ones() {
                self.connections.close(conn);
                turn.close(conn, close::STOPPING);
            }
            turn.out.push(Effect::Stopped);
        }
    }
}
