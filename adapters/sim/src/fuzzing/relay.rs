//! Target `relay_machine`: a relay whose connections say anything in any order, while its store fails and its clock jumps.

use super::events;
use super::relay_events::{FRAMES, Happens};
use crate::invariants::{Invariants, Watcher};
use crate::world::{Commit, START, Watch, Who};
use messaging_machines::machine::{Machine, Out, Step};
use messaging_machines::relay::io::{ConnId, Effect, Event, Unreadable};
use messaging_machines::relay::{Config, Relay, schema};
use messaging_machines::store::{MemoryBase, Txn, Writes};
use messaging_proto::domain::Domain;
use messaging_proto::frame::{ClientOutbound, HelloClaim, Nonce, Received, RelayFrame, Req, sign_hello};
use messaging_proto::hash::{Hash, RealmId, sha256};
use messaging_proto::json::{Object, Value, canonicalize, parse_wire};
use messaging_proto::key::{EncSecret, MachineId, SigningKey};
use messaging_proto::limits::FRAME_BYTES;
use messaging_proto::name::{Label, PersonName, TeamName};
use messaging_proto::realm::{Head, Role};
use messaging_proto::roster::{ApplyOptions, Author, Member, Roster, genesis};
use messaging_proto::time::{Mono, Wall};
use messaging_proto::ulid::Ulid;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

const RELAY: &str = "wss://relay.example";
/// Members, then one who is none.
const CLIENTS: u8 = 4;
const PER_MACHINE: u64 = 5;

/// A connection as the adapter has it.
#[derive(Default)]
struct Conn {
    nonce: Option<Nonce>,
    machine: Option<MachineId>,
    closing: bool,
}

struct Net {
    relay: Relay,
    base: MemoryBase,
    config: Config,
    keys: Vec<SigningKey>,
    roster: Roster,
    conns: BTreeMap<ConnId, Conn>,
    marks: BTreeSet<ConnId>,
    next: u64,
    mono: u64,
    wall: u64,
    steps: u64,
    stopped: bool,
    fail: Option<bool>,
    seen: Rc<RefCell<Invariants>>,
    said: Hash,
}

fn member(key: &SigningKey, number: u8) -> Option<Member> {
    Some(Member {
        machine: key.machine(),
        enc: EncSecret::from_bytes([number + 9; 32]).public(),
        person: PersonName::parse(&format!("p{}", number / 2))?.into(),
        role: if number == 0 { Role::Admin } else { Role::Member },
        label: Label::parse(&format!("m{number}"))?,
    })
}

impl Net {
    fn new() -> Option<Self> {
        let mut config = Config::new(RELAY);
        // Small, so that a short run meets every limit.
        let limits = &mut config.limits;
        (limits.queue_per_sender, limits.queue_per_machine, limits.delivery_window) = (3, PER_MACHINE, 2);
        (limits.connections, limits.frames_per_minute) = (3, 40);
        let keys: Vec<SigningKey> = (1..=CLIENTS).map(|seed| SigningKey::from_seed([seed; 32])).collect();
        let mut roster = Roster::new();
        let (start, name) = (Wall(START), TeamName::parse("Blue")?);
        let first = genesis(&keys[0], start, &name, &member(&keys[0], 0)?).ok()?;
        roster.apply(&first, ApplyOptions::STORED).ok()?;
        let mut net = Self {
            relay: Relay::new(config.clone()),
            base: MemoryBase::default(),
            config,
            keys,
            roster,
            conns: BTreeMap::new(),
            marks: BTreeSet::new(),
            next: 0,
            mono: 1_000,
            wall: START,
            steps: 0,
            stopped: false,
            fail: None,
            seen: Rc::new(RefCell::new(Invariants::new("never-in-any-text"))),
            said: Hash([0; 32]),
        };
        net.step(Event::Start);
        let conn = net.open();
        net.say(conn, &append_text(&first)?);
        net.login(0);
        for number in 1..CLIENTS - 1 {
            let conn = *net.conns.iter().find(|(_, conn)| conn.machine.is_some())?.0;
            let author = Author::new(&net.keys[0], &net.roster, Wall(net.wall))?;
            let entry = author.member_add(&member(&net.keys[usize::from(number)], number)?).ok()?;
            net.say(conn, &append_text(&entry)?);
        }
        assert_eq!(net.roster.head().map(|head| head.seq), Some(2), "the team was founded");
        Some(net)
    }

    /// One event, its commit and its effects, as a driver does it.
    fn step(&mut self, event: Event) {
        if self.stopped {
            return;
        }
        self.steps += 1;
        let entropy = sha256(&self.steps.to_be_bytes()).0;
        let step = Step::new(Mono(self.mono), Wall(self.wall), entropy);
        let timer = matches!(event, Event::Timer);
        let starts = matches!(event, Event::Start | Event::Resumed { .. });
        let due = self.relay.deadline();
        let (mut writes, mut out) = (Writes::new(), Out::new());
        let mut txn = Txn::new(&self.base, None, &mut writes);
        self.relay.handle(&step, event, &mut txn, &mut out).unwrap_or_else(|_| panic!("the store answers"));
        let effects = out.take();
        if timer && due.is_some_and(|(at, _)| at.0 <= self.mono) {
            let later = self.relay.deadline().is_none_or(|(at, _)| at.0 > self.mono);
            assert!(later || !effects.is_empty() || !writes.is_empty(), "a timer changed nothing: {due:?}");
        }
        if let Some(committed) = self.fail.filter(|_| !starts && !writes.is_empty()) {
            self.fail = None;
            if committed {
                self.commit(&writes, &[]);
            }
            return self.rebuild(true);
        }
        self.commit(&writes, &effects);
        for effect in effects {
            self.perform(effect);
        }
    }

    fn commit(&mut self, writes: &Writes, effects: &[Effect]) {
        self.base.apply(writes);
        let texts: Vec<String> =
            effects.iter().map(|effect| serde_json::to_string(effect).unwrap_or_default()).collect();
        for text in &texts {
            self.said = sha256(&[self.said.0.as_slice(), text.as_bytes()].concat());
        }
        let commit = Commit { who: Who::Relay, mono: self.mono, wall: self.wall, writes, effects: &texts };
        Watcher(Rc::clone(&self.seen)).commit(&commit);
        if let Some(broken) = self.seen.borrow().broken.first() {
            panic!("{}: {}", broken.invariant, broken.what);
        }
        let rows = self.base.iter().filter(|(table, ..)| table.0 == schema::ORDER.0);
        let mut queued: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        rows.for_each(|(_, key, _)| *queued.entry(key[..key.len().min(8)].to_vec()).or_default() += 1);
        assert!(queued.values().all(|count| *count <= PER_MACHINE), "a queue is over its cap: {queued:?}");
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Send { conn, frame } => {
                let Some(known) = self.conns.get_mut(&conn) else {
                    panic!("said to {conn:?}, which is gone")
                };
                assert!(!known.closing, "said {} behind a close", frame.t());
                match &frame {
                    RelayFrame::Challenge { nonce, .. } => known.nonce = Some(*nonce),
                    RelayFrame::Deliver { env } => {
                        let env = parse_wire(env.as_bytes(), FRAME_BYTES).unwrap_or(Value::Null);
                        let device = env.get("to").and_then(|to| to.get("device")).and_then(Value::as_str);
                        let machine = known.machine.map(|machine| machine.to_string());
                        assert!(machine.is_some(), "a delivery before the hello");
                        assert!(
                            device.is_none() || device == machine.as_deref(),
                            "delivered to somebody else"
                        );
                    }
                    _ => {}
                }
            }
            Effect::Authenticated { conn, machine, .. } => {
                let member = self.roster.member(&machine).is_some();
                assert!(member, "{machine} is no member and was let in");
                self.conns.entry(conn).or_default().machine = Some(machine);
            }
            Effect::Mark { conn } => {
                assert!(self.marks.insert(conn), "a mark is not repeated before it is reached");
            }
            Effect::Close { conn, .. } => {
                if let Some(conn) = self.conns.get_mut(&conn) {
                    conn.closing = true;
                }
            }
            Effect::Stopped => self.stopped = true,
            Effect::Count(_) | Effect::Log(_) => {}
        }
    }

    /// The machine is lost; with `alive` its sockets outlive it.
    fn rebuild(&mut self, alive: bool) {
        self.relay = Relay::new(self.config.clone());
        self.marks.clear();
        let conns = std::mem::take(&mut self.conns);
        self.step(Event::Start);
        let team = self.team();
        let mut resumed = BTreeSet::new();
        for (conn, known) in conns.into_iter().filter(|(_, known)| alive && !known.closing) {
            let Some(machine) = known.machine.filter(|machine| resumed.insert(*machine)) else { continue };
            self.conns.insert(conn, known);
            self.step(Event::Resumed { conn, address: "10.0.0.1".to_owned(), team, machine });
        }
        self.follow();
    }

    /// The team's roster as an honest member has it: what the relay holds.
    fn follow(&mut self) {
        let rows = self.base.iter().filter(|(table, ..)| table.0 == schema::ROSTER.0);
        let texts: Vec<Value> = rows.filter_map(|(_, _, row)| parse_wire(row, 1 << 20).ok()).collect();
        let held = self.roster.head().map_or(0, |head| head.seq + 1);
        for entry in texts.iter().skip(usize::try_from(held).unwrap_or(usize::MAX)) {
            self.roster.apply(entry, ApplyOptions::STORED).unwrap_or_else(|error| panic!("stored: {error}"));
        }
    }

    fn team(&self) -> RealmId {
        self.roster.team().unwrap_or(Hash([0; 32]))
    }

    fn open(&mut self) -> ConnId {
        self.next += 1;
        let conn = ConnId(self.next);
        self.conns.insert(conn, Conn::default());
        self.step(Event::Opened { conn, address: format!("10.0.0.{}", self.next % 3) });
        conn
    }

    fn close(&mut self, conn: ConnId) {
        if self.conns.remove(&conn).is_some() {
            self.marks.remove(&conn);
            self.step(Event::Closed { conn });
        }
    }

    fn say(&mut self, conn: ConnId, text: &str) {
        if self.conns.contains_key(&conn) {
            let frame = Box::new(Received::parse(text.as_bytes().to_vec(), FRAME_BYTES));
            self.step(Event::Frame { conn, frame });
            self.follow();
        }
    }

    fn login(&mut self, who: u8) {
        let conn = self.open();
        self.hello(conn, who, true);
    }

    fn hello(&mut self, conn: ConnId, who: u8, honest: bool) {
        let Some(nonce) = self.conns.get(&conn).and_then(|conn| conn.nonce) else { return };
        let key = &self.keys[usize::from(who % CLIENTS)];
        let relay = if honest { RELAY } else { "wss://other.example" };
        let team = self.team();
        let claim = HelloClaim { relay, nonce: &nonce, team: &team, ts: Wall(self.wall) };
        if let Ok(hello) = sign_hello(key, &claim) {
            let text = ClientOutbound::Hello(hello).to_text();
            self.say(conn, &text);
        }
    }

    fn conn(&self, number: u8) -> Option<ConnId> {
        self.conns.keys().nth(usize::from(number) % self.conns.len().max(1)).copied()
    }

    /// A signed envelope; its seal is of no concern to a relay.
    fn envelope(&self, from: u8, to: Option<u8>, id: u8, rest: &[(&str, Value)], head: u8) -> Option<String> {
        let end = |number: u8| -> Option<Value> {
            let key = self.keys.get(usize::from(number % CLIENTS))?;
            let person = member(key, number % CLIENTS)?.person.to_string();
            let end: Object = [
                ("person".to_owned(), Value::text(person)),
                ("device".to_owned(), Value::text(key.machine().to_string())),
            ]
            .into_iter()
            .collect();
            Some(end.into())
        };
        let Head { seq, hash } = self.roster.head()?;
        let (seq, hash) = match head % 4 {
            0 => (seq + 1, hash),
            1 => (seq, Hash([7; 32])),
            _ => (seq, hash),
        };
        let anchor = format!(r#"{{"kind":"roster","seq":{seq},"hash":"{hash}"}}"#);
        let mut env = Object::new();
        env.set("v", Value::text("messaging/1"));
        env.set("id", Value::text(Ulid::new(Wall(START), [id; 10]).to_string()));
        env.set("realm", Value::text(self.team().to_string()));
        env.set("anchor", parse_wire(anchor.as_bytes(), 1 << 12).ok()?);
        env.set("from", end(from)?);
        env.set("ts", Value::int(self.wall));
        match to {
            Some(to) => {
                env.set("to", end(to)?);
                let own = env.get("to")?.get("person") == env.get("from")?.get("person");
                env.set("class", Value::text(if own { "self" } else { "contact" }));
            }
            None => env.set("to", parse_wire(br#"{"team":true}"#, 64).ok()?),
        }
        for (name, value) in rest {
            env.set(*name, value.clone());
        }
        let key = self.keys.get(usize::from(from % CLIENTS))?;
        let sig = key.sign_value(Domain::Envelope, &env.clone().into()).ok()?;
        env.set("sig", Value::text(sig.to_string()));
        canonicalize(&env.into()).ok()
    }

    fn append(&mut self, conn: ConnId, by: u8, about: u8, what: u8) -> Option<()> {
        let key = &self.keys[usize::from(by % CLIENTS)];
        let (number, about) = (about % CLIENTS, &self.keys[usize::from(about % CLIENTS)]);
        let author = Author::new(key, &self.roster, Wall(self.wall))?;
        let machine = about.machine();
        let entry = match what % 6 {
            0 => author.member_remove(&machine),
            1 => author.member_role(&machine, if what & 64 == 0 { Role::Admin } else { Role::Member }),
            2 => author.member_rekey(&machine, &EncSecret::from_bytes([what; 32]).public()),
            3 => author.member_add(&member(about, number)?),
            4 => author.invite_revoke(&Ulid::new(Wall(START), [what / 64; 10])),
            _ => author.invite_create(
                &Ulid::new(Wall(START), [what / 64; 10]),
                &machine,
                &PersonName::parse("guest")?,
                Wall(self.wall + 60_000),
            ),
        };
        let text = append_text(&entry.ok()?)?;
        self.say(conn, &text);
        Some(())
    }

    fn happens(&mut self, happens: Happens) {
        let conn = |net: &Self, number: u8| net.conn(number).unwrap_or(ConnId(0));
        match happens {
            Happens::Open => drop(self.open()),
            Happens::Close { conn: number } => self.close(conn(self, number)),
            Happens::Hello { conn: number, who, honest } => self.hello(conn(self, number), who, honest),
            Happens::Login { who } => self.login(who),
            Happens::Send { conn: number, from, to, id, body, ttl, head } => {
                let exp = self.wall + u64::from(ttl) * 10;
                let rest = [
                    ("exp", Value::int(exp)),
                    ("type", Value::text("message")),
                    ("enc", Value::text("seal")),
                    ("epk", Value::text(Hash([9; 32]).to_string())),
                    ("nonce", Value::text("CAgICAgICAgICAgI")),
                    ("body", Value::text("A".repeat(40 + 4 * usize::from(body)))),
                ];
                if let Some(env) = self.envelope(from, Some(to), id % 8, &rest, head) {
                    let text = format!(r#"{{"t":"send","env":{env}}}"#);
                    self.say(conn(self, number), &text);
                }
            }
            Happens::Presence { conn: number, from, seq, head } => {
                let body =
                    format!(r#"{{"seq":{seq},"label":"m{}","features":[],"sessions":[]}}"#, from % CLIENTS);
                let rest = [
                    ("exp", Value::int(self.wall + 100_000)),
                    ("type", Value::text("presence")),
                    ("enc", Value::text("none")),
                    ("body", parse_wire(body.as_bytes(), 1 << 12).unwrap_or(Value::Null)),
                ];
                if let Some(env) = self.envelope(from, None, 99, &rest, head) {
                    let text = format!(r#"{{"t":"presence","env":{env}}}"#);
                    self.say(conn(self, number), &text);
                }
            }
            Happens::Ack { conn: number, from, id } => {
                let device = self.keys[usize::from(from % CLIENTS)].machine();
                let id = Ulid::new(Wall(START), [id % 8; 10]);
                let text = format!(r#"{{"t":"recv.ack","ids":["{id}"],"from":"{device}"}}"#);
                self.say(conn(self, number), &text);
            }
            Happens::Sync { conn: number, after } => {
                let text = ClientOutbound::RosterSync { req: Req::of(1), after: i64::from(after) }.to_text();
                self.say(conn(self, number), &text);
            }
            Happens::Append { conn: number, by, about, what } => {
                self.append(conn(self, number), by, about, what);
            }
            Happens::Pong { conn: number } => self.say(conn(self, number), r#"{"t":"pong"}"#),
            Happens::Text { conn: number, bytes } => {
                self.say(conn(self, number), &String::from_utf8_lossy(&bytes));
            }
            Happens::Frame { conn: at, frame, number } => {
                let text = FRAMES[usize::from(frame) % FRAMES.len()];
                let text = text.replace("HASH", &self.team().to_string()).replace("SIG", &"A".repeat(86));
                self.say(conn(self, at), &text.replace('N', &number.to_string()));
            }
            Happens::Unreadable { conn: number, large } => {
                let conn = conn(self, number);
                if self.conns.contains_key(&conn) {
                    let why = if large { Unreadable::TooLarge } else { Unreadable::Binary };
                    self.step(Event::Unreadable { conn, why });
                }
            }
            Happens::Drain => {
                if let Some(conn) = self.marks.pop_first() {
                    self.step(Event::Drained { conn });
                }
            }
            Happens::Timer => self.step(Event::Timer),
            Happens::Pass { ms } => self.pass(u64::from(ms)),
            Happens::Step { ms } => self.wall = self.wall.saturating_add_signed(i64::from(ms)),
            Happens::Fail { committed } => self.fail = Some(committed),
            Happens::Restart => self.rebuild(false),
            Happens::Stop => {
                self.step(Event::Stop);
                if self.stopped {
                    self.stopped = false;
                    self.rebuild(false);
                }
            }
        }
        let closing = self.conns.iter().filter(|(_, conn)| conn.closing).map(|(conn, _)| *conn);
        for conn in closing.collect::<Vec<_>>() {
            self.close(conn);
        }
    }

    fn pass(&mut self, ms: u64) {
        let end = self.mono + ms;
        for _ in 0..10_000 {
            let Some((at, _)) = self.relay.deadline().filter(|(at, _)| at.0 <= end && !self.stopped) else {
                self.wall += end.saturating_sub(self.mono);
                self.mono = self.mono.max(end);
                return;
            };
            self.wall += at.0.saturating_sub(self.mono);
            self.mono = self.mono.max(at.0);
            self.step(Event::Timer);
        }
        panic!("the relay never rests: {:?}", self.relay.deadline());
    }
}

fn append_text(entry: &Value) -> Option<String> {
    let entry = canonicalize(entry).ok()?;
    Some(format!(r#"{{"t":"roster.append","req":"1","entry":{entry}}}"#))
}

fn play(happen: &[Happens]) -> Hash {
    let Some(mut net) = Net::new() else { panic!("a team can be founded") };
    for happens in happen {
        net.happens(happens.clone());
    }
    // In the end everything that waited has been delivered, or has ended.
    net.fail = None;
    net.pass(700_000);
    net.said
}

/// Anything on any connection: no panic, no busy timer, nothing said to a connection that is gone, nothing delivered to
/// anybody else, nothing acked that is not stored, and every second run says the same.
///
/// # Panics
/// When one of these does not hold.
pub fn relay_machine(data: &[u8]) {
    let happen: Vec<Happens> = events(data);
    if happen.is_empty() {
        return;
    }
    let said = play(&happen);
    if data.len().is_multiple_of(4) {
        assert_eq!(play(&happen), said, "two runs of one sequence differ");
    }
}
