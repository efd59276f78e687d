//! The relay's sockets around a machine that only plays one.

pub(super) mod client;
mod damage;
mod failing;
mod fatal;
mod http;
mod sizes;
mod sockets;
mod tls;

use super::service::start_at;
use super::{RelayOptions, Running};
use crate::log::Log;
use crate::store::Location;
use crate::store::fault::Faults;
use client::Client;
use messaging_machines::relay::io::{Count, Effect, Event, Unreadable};
use messaging_machines::relay::limits::Limits;
use messaging_machines::{Machine, Out, Step, StoreDown, Table, Txn};
use messaging_proto::Code;
use messaging_proto::frame::{ClientFrame, Parsed, RelayFrame};
use messaging_proto::hash::sha256;
use messaging_proto::key::SigningKey;
use messaging_proto::time::Mono;
use std::collections::BTreeSet;

const T: Table = messaging_machines::relay::schema::COUNT;

/// A ping with this `n` authenticates the connection.
const HELLO: u64 = 1;
/// A ping with this `n` makes the relay say much more than a socket may buffer.
const FLOOD: u64 = 2;
/// A ping with this `n` is answered once everything before it left.
const MARK: u64 = 3;
/// A ping with this `n` is answered with the number of signs of life that were no frames.
const ALIVE: u64 = 4;
/// A ping from this `n` on is stored before its pong.
const STORE: u64 = 1_000;

/// A sync from here is over the budget.
const REFUSE: i64 = 1 << 40;

/// Whether the fake writes for a frame.
fn writes(frame: &Parsed<ClientFrame>) -> bool {
    matches!(frame, Parsed::Frame(ClientFrame::RosterSync { after: -1, .. }))
        || matches!(frame, Parsed::Frame(ClientFrame::Ping { n: Some(n) }) if *n >= STORE)
}

/// Answers pings; everything else as the relay does.
#[derive(Default)]
struct Fake {
    open: BTreeSet<u64>,
    alive: u64,
    failing: bool,
}

impl Machine for Fake {
    type Event = Event;
    type Effect = Effect;
    type Timer = ();

    fn handle(
        &mut self,
        _: &Step,
        event: Event,
        store: &mut Txn<'_>,
        out: &mut Out<Effect>,
    ) -> Result<(), StoreDown> {
        match event {
            Event::Opened { conn, address } => {
                self.open.insert(conn.0);
                let nonce = messaging_proto::frame::Nonce([7; 32]);
                out.push(Effect::Send {
                    conn,
                    frame: RelayFrame::Challenge { relay: address.into(), nonce },
                });
            }
            Event::Resumed { conn, .. } => {
                self.open.insert(conn.0);
                let rows = store.prefix(T, b"", 100)?.len() as u64;
                out.push(Effect::Send { conn, frame: RelayFrame::Ping { n: Some(rows) } });
            }
            Event::Frame { conn, frame } if self.failing && writes(&frame.parsed) => {
                let refusal = match frame.id() {
                    Some(id) => RelayFrame::nack(id, Code::Internal),
                    None => RelayFrame::error(Code::Internal),
                };
                out.push(Effect::Send { conn, frame: refusal });
            }
            Event::Frame { conn, frame } => {
                out.push(Effect::Count(Count::FrameIn(frame.t())));
                match &frame.parsed {
                    Parsed::Frame(ClientFrame::Ping { n: Some(n) }) => {
                        match *n {
                            HELLO => out.push(Effect::Authenticated {
                                conn,
                                team: sha256(b"team"),
                                machine: SigningKey::from_seed([1; 32]).machine(),
                            }),
                            FLOOD => {
                                let entry: std::sync::Arc<str> =
                                    format!("{{\"e\":\"{}\"}}", "x".repeat(1 << 20)).into();
                                for _ in 0..40 {
                                    let frame = RelayFrame::Roster { entry: entry.clone() };
                                    out.push(Effect::Send { conn, frame });
                                }
                            }
                            ALIVE => {
                                let frame = RelayFrame::Ping { n: Some(self.alive) };
                                out.push(Effect::Send { conn, frame });
                            }
                            MARK => out.push(Effect::Mark { conn }),
                            n if n >= STORE => store.put(T, &n.to_be_bytes(), b"x"),
                            _ => {}
                        }
                        out.push(Effect::Send { conn, frame: RelayFrame::Pong { n: Some(*n) } });
                    }
                    Parsed::Frame(ClientFrame::RosterSync { req, after: REFUSE }) => {
                        let frame = RelayFrame::Nack {
                            id: req.as_str().to_owned(),
                            code: Code::RateLimited,
                            message: None,
                            retry_after_ms: Some(1),
                        };
                        out.push(Effect::Send { conn, frame });
                    }
                    // Reads the row of this number, or writes one.
                    Parsed::Frame(ClientFrame::RosterSync { req, after }) => {
                        match u64::try_from(*after) {
                            Ok(row) => drop(store.get(T, &row.to_be_bytes())?),
                            Err(_) => store.put(T, b"sync", b"x"),
                        }
                        let frame = RelayFrame::nack(req.as_str(), Code::NotFound);
                        out.push(Effect::Send { conn, frame });
                    }
                    Parsed::Malformed => {
                        out.push(Effect::Send { conn, frame: RelayFrame::error(Code::InvalidRequest) });
                        out.push(Effect::Close { conn, code: 4002 });
                    }
                    _ => {}
                }
            }
            Event::Unreadable { conn, why } => {
                let code = if why == Unreadable::TooLarge { 1009 } else { 4002 };
                out.push(Effect::Close { conn, code });
            }
            Event::Drained { conn } => {
                out.push(Effect::Send { conn, frame: RelayFrame::Ping { n: Some(MARK) } });
            }
            Event::Closed { conn } => {
                self.open.remove(&conn.0);
            }
            Event::Stop => {
                for conn in &self.open {
                    let conn = messaging_machines::relay::io::ConnId(*conn);
                    out.push(Effect::Close { conn, code: 1001 });
                }
                out.push(Effect::Stopped);
            }
            Event::Alive { .. } => self.alive += 1,
            Event::Store { failing } => self.failing = failing,
            Event::Start | Event::Timer => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<(Mono, ())> {
        None
    }

    fn timer_event() -> Event {
        Event::Timer
    }
}

/// A relay around [`Fake`].
struct World {
    relay: Running,
    log: Log,
    faults: Faults,
    _dir: tempfile::TempDir,
}

fn world(change: impl FnOnce(&mut RelayOptions)) -> World {
    let dir = tempfile::tempdir().unwrap();
    let mut options = RelayOptions::new("127.0.0.1:0", dir.path().join("relay.db"));
    options.limits = Limits { buffered_bytes: 64 << 20, ..Limits::default() };
    change(&mut options);
    let faults = Faults::default();
    let log = Log::kept();
    let location = Location::with_faults(&options.db, faults.clone());
    let relay = start_at(&options, location, &log, Box::new(|| {}), |_| Fake::default()).unwrap();
    World { relay, log, faults, _dir: dir }
}

impl World {
    /// A connection that took its challenge.
    fn client(&self) -> Client {
        let mut client = Client::connect(self.relay.address).unwrap();
        assert!(client.text().contains("challenge"));
        client
    }

    /// A connection the fake calls authenticated.
    fn authenticated(&self) -> Client {
        let mut client = self.client();
        client.ping(HELLO);
        client
    }
}
