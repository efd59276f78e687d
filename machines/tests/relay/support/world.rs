//! Drives the relay, with a store that commits when the test says, and keeps what a driver asserts.

use super::{Client, Draft};
use messaging_machines::relay::io::{ConnId, Count, Effect, Event};
use messaging_machines::relay::{Config, Relay, Timer};
use messaging_machines::store::{MemoryBase, Txn, Writes};
use messaging_machines::{Machine, Out, Step};
use messaging_proto::Code;
use messaging_proto::frame::{
    ClientFrame, ClientOutbound, HelloClaim, Nonce, Received, RelayFrame, Req, sign_hello,
};
use messaging_proto::hash::RealmId;
use messaging_proto::json::{Value, canonicalize};
use messaging_proto::limits::FRAME_BYTES;
use messaging_proto::name::TeamName;
use messaging_proto::realm::{Head, Role};
use messaging_proto::roster::{ApplyOptions, Author, Roster, genesis};
use messaging_proto::time::{Mono, Wall};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) const RELAY: &str = "wss://relay.example";
pub(crate) const DAY: u64 = 86_400_000;

/// How a machine is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    /// What was not committed is gone.
    Lost,
    /// What was being committed is durable all the same, and nobody was told.
    Phantom,
}

pub(crate) struct World {
    pub(crate) config: Config,
    pub(crate) relay: Relay,
    pub(crate) base: MemoryBase,
    pub(crate) mono: Mono,
    pub(crate) wall: Wall,
    /// A copy of the team's roster, as an honest member has it.
    pub(crate) roster: Roster,
    pub(crate) events: Vec<(Mono, Wall, Event)>,
    pub(crate) effects: Vec<Effect>,
    /// Whether a socket takes at once what is sent to it.
    pub(crate) drains: bool,
    marks: BTreeSet<ConnId>,
    open: Writes,
    unsaid: Vec<Effect>,
    /// Whether every step commits.
    pub(crate) commits: bool,
    drawn: u64,
    next_conn: u64,
    next_number: u64,
}

impl World {
    pub(crate) fn new(config: Config) -> Self {
        let mut world = Self {
            relay: Relay::new(config.clone()),
            config,
            base: MemoryBase::default(),
            mono: Mono(1_000),
            wall: Wall(1_700_000_000_000),
            roster: Roster::new(),
            events: Vec::new(),
            effects: Vec::new(),
            drains: true,
            marks: BTreeSet::new(),
            open: Writes::new(),
            unsaid: Vec::new(),
            commits: true,
            drawn: 0,
            next_conn: 0,
            next_number: 0,
        };
        world.step(Event::Start);
        world
    }

    /// A world whose first client founded a team and added the others.
    pub(crate) fn team(config: Config, clients: &[Client]) -> Self {
        let mut world = Self::new(config);
        world.found(&clients[0]);
        let admin = world.login(&clients[0]);
        for client in &clients[1..] {
            let entry = world.author(&clients[0]).member_add(&client.member(Role::Member)).unwrap();
            world.append_ok(admin, &entry);
        }
        world.close(admin);
        world
    }

    pub(crate) fn team_id(&self) -> RealmId {
        self.roster.team().unwrap()
    }

    pub(crate) fn head(&self) -> Head {
        self.roster.head().unwrap()
    }

    pub(crate) fn author<'a>(&self, by: &'a Client) -> Author<'a> {
        Author::new(&by.key, &self.roster, self.wall).unwrap()
    }

    /// One event: what is said for it, when it is durable. Checks what a driver checks.
    pub(crate) fn step(&mut self, event: Event) -> Vec<Effect> {
        self.drawn += 1;
        let mut entropy = [0; 32];
        entropy[..8].copy_from_slice(&self.drawn.to_be_bytes());
        let step = Step::new(self.mono, self.wall, entropy);
        self.events.push((self.mono, self.wall, event.clone()));
        let due = self.relay.deadline().filter(|(at, _)| *at <= self.mono);
        let timer = matches!(event, Event::Timer);
        let bytes = self.open.bytes();
        let mut out = Out::new();
        let mut txn = Txn::new(&self.base, None, &mut self.open);
        self.relay.handle(&step, event, &mut txn, &mut out).unwrap();
        let effects = out.take();
        if let Some((at, why)) = due.filter(|_| timer) {
            let later = self.relay.deadline().is_none_or(|(next, _)| next > at);
            assert!(later || !effects.is_empty() || self.open.bytes() > bytes, "busy loop by {why:?}");
        }
        for effect in &effects {
            match effect {
                Effect::Mark { conn } => {
                    assert!(self.marks.insert(*conn), "a mark is not repeated before it is reached");
                }
                Effect::Send { frame: RelayFrame::Deliver { env }, .. } => {
                    let end = env.split_once("\"exp\":").unwrap().1.split_once(',').unwrap().0;
                    assert!(end.parse::<u64>().unwrap() > self.wall.0, "what has ended is not delivered");
                }
                _ => {}
            }
        }
        self.unsaid.extend(effects);
        if self.commits { self.commit() } else { Vec::new() }
    }

    /// Makes the open batch durable and says what waited for it.
    pub(crate) fn commit(&mut self) -> Vec<Effect> {
        let writes = std::mem::take(&mut self.open);
        self.base.apply(&writes);
        let said = std::mem::take(&mut self.unsaid);
        self.effects.extend(said.iter().cloned());
        said
    }

    /// Loses the machine and every connection.
    pub(crate) fn crash(&mut self, crash: Crash) {
        let writes = std::mem::take(&mut self.open);
        if crash == Crash::Phantom {
            self.base.apply(&writes);
        }
        self.unsaid.clear();
        self.marks.clear();
        self.relay = Relay::new(self.config.clone());
        self.step(Event::Start);
    }

    /// Fires due timers and reaches marks until nothing is left to do now.
    pub(crate) fn settle(&mut self) -> Vec<Effect> {
        let mut said = Vec::new();
        for _ in 0..100_000 {
            if self.drains
                && let Some(conn) = self.marks.pop_first()
            {
                said.extend(self.step(Event::Drained { conn }));
            } else if self.relay.deadline().is_some_and(|(at, _)| at <= self.mono) {
                said.extend(self.step(Event::Timer));
            } else {
                return said;
            }
        }
        panic!("the relay never rests: {:?}", self.relay.deadline());
    }

    /// Lets `ms` pass on both clocks, firing each timer at its time.
    pub(crate) fn pass(&mut self, ms: u64) -> Vec<Effect> {
        let end = self.mono.plus(ms);
        let mut said = self.settle();
        while let Some((at, _)) = self.relay.deadline().filter(|(at, _)| *at <= end) {
            let wait = at.since(self.mono);
            self.mono = self.mono.plus(wait);
            self.wall = self.wall.plus(wait);
            said.extend(self.settle());
        }
        let rest = end.since(self.mono);
        self.mono = end;
        self.wall = self.wall.plus(rest);
        said.extend(self.settle());
        said
    }

    pub(crate) fn deadline(&self) -> Option<(Mono, Timer)> {
        self.relay.deadline()
    }

    /// A socket takes what was sent to it.
    pub(crate) fn drain(&mut self, conn: ConnId) -> Vec<Effect> {
        assert!(self.marks.remove(&conn), "there is a mark");
        self.step(Event::Drained { conn })
    }

    pub(crate) fn open(&mut self) -> (ConnId, Nonce) {
        self.open_from("192.0.2.1")
    }

    pub(crate) fn open_from(&mut self, address: &str) -> (ConnId, Nonce) {
        self.next_conn += 1;
        let conn = ConnId(self.next_conn);
        let said = self.step(Event::Opened { conn, address: address.to_owned() });
        let nonce = match &frames(&said, conn)[..] {
            [RelayFrame::Challenge { relay, nonce }] => {
                assert_eq!(&**relay, RELAY);
                *nonce
            }
            other => panic!("a challenge comes first: {other:?}"),
        };
        (conn, nonce)
    }

    pub(crate) fn hello(&self, client: &Client, nonce: &Nonce) -> ClientOutbound {
        let team = self.team_id();
        let claim = HelloClaim { relay: RELAY, nonce, team: &team, ts: self.wall };
        ClientOutbound::Hello(sign_hello(&client.key, &claim).unwrap())
    }

    /// Connects a client and says its `hello`; what the relay then says.
    pub(crate) fn connect(&mut self, client: &Client) -> (ConnId, Vec<Effect>) {
        let commits = std::mem::replace(&mut self.commits, true);
        let (conn, nonce) = self.open();
        let hello = self.hello(client, &nonce);
        let said = self.say(conn, &hello);
        self.commits = commits;
        (conn, said)
    }

    pub(crate) fn login(&mut self, client: &Client) -> ConnId {
        let (conn, said) = self.connect(client);
        assert!(matches!(frames(&said, conn).first(), Some(RelayFrame::Welcome { .. })), "{said:?}");
        self.settle();
        conn
    }

    pub(crate) fn close(&mut self, conn: ConnId) -> Vec<Effect> {
        self.marks.remove(&conn);
        self.step(Event::Closed { conn })
    }

    pub(crate) fn say(&mut self, conn: ConnId, frame: &ClientOutbound) -> Vec<Effect> {
        self.say_text(conn, frame.to_text().as_bytes())
    }

    pub(crate) fn say_text(&mut self, conn: ConnId, text: &[u8]) -> Vec<Effect> {
        let frame: Box<Received<ClientFrame>> = Box::new(Received::parse(text.to_vec(), FRAME_BYTES));
        self.step(Event::Frame { conn, frame })
    }

    pub(crate) fn send(&mut self, conn: ConnId, env: &Arc<str>) -> Vec<Effect> {
        self.say(conn, &ClientOutbound::Send { env: Arc::clone(env) })
    }

    pub(crate) fn ack(&mut self, conn: ConnId, from: &Client, draft: &Draft) -> Vec<Effect> {
        self.say(conn, &ClientOutbound::RecvAck { from: from.machine(), id: draft.ulid() })
    }

    /// A message valid for a day.
    pub(crate) fn draft(&mut self, from: &Client, to: &Client) -> Draft {
        self.next_number += 1;
        let number = self.next_number;
        Draft::message(from, to, self.team_id().to_string(), self.head(), self.wall, DAY, number)
    }

    pub(crate) fn presence_draft(&self, from: &Client, seq: u64) -> Draft {
        Draft::presence(from, self.team_id().to_string(), self.head(), self.wall, DAY, seq)
    }

    /// Founds the team on a connection that then ends.
    pub(crate) fn found(&mut self, by: &Client) {
        let name = TeamName::parse("team").unwrap();
        let entry = genesis(&by.key, self.wall, &name, &by.member(Role::Admin)).unwrap();
        let (conn, _) = self.open();
        self.append_ok(conn, &entry);
        self.close(conn);
    }

    pub(crate) fn append(&mut self, conn: ConnId, entry: &Value) -> Vec<Effect> {
        let entry = Arc::from(canonicalize(entry).unwrap());
        self.say(conn, &ClientOutbound::RosterAppend { req: Req::of(77), entry })
    }

    /// Appends an entry that the relay takes, here and there; what it says.
    pub(crate) fn append_ok(&mut self, conn: ConnId, entry: &Value) -> Vec<Effect> {
        let head = self.roster.apply(entry, ApplyOptions::STORED).unwrap();
        let said = self.append(conn, entry);
        let ok = RelayFrame::RosterOk { req: Req::of(77), head };
        assert_eq!(frames(&said, conn).first(), Some(&ok), "{said:?}");
        said
    }

    /// Every row of the store.
    pub(crate) fn rows(&self) -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
        self.base.iter().map(|(table, key, row)| (table.0, key.to_vec(), row.to_vec())).collect()
    }

    pub(crate) fn count_rows(&self, table: &str) -> usize {
        self.base.iter().filter(|(one, ..)| one.0 == table).count()
    }
}

/// What a connection is sent.
pub(crate) fn frames(effects: &[Effect], conn: ConnId) -> Vec<RelayFrame> {
    let frame = |effect: &Effect| match effect {
        Effect::Send { conn: to, frame } if *to == conn => Some(frame.clone()),
        _ => None,
    };
    effects.iter().filter_map(frame).collect()
}

/// The close codes a connection gets.
pub(crate) fn closes(effects: &[Effect], conn: ConnId) -> Vec<u16> {
    let code = |effect: &Effect| match effect {
        Effect::Close { conn: to, code } if *to == conn => Some(*code),
        _ => None,
    };
    effects.iter().filter_map(code).collect()
}

pub(crate) fn counts(effects: &[Effect]) -> Vec<Count> {
    let count = |effect: &Effect| match effect {
        Effect::Count(Count::FrameIn(_)) => None,
        Effect::Count(count) => Some(*count),
        _ => None,
    };
    effects.iter().filter_map(count).collect()
}

/// Id and code of each nack a connection gets.
pub(crate) fn nacks(effects: &[Effect], conn: ConnId) -> Vec<(String, Code)> {
    let nack = |frame: RelayFrame| match frame {
        RelayFrame::Nack { id, code, .. } => Some((id, code)),
        _ => None,
    };
    frames(effects, conn).into_iter().filter_map(nack).collect()
}
