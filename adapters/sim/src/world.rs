//! A world in memory: the real relay machine and any number of daemon machines, their stores and files, and
//! virtual clocks. Nothing here decides anything of the protocol; it plays the adapters.
//!
//! Every event is one commit. [`World::crash`] plans a crash of one machine at its n-th coming event, before or
//! after the commit, or after some of its effects left; [`World::settle`] then goes on with a machine rebuilt
//! from the store and the files. [`World::log`] is every effect in order, for comparing runs.

//!
//! It asserts, as a test helper does: what cannot happen in a working world panics, with the method or the machine named.

use crate::json::{at, json, text};
use crate::net::Net;
use crate::node::{Crash, Node};
use messaging_machines::daemon::io::{Event, IpcId, Tier};
use messaging_machines::machine::{Machine, Out, Step};
use messaging_machines::relay::{self, Relay};
use messaging_machines::store::{MemoryBase, Txn, Writes};
use messaging_proto::Code;
use messaging_proto::frame::{ClientFrame, Parsed, RelayFrame};
use messaging_proto::hash::{Hash, sha256};
use messaging_proto::json::{Object, Value, canonicalize};
use messaging_proto::time::{Mono, Wall};
use std::collections::BTreeSet;

/// When every world starts.
pub const START: u64 = 1_700_000_000_000;
/// The relay's connect URL.
pub const URL: &str = "ws://127.0.0.1:8787/v1/connect";
/// How long a call may wait in virtual time before the test gives up.
const CALL_MS: u64 = 130_000;

/// A process of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The relay.
    Relay,
    /// A daemon, by its number.
    Daemon(usize),
}

/// One step of a machine, with what is durable and released by it.
pub struct Commit<'a> {
    /// Whose.
    pub who: Who,
    /// The monotonic clock.
    pub mono: u64,
    /// The wall clock without the machine's skew.
    pub wall: u64,
    /// The rows it wrote.
    pub writes: &'a Writes,
    /// Its effects as JSON.
    pub effects: &'a [String],
}

/// Something that looks at every step.
pub trait Watch {
    /// A step was committed, and its effects leave.
    fn commit(&mut self, commit: &Commit<'_>);
}

/// The relay with its store.
pub struct RelayNode {
    /// What it is built from, again after a restart.
    pub config: relay::Config,
    /// The machine.
    pub machine: Relay,
    /// Its store; a restart keeps it.
    pub base: MemoryBase,
    /// Whether it can be reached.
    pub up: bool,
    /// What its clock is ahead by, in milliseconds.
    pub skew: i64,
    /// Texts replaced in every frame on its way to a daemon: a relay that lies.
    pub rewrite: Vec<(&'static str, &'static str)>,
    /// Frames to this daemon that hold this text never arrive: a relay that withholds.
    pub swallow: Option<(usize, &'static str)>,
    /// Nothing it says arrives.
    pub mute: bool,
    /// How often in a row an append's answer is lost together with its connection.
    pub cut_after_append: usize,
    /// Its store fails at the n-th coming event that writes (1 is the next): whether that commit is there afterwards.
    pub fail: Option<(usize, bool)>,
    /// It forks: the next entry that anybody else appends is shown to this daemon alone, and its author is told that it
    /// came too late, so that the author signs another one for the same place.
    pub fork_to: Option<usize>,
    /// The daemons it showed another roster than the rest.
    pub forked: BTreeSet<usize>,
    /// Its disk is full: how many of the coming events that write fail, without a trace in the store.
    pub fail_writes: usize,
}

/// Everything.
pub struct World {
    /// The one relay.
    pub relay: RelayNode,
    /// The daemons by number.
    pub nodes: Vec<Node>,
    /// The monotonic clock of everybody, in milliseconds.
    pub mono: u64,
    /// The wall clock, in milliseconds since 1970; each machine's skew is added.
    pub wall: u64,
    /// How much of it everybody slept, in milliseconds.
    pub slept: u64,
    /// Every effect released so far: who, then the effect as JSON. Empty without [`World::keep_log`].
    pub log: Vec<String>,
    /// Whether [`World::log`] is kept: a run of weeks keeps the hash alone.
    pub keep_log: bool,
    /// The hash over every effect released so far.
    pub effects: Hash,
    /// What looks at every commit, and stops nothing.
    pub watch: Option<Box<dyn Watch>>,
    pub(crate) net: Net,
    seed: u64,
    steps: u64,
}

impl World {
    /// A relay and no daemon.
    pub fn new(seed: u64) -> Self {
        let mut config = relay::Config::new("ws://127.0.0.1:8787");
        // Founding and joining from one address is what tests do all day.
        config.limits.team_creates_per_hour = 1_000;
        let relay = RelayNode {
            machine: Relay::new(config.clone()),
            config,
            base: MemoryBase::default(),
            up: true,
            skew: 0,
            rewrite: Vec::new(),
            swallow: None,
            mute: false,
            cut_after_append: 0,
            fail: None,
            fork_to: None,
            forked: BTreeSet::new(),
            fail_writes: 0,
        };
        let mut world = Self {
            relay,
            nodes: Vec::new(),
            mono: 1_000,
            wall: START,
            slept: 0,
            log: Vec::new(),
            keep_log: true,
            effects: Hash([0; 32]),
            watch: None,
            net: Net::default(),
            seed,
            steps: 0,
        };
        world.relay_event(relay::io::Event::Start);
        world
    }

    /// Adds a daemon with an empty home and returns its number.
    pub fn add(&mut self) -> usize {
        self.nodes.push(Node::new());
        let number = self.nodes.len() - 1;
        self.start(number);
        number
    }

    /// A team of these machines, `person/label` each: the first founds it and invites the others.
    pub fn team(seed: u64, machines: &[&str]) -> Self {
        let mut world = Self::new(seed);
        for name in machines {
            world.join_next(name);
        }
        world
    }

    /// Adds a daemon that founds the team, or joins it by an invite of machine 0.
    pub fn join_next(&mut self, name: &str) -> usize {
        let (person, label) = name.split_once('/').expect("person/label");
        let number = self.add();
        if number == 0 {
            let params =
                format!(r#"{{"relay":"{URL}","name":"team","person":"{person}","label":"{label}"}}"#);
            self.ok(0, "team.create", &params);
        } else {
            let ticket = self.ticket(0, person);
            self.ok(number, "team.join", &format!(r#"{{"ticket":"{ticket}","label":"{label}"}}"#));
        }
        self.settle();
        number
    }

    /// An invite of machine `by` for a person: the ticket.
    pub fn ticket(&mut self, by: usize, person: &str) -> String {
        let invite = self.ok(by, "team.invite", &format!(r#"{{"person":"{person}"}}"#));
        text(&invite, "ticket").to_owned()
    }

    /// Drops a daemon's machine and builds a new one over its store and files, as after `kill -9`.
    pub fn start(&mut self, number: usize) {
        self.net.forget_node(number);
        self.nodes[number].rebuild();
        self.event(number, Event::Start);
        let conn = self.connect(number, Tier::Admin);
        self.nodes[number].admin = conn;
    }

    /// Drops the relay's machine and builds a new one over its store.
    pub fn restart_relay(&mut self) {
        let cut = self.net.drop_all();
        self.net.clear();
        self.relay.machine = Relay::new(self.relay.config.clone());
        self.relay_event(relay::io::Event::Start);
        for (number, link) in cut {
            self.link_lost(number, link);
        }
    }

    /// Whether the relay can be reached; going down cuts every connection.
    pub fn reach(&mut self, up: bool) {
        self.relay.up = up;
        if !up {
            for (number, link) in self.net.drop_all() {
                self.link_lost(number, link);
            }
        }
    }

    /// Whether one daemon can reach the relay; going down cuts its connection.
    pub fn reach_from(&mut self, number: usize, up: bool) {
        self.nodes[number].reaches = up;
        if !up {
            for (_, link) in self.net.drop_node(number) {
                self.link_lost(number, link);
            }
        }
    }

    /// Plans a crash of a daemon.
    pub fn crash(&mut self, number: usize, crash: Crash) {
        self.nodes[number].crash = Some(crash);
    }

    /// A new connection of a client.
    pub fn connect(&mut self, number: usize, tier: Tier) -> IpcId {
        let conn = self.nodes[number].next_conn();
        self.event(number, Event::IpcOpened { conn, tier });
        conn
    }

    /// Sends bytes as a line on a connection.
    pub fn line(&mut self, number: usize, conn: IpcId, line: &[u8]) {
        self.event(number, Event::IpcLine { conn, line: line.to_vec() });
    }

    /// Sends a request on a connection and returns its id; the answer comes later.
    pub fn ask(&mut self, number: usize, conn: IpcId, method: &str, params: &str) -> u64 {
        let id = self.nodes[number].next_call();
        let request: Object = [
            ("jsonrpc".to_owned(), Value::text("2.0")),
            ("id".to_owned(), Value::int(id)),
            ("method".to_owned(), Value::text(method)),
            ("params".to_owned(), json(params)),
        ]
        .into_iter()
        .collect();
        let line = canonicalize(&request.into()).expect("I-JSON").into_bytes();
        self.event(number, Event::IpcLine { conn, line });
        id
    }

    /// The answer to a request, once there is one.
    pub fn answer(&self, number: usize, conn: IpcId, id: u64) -> Option<Result<Value, Value>> {
        let line = self.nodes[number].reply(conn, id)?;
        Some(match line.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(at(line, "error").clone()),
        })
    }

    /// Calls a method on a connection and waits for its answer.
    pub fn call_on(
        &mut self,
        number: usize,
        conn: IpcId,
        method: &str,
        params: &str,
    ) -> Result<Value, Value> {
        let id = self.ask(number, conn, method, params);
        let end = self.mono + CALL_MS;
        loop {
            self.settle();
            if let Some(answer) = self.answer(number, conn, id) {
                return answer;
            }
            let next = self.next_deadline().filter(|next| *next <= end);
            let next = next.unwrap_or_else(|| panic!("{method} was not answered"));
            self.advance(next);
        }
    }

    /// Calls a method on a daemon's admin connection.
    pub fn call(&mut self, number: usize, method: &str, params: &str) -> Result<Value, Value> {
        self.call_on(number, self.nodes[number].admin, method, params)
    }

    /// Calls a method that succeeds.
    pub fn ok(&mut self, number: usize, method: &str, params: &str) -> Value {
        self.call(number, method, params).unwrap_or_else(|error| panic!("{method}: {error:?}"))
    }

    /// Calls a method that is refused: its code.
    pub fn refused(&mut self, number: usize, method: &str, params: &str) -> String {
        match self.call(number, method, params) {
            Ok(result) => panic!("{method}: {result:?}"),
            Err(error) => text(&error, "data.code").to_owned(),
        }
    }

    /// Delivers everything that is on its way until nothing is.
    pub fn settle(&mut self) {
        loop {
            if let Some(number) = self.nodes.iter().position(|node| node.crashed) {
                self.start(number);
            } else if !self.deliver_one() {
                return;
            }
        }
    }

    /// Lets time pass on both clocks, with every timer on its time.
    pub fn pass(&mut self, ms: u64) {
        let end = self.mono + ms;
        self.settle();
        while let Some(next) = self.next_deadline().filter(|next| *next <= end) {
            self.advance(next);
        }
        self.wall += end - self.mono;
        self.mono = end;
    }

    /// Lets time pass until something holds.
    pub fn until(&mut self, what: &str, ms: u64, mut holds: impl FnMut(&mut Self) -> bool) {
        let end = self.mono + ms;
        self.settle();
        while !holds(self) {
            let next = self.next_deadline().filter(|next| *next <= end);
            self.advance(next.unwrap_or_else(|| panic!("never: {what}")));
        }
    }

    /// The system sleeps: both clocks jump, no timer fires meanwhile, connections look open.
    pub fn sleep(&mut self, ms: u64) {
        self.mono += ms;
        self.wall += ms;
        self.slept += ms;
    }

    fn next_deadline(&self) -> Option<u64> {
        let daemons = self.nodes.iter().filter_map(|node| node.machine.deadline()).map(|(at, _)| at.0);
        let relay = self.relay.machine.deadline().map(|(at, _)| at.0).filter(|_| self.relay.up);
        daemons.chain(relay).chain(self.net.next_due()).min()
    }

    /// Moves the clocks to a deadline and fires every timer that is due.
    fn advance(&mut self, to: u64) {
        let to = to.max(self.mono);
        self.wall += to - self.mono;
        self.mono = to;
        for number in 0..self.nodes.len() {
            let before = self.nodes[number].machine.deadline();
            if before.is_some_and(|(at, _)| at.0 <= to) {
                self.event(number, Event::Timer);
                let after = self.nodes[number].machine.deadline();
                let later = after.is_none_or(|(at, _)| at.0 > to) || self.nodes[number].crashed;
                assert!(later, "daemon {number}: a timer changed nothing: {before:?}, then {after:?}");
            }
        }
        if self.relay.up && self.relay.machine.deadline().is_some_and(|(at, _)| at.0 <= to) {
            self.relay_event(relay::io::Event::Timer);
        }
        self.settle();
    }

    /// The clocks and the entropy of the next event.
    fn step(&mut self, skew: i64) -> Step {
        self.steps += 1;
        let entropy = sha256(format!("{}:{}", self.seed, self.steps).as_bytes()).0;
        Step::new(Mono(self.mono), Wall(self.wall.saturating_add_signed(skew)), entropy)
    }

    /// Hands an event to a daemon, commits, and releases the effects.
    pub fn event(&mut self, number: usize, event: Event) {
        if self.nodes[number].crashed {
            return;
        }
        let step = self.step(self.nodes[number].skew);
        let (effects, writes) = self.nodes[number].handle(&step, event);
        let texts = effects.iter().map(|effect| serde_json::to_string(effect).expect("effects serialise"));
        let texts: Vec<String> = texts.collect();
        self.note(Who::Daemon(number), &writes, &texts);
        for effect in effects {
            self.perform(number, effect);
        }
    }

    pub(crate) fn relay_event(&mut self, event: relay::io::Event) {
        let step = self.step(self.relay.skew);
        let asked = asked(&event);
        let starts = matches!(event, relay::io::Event::Start | relay::io::Event::Resumed { .. });
        let mut writes = Writes::new();
        let mut out = Out::new();
        let mut txn = Txn::new(&self.relay.base, None, &mut writes);
        self.relay.machine.handle(&step, event, &mut txn, &mut out).expect("the store answers");
        let mut failed = None;
        if let Some((left, committed)) = self.relay.fail.as_mut().filter(|_| !writes.is_empty()) {
            *left -= 1;
            if *left == 0 {
                failed = Some(*committed);
                self.relay.fail = None;
            }
        }
        // A start finds the little room it needs.
        if failed.is_none() && self.relay.fail_writes > 0 && !starts && !writes.is_empty() {
            self.relay.fail_writes -= 1;
            failed = Some(false);
        }
        if let Some(committed) = failed {
            if committed {
                self.relay.base.apply(&writes);
                self.note(Who::Relay, &writes, &[]);
            }
            self.relay.machine = Relay::new(self.relay.config.clone());
            self.resume_relay();
            // Whoever waits for an answer is told to try again (§7, "Store failures").
            if let Some((conn, frame)) = asked {
                let effect = relay::io::Effect::Send { conn, frame };
                let text = serde_json::to_string(&effect).expect("effects serialise");
                self.note(Who::Relay, &Writes::new(), &[text]);
                self.perform_relay(effect);
            }
            return;
        }
        self.relay.base.apply(&writes);
        let effects = out.take();
        let texts = effects.iter().map(|effect| serde_json::to_string(effect).expect("effects serialise"));
        let texts: Vec<String> = texts.collect();
        self.note(Who::Relay, &writes, &texts);
        for effect in effects {
            self.perform_relay(effect);
        }
    }

    /// Notes what a step wrote and said.
    fn note(&mut self, who: Who, writes: &Writes, effects: &[String]) {
        for effect in effects {
            let line = match who {
                Who::Relay => format!("relay {effect}"),
                Who::Daemon(number) => format!("{number} {effect}"),
            };
            self.effects = sha256(&[self.effects.0.as_slice(), line.as_bytes()].concat());
            if self.keep_log {
                self.log.push(line);
            }
        }
        if let Some(watch) = &mut self.watch {
            watch.commit(&Commit { who, mono: self.mono, wall: self.wall, writes, effects });
        }
    }
}

/// What an event of the relay is answered with when its commit fails: nothing for what needs no answer.
fn asked(event: &relay::io::Event) -> Option<(relay::io::ConnId, RelayFrame)> {
    let relay::io::Event::Frame { conn, frame } = event else { return None };
    let frame = match &frame.parsed {
        Parsed::Frame(ClientFrame::Pong { .. } | ClientFrame::RecvAck { .. } | ClientFrame::Ping { .. })
        | Parsed::Unknown
        | Parsed::Malformed => return None,
        Parsed::Frame(_) | Parsed::BadShape { .. } => match frame.id() {
            Some(id) => RelayFrame::nack(id, Code::Internal),
            None => RelayFrame::error(Code::Internal),
        },
    };
    Some((*conn, frame))
}
