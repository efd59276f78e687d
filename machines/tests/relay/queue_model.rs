//! A model of the queue: any interleaving of sends, acks, redeliveries, reconnects, expiries, removals and
//! crashes keeps what `ack relayed` promises.

use crate::support::{Client, Crash, World};
use messaging_machines::relay::Config;
use messaging_machines::relay::io::{ConnId, Effect, Event};
use messaging_machines::relay::schema::{
    COUNT, COUNT_QUEUE, EnvelopeRow, IdKey, OrderRow, Position, QueueCounts, SEAT, SEEN, Seat, SeenRow,
    order_of, seat_key, seen_key,
};
use messaging_machines::store::Base;
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, RelayFrame};
use messaging_proto::json::{Value, parse_wire};
use messaging_proto::key::MachineId;
use messaging_proto::limits::CLOCK_SKEW_MS;
use messaging_proto::ulid::Ulid;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const CLIENTS: usize = 4;
const WINDOW: usize = 3;
const PER_SENDER: usize = 6;
const PER_MACHINE: usize = 10;

#[derive(Clone, Debug)]
enum Act {
    /// One client sends another an envelope that ends after so many seconds.
    Send { from: usize, to: usize, ttl: u64 },
    /// A client sends one of its envelopes again.
    Resend { pick: usize },
    /// A client acks one of what it was delivered; perhaps one it acked before.
    Ack { pick: usize },
    /// A client connects, replacing its connection.
    Connect { client: usize },
    /// A connection ends.
    Close { client: usize },
    /// Time passes, in milliseconds.
    Pass { ms: u64 },
    /// The wall clock alone goes back or forth.
    Jump { back: bool, ms: u64 },
    /// What is open becomes durable.
    Commit,
    /// The machine is lost. Its connections are, too, or the next machine takes them over.
    Crash { phantom: bool, resume: bool },
    /// The last client is removed.
    Remove,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => (0..CLIENTS, 0..CLIENTS, 1_u64..400)
            .prop_map(|(from, to, ttl)| Act::Send { from, to, ttl }),
        3 => any::<usize>().prop_map(|pick| Act::Resend { pick }),
        10 => any::<usize>().prop_map(|pick| Act::Ack { pick }),
        4 => (0..CLIENTS).prop_map(|client| Act::Connect { client }),
        2 => (0..CLIENTS).prop_map(|client| Act::Close { client }),
        4 => (1_u64..30_000).prop_map(|ms| Act::Pass { ms }),
        1 => (60_000_u64..600_000).prop_map(|ms| Act::Pass { ms }),
        1 => (any::<bool>(), 1_u64..200_000).prop_map(|(back, ms)| Act::Jump { back, ms }),
        5 => Just(Act::Commit),
        3 => any::<(bool, bool)>().prop_map(|(phantom, resume)| Act::Crash { phantom, resume }),
        1 => Just(Act::Remove),
    ]
}

type Key = (MachineId, Ulid);

/// What the model knows of an envelope.
struct Sent {
    env: Arc<str>,
    from: usize,
    to: usize,
    exp: u64,
    /// An `ack relayed` was said.
    relayed: bool,
    /// Its recipient said `recv.ack`, and that was durable or may be.
    acked: bool,
}

struct Model {
    world: World,
    clients: Vec<Client>,
    conns: Vec<Option<ConnId>>,
    sent: BTreeMap<Key, Sent>,
    /// What each connection was delivered and has not acked, by sender.
    flights: BTreeMap<ConnId, BTreeSet<Key>>,
    /// What each connection was ever delivered.
    seen_on: BTreeMap<ConnId, BTreeSet<Key>>,
    /// The place of the last first delivery by connection and sender.
    last: BTreeMap<(ConnId, usize), Position>,
    /// Everything anybody was delivered, in order.
    delivered: Vec<(usize, Key)>,
    removed: bool,
    /// The wall clock was set; times are not judged to the millisecond any more.
    jumped: bool,
}

impl Model {
    fn new() -> Self {
        let clients: Vec<Client> = (1..=CLIENTS as u8).map(Client::new).collect();
        let mut config = Config::new("wss://relay.example");
        config.limits.delivery_window = WINDOW as u64;
        config.limits.queue_per_sender = PER_SENDER as u64;
        config.limits.queue_per_machine = PER_MACHINE as u64;
        config.limits.frames_per_minute = 1_000_000;
        let mut world = World::team(config, &clients);
        world.commits = false;
        Self {
            world,
            clients,
            conns: vec![None; CLIENTS],
            sent: BTreeMap::new(),
            flights: BTreeMap::new(),
            seen_on: BTreeMap::new(),
            last: BTreeMap::new(),
            delivered: Vec::new(),
            removed: false,
            jumped: false,
        }
    }

    fn run(&mut self, act: &Act) {
        match *act {
            Act::Send { from, to, ttl } => self.send(from, to, ttl),
            Act::Resend { pick } => {
                let Some((_, sent)) = self.sent.iter().nth(pick % self.sent.len().max(1)) else { return };
                let (from, env) = (sent.from, Arc::clone(&sent.env));
                let Some(conn) = self.conns[from] else { return };
                let said = self.world.send(conn, &env);
                self.hear(&said);
            }
            Act::Ack { pick } => {
                let Some((to, key)) = self.delivered.get(pick % self.delivered.len().max(1)).copied() else {
                    return;
                };
                self.ack(to, key);
            }
            Act::Connect { client } => self.connect(client),
            Act::Close { client } => {
                if let Some(conn) = self.conns[client].take() {
                    let said = self.world.close(conn);
                    self.hear(&said);
                }
            }
            Act::Pass { ms } => self.pass(ms),
            Act::Jump { back, ms } => {
                self.jumped = true;
                let wall = self.world.wall;
                self.world.wall = if back { wall.minus(ms) } else { wall.plus(ms) };
            }
            Act::Commit => {
                let said = self.world.commit();
                self.hear(&said);
            }
            Act::Crash { phantom, resume } => {
                self.world.crash(if phantom { Crash::Phantom } else { Crash::Lost });
                if !resume {
                    self.conns = vec![None; CLIENTS];
                }
                let team = self.world.team_id();
                for (client, conn) in self.conns.clone().into_iter().enumerate() {
                    let Some(conn) = conn else { continue };
                    // The link begins afresh.
                    self.last.retain(|(one, _), _| *one != conn);
                    let (address, machine) = (String::new(), self.clients[client].machine());
                    let said = self.world.step(Event::Resumed { conn, address, team, machine });
                    self.hear(&said);
                }
            }
            Act::Remove => self.remove(),
        }
    }

    fn send(&mut self, from: usize, to: usize, ttl: u64) {
        let Some(conn) = self.conns[from] else { return };
        let mut draft = self.world.draft(&self.clients[from], &self.clients[to]);
        let exp = self.world.wall.0 + ttl * 1_000;
        draft.set("exp", Value::int(exp));
        let env = draft.sign(&self.clients[from]);
        let key = (self.clients[from].machine(), draft.ulid());
        let sent = Sent { env: Arc::clone(&env), from, to, exp, relayed: false, acked: false };
        self.sent.insert(key, sent);
        let said = self.world.send(conn, &env);
        self.hear(&said);
    }

    fn ack(&mut self, to: usize, key: Key) {
        let Some(conn) = self.conns[to] else { return };
        if let Some(sent) = self.sent.get_mut(&key) {
            sent.acked = true;
        }
        if let Some(flights) = self.flights.get_mut(&conn) {
            flights.remove(&key);
        }
        let said = self.world.say(conn, &ClientOutbound::RecvAck { from: key.0, id: key.1 });
        self.hear(&said);
    }

    fn connect(&mut self, client: usize) {
        if self.removed && client == CLIENTS - 1 {
            return;
        }
        let said = self.world.commit();
        self.hear(&said);
        if let Some(older) = self.conns[client].take() {
            self.flights.remove(&older);
        }
        let (conn, said) = self.world.connect(&self.clients[client]);
        self.conns[client] = Some(conn);
        self.hear(&said);
    }

    /// Time passes, in pieces that keep every connection alive.
    fn pass(&mut self, ms: u64) {
        let mut left = ms;
        while left > 0 {
            let piece = left.min(50_000);
            left -= piece;
            let said = self.world.pass(piece);
            self.hear(&said);
            for conn in self.conns.clone().into_iter().flatten() {
                let said = self.world.say(conn, &ClientOutbound::Pong { n: None });
                self.hear(&said);
            }
        }
    }

    fn remove(&mut self) {
        let Some(admin) = self.conns[0] else { return };
        // No entry can be much older than the one before it, however far the clock went back.
        let backdated = self.world.wall.plus(CLOCK_SKEW_MS) < self.world.roster.head_ts().unwrap();
        if self.removed || backdated {
            return;
        }
        let said = self.world.commit();
        self.hear(&said);
        self.removed = true;
        self.world.commits = true;
        let last = self.clients[CLIENTS - 1].machine();
        let entry = self.world.author(&self.clients[0]).member_remove(&last).unwrap();
        let said = self.world.append_ok(admin, &entry);
        self.hear(&said);
        self.world.commits = false;
        self.conns[CLIENTS - 1] = None;
    }

    /// Looks at what was said, all of which is durable.
    fn hear(&mut self, said: &[Effect]) {
        for effect in said {
            let Effect::Send { conn, frame } = effect else { continue };
            match frame {
                RelayFrame::Ack { id } => {
                    let sender = self.sent.iter_mut().find(|((_, one), _)| one == id);
                    sender.expect("only what was sent is acked").1.relayed = true;
                }
                RelayFrame::Deliver { env } => self.deliver(*conn, env),
                RelayFrame::Nack { code, .. } => {
                    assert!(
                        matches!(code, Code::RateLimited | Code::Expired | Code::NotMember),
                        "{code:?} for an honest client"
                    );
                }
                _ => {}
            }
        }
    }

    fn deliver(&mut self, conn: ConnId, env: &Arc<str>) {
        let value = parse_wire(env.as_bytes(), 1 << 20).unwrap();
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap().to_owned();
        let id = Ulid::parse(&text(value.get("id"))).unwrap();
        let from = MachineId::parse(&text(value.get("from").and_then(|from| from.get("device")))).unwrap();
        let key = (from, id);
        let sent = self.sent.get(&key).expect("only what was sent is delivered");
        assert_eq!(sent.env, *env, "as it was sent");
        let to = sent.to;
        let last = CLIENTS - 1;
        assert!(!self.removed || (sent.from != last && to != last), "nothing of or for a removed machine");
        if self.conns[to] != Some(conn) {
            // Said before the connection was replaced; the client is gone.
            return;
        }
        let first = self.seen_on.entry(conn).or_default().insert(key);
        if let Some(position) = self.position(&key).filter(|_| first) {
            // Order per sender: first deliveries on a link go by their places in the queue.
            let last = self.last.entry((conn, sent.from)).or_insert(position);
            assert!(*last <= position, "in queue order");
            *last = position;
        }
        let flights = self.flights.entry(conn).or_default();
        if !sent.acked {
            flights.insert(key);
        }
        let wall = self.world.wall.0;
        let of_sender =
            flights.iter().filter(|one| one.0 == from && (self.jumped || self.sent[*one].exp > wall)).count();
        assert!(of_sender <= WINDOW || self.jumped, "the window holds");
        self.delivered.push((to, key));
    }

    /// Where the queue put an envelope, unless its id is forgotten.
    fn position(&self, (from, id): &Key) -> Option<Position> {
        let row = |table, key: &[u8]| self.world.base.get(table, key).unwrap();
        let seat = row(SEAT, &seat_key(&self.world.team_id(), from))?;
        let seat = Seat::decode(&seat).unwrap();
        let seen = row(SEEN, &seen_key(seat, IdKey::from(id)))?;
        Some(SeenRow::decode(&seen).unwrap().position)
    }

    /// The rows of the store agree with each other.
    fn check_rows(&self) {
        let mut places = BTreeSet::new();
        let (mut rows, mut bytes) = (0, 0);
        let mut per_pair: BTreeMap<(Seat, Seat), usize> = BTreeMap::new();
        let mut per_machine: BTreeMap<Seat, usize> = BTreeMap::new();
        let mut ids = BTreeSet::new();
        let mut texts = BTreeMap::new();
        let mut counts = QueueCounts::default();
        for (table, key, row) in self.world.base.iter() {
            match table.0 {
                "relay.order" => {
                    let (to, from, position) = order_of(key).unwrap();
                    let order = OrderRow::decode(row).unwrap();
                    assert!(places.insert(position), "one place, one envelope");
                    assert!(ids.insert((from, order.id)), "never two rows for one id");
                    rows += 1;
                    bytes += u64::from(order.size);
                    *per_pair.entry((to, from)).or_default() += 1;
                    *per_machine.entry(to).or_default() += 1;
                }
                "relay.envelope" => {
                    let position = u64::from_be_bytes(key.try_into().unwrap());
                    texts.insert(position, EnvelopeRow::decode(row).unwrap().text.len() as u64);
                }
                name if name == COUNT.0 && key == COUNT_QUEUE => counts = QueueCounts::decode(row).unwrap(),
                _ => {}
            }
        }
        assert_eq!((counts.rows, counts.bytes), (rows, bytes));
        assert_eq!(
            places.iter().map(|place| place.0).collect::<Vec<_>>(),
            texts.keys().copied().collect::<Vec<_>>()
        );
        assert_eq!(texts.values().sum::<u64>(), bytes);
        assert!(places.iter().all(|place| place.0 < counts.next), "positions are not reused");
        assert_eq!(self.world.count_rows("relay.seen"), self.world.count_rows("relay.expiry"));
        assert!(ids.len() <= self.world.count_rows("relay.seen"), "what waits is known");
        if !self.jumped {
            // Rows that have ended wait for the purge, so counts may be above the caps by those alone.
            let wall = self.world.wall.0;
            let ended = self.sent.values().filter(|sent| sent.exp <= wall).count();
            assert!(per_pair.values().all(|count| *count <= PER_SENDER + ended));
            assert!(per_machine.values().all(|count| *count <= PER_MACHINE + ended));
        }
        if self.removed {
            let last = self.clients[CLIENTS - 1].machine();
            let key = seat_key(&self.world.team_id(), &last);
            assert!(self.world.base.iter().all(|(table, one, _)| table.0 != "relay.seat" || one != key));
        }
    }

    /// Faults end: everybody connects, acks all it is sent, and nothing that was promised is missing.
    fn heal(&mut self) {
        let said = self.world.commit();
        self.hear(&said);
        self.world.commits = true;
        for client in 0..CLIENTS {
            self.connect(client);
        }
        let expected: Vec<Key> = self
            .sent
            .iter()
            .filter(|(_, sent)| sent.relayed && !sent.acked && sent.exp > self.world.wall.0)
            .filter(|(_, sent)| !self.removed || (sent.from != CLIENTS - 1 && sent.to != CLIENTS - 1))
            .map(|(key, _)| *key)
            .collect();
        let mut done = 0;
        while let Some((to, key)) = self.delivered.get(done).copied() {
            done += 1;
            self.ack(to, key);
        }
        let on_links: BTreeSet<Key> = self
            .conns
            .iter()
            .flatten()
            .filter_map(|conn| self.seen_on.get(conn))
            .flatten()
            .copied()
            .collect();
        if !self.jumped {
            for key in &expected {
                assert!(on_links.contains(key), "acked relayed, and never delivered: {}", key.1);
            }
        }
        // What is sent again, or only now that something ended, is acked as well.
        for _ in 0..10 {
            self.pass(70_000);
            while let Some((to, key)) = self.delivered.get(done).copied() {
                done += 1;
                self.ack(to, key);
            }
        }
        assert_eq!(self.world.count_rows("relay.order"), 0, "everything was delivered, or ended");
        assert_eq!(self.world.count_rows("relay.sweep"), 0);
        self.check_rows();
        // Every window is whole again.
        if let (Some(from), Some(_)) = (self.conns[0], self.conns[1]) {
            let before = self.delivered.len();
            for _ in 0..PER_SENDER {
                self.send(0, 1, 300);
            }
            assert_eq!(self.delivered.len() - before, WINDOW, "never stuck: {from:?}");
            while let Some((to, key)) = self.delivered.get(done).copied() {
                done += 1;
                self.ack(to, key);
            }
        }
        // Ids are forgotten in their time.
        let exp = self.sent.values().map(|sent| sent.exp).max().unwrap_or(0);
        self.conns
            .iter()
            .flatten()
            .copied()
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|conn| drop(self.world.close(conn)));
        self.world.wall = messaging_proto::time::Wall(self.world.wall.0.max(exp) + CLOCK_SKEW_MS + 1);
        self.world.pass(61_000);
        assert_eq!(self.world.count_rows("relay.seen"), 0);
        assert_eq!(self.world.count_rows("relay.expiry"), 0);
        assert_eq!(self.world.count_rows("relay.envelope"), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn every_interleaving_keeps_the_promises(acts in prop::collection::vec(act(), 1..120)) {
        let mut model = Model::new();
        for client in 0..CLIENTS {
            model.connect(client);
        }
        for act in &acts {
            model.run(act);
            model.check_rows();
        }
        model.heal();
    }
}
