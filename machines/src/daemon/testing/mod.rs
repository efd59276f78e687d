//! A team of daemons in memory, for tests of the roles between the roster and the link: real envelopes, rows and
//! local calls. The relay is a list of envelopes per recipient; the roster is given.

mod client;
mod forge;

pub(crate) use forge::Forged;

use super::ctx::{Ctx, Note};
use super::io::{Effect, Event, HostCall, IpcId, SaveId, WakeId};
use super::link::LinkState;
use super::realm::Realm;
use super::schema;
use super::{Config, Daemon};
use crate::machine::{Machine, Out, Step};
use crate::store::{MemoryBase, Txn, Writes};
use messaging_proto::Code;
use messaging_proto::envelope::Inspected;
use messaging_proto::frame::{ClientFrame, Parsed, Received};
use messaging_proto::identity::Identity;
use messaging_proto::json::{Value, parse_wire};
use messaging_proto::key::MachineId;
use messaging_proto::limits::FRAME_BYTES;
use messaging_proto::name::{self, PersonId, TeamName};
use messaging_proto::realm::Role;
use messaging_proto::roster::{ApplyOptions, Author, Member, Roster, genesis};
use messaging_proto::time::{Mono, Wall};
use messaging_proto::ulid::Ulid;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// When every test starts.
pub(crate) const START: u64 = 1_700_000_000_000;

/// One machine.
pub(crate) struct Node {
    pub(crate) daemon: Daemon,
    pub(crate) base: MemoryBase,
    identity: Identity,
    settings: String,
    /// Whether its link is up.
    pub(crate) up: bool,
    conns: u64,
    calls: u64,
    /// What the relay holds for it: each envelope and whether it is on its way for the first time.
    queue: VecDeque<Arc<Inspected>>,
    /// Every line it sent to a client, parsed.
    pub(crate) lines: Vec<(IpcId, Value)>,
    /// How often the relay took an envelope from it.
    pub(crate) sends: usize,
    /// The copies of its home it asked for, and how often it let one go.
    pub(crate) copies: Vec<SaveId>,
    pub(crate) dropped: usize,
    /// The hosts it asked to wake a client.
    pub(crate) wakes: Vec<(WakeId, HostCall, Vec<Ulid>)>,
    /// Refusals the relay gives its next sends.
    pub(crate) refuse: VecDeque<(Code, Option<u64>)>,
}

/// The team and its relay.
pub(crate) struct World {
    pub(crate) nodes: Vec<Node>,
    pub(crate) roster: Roster,
    pub(crate) mono: u64,
    pub(crate) wall: u64,
    steps: u64,
    /// Whether every commit is followed by a new machine over the store.
    pub(crate) crashing: bool,
    /// The step a fault happens at, and which.
    pub(crate) fault: Option<(u64, Fault)>,
}

/// What happens to the machine that takes a step, instead of the end of the step. A new machine follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It dies before its commit.
    Lost,
    /// Its commit is durable and reported as failed: nothing it said is released.
    Phantom,
}

/// Reads a JSON text of a test.
pub(crate) fn json(text: &str) -> Value {
    parse_wire(text.as_bytes(), 1 << 24).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The member of a value at a path of names and positions.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, step| match step.parse::<usize>() {
        Ok(index) => &value.as_array().unwrap_or_else(|| panic!("{path} of {value:?}"))[index],
        Err(_) => value.get(step).unwrap_or_else(|| panic!("{path} of {value:?}")),
    })
}

/// The text at a path.
pub(crate) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).as_str().unwrap_or_else(|| panic!("{path} of {value:?}"))
}

/// A session key made of a letter.
pub(crate) fn key(letter: char) -> String {
    letter.to_string().repeat(24)
}

fn identity(number: u8) -> Identity {
    Identity::generate([number; 32], [number + 100; 32])
}

impl World {
    /// A team of these machines, `person/label` each, the first its admin. All are connected.
    pub(crate) fn new(machines: &[&str]) -> Self {
        let members: Vec<(Identity, Member)> = machines
            .iter()
            .zip(1_u8..)
            .map(|(name, number)| {
                let (person, label) = name.split_once('/').unwrap();
                let identity = identity(number);
                let member = Member {
                    machine: identity.machine(),
                    enc: identity.enc(),
                    person: PersonId::parse(person).unwrap(),
                    role: if number == 1 { Role::Admin } else { Role::Member },
                    label: name::Label::parse(label).unwrap(),
                };
                (identity, member)
            })
            .collect();
        let mut roster = Roster::new();
        let admin = members[0].0.signing();
        let first = genesis(admin, Wall(START), &TeamName::parse("team").unwrap(), &members[0].1).unwrap();
        roster.apply(&first, ApplyOptions::default()).unwrap();
        for (_, member) in &members[1..] {
            let entry = Author::new(admin, &roster, Wall(START)).unwrap().member_add(member).unwrap();
            roster.apply(&entry, ApplyOptions::default()).unwrap();
        }
        let nodes = members.into_iter().map(|(identity, _)| Node::new(identity)).collect();
        let mut world =
            Self { nodes, roster, mono: 1_000, wall: START + 1_000, steps: 0, crashing: false, fault: None };
        for number in 0..world.nodes.len() {
            world.start(number);
        }
        world.run();
        world
    }

    /// Starts a machine over its store, as after a crash.
    pub(crate) fn start(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        node.daemon = fresh(&node.identity, &node.settings);
        // As joining leaves the store.
        let mut writes = Writes::new();
        let mut txn = Txn::new(&node.base, None, &mut writes);
        Realm::default().adopt(&mut txn, self.roster.clone());
        schema::put(&mut txn, schema::META, schema::META_MACHINE, &node.identity.machine());
        node.base.apply(&writes);
        self.handle(number, Event::Start);
        if self.nodes[number].up {
            self.link(number, true);
        }
    }

    /// The configuration of a machine from its next start.
    pub(crate) fn configure(&mut self, number: usize, settings: &str) {
        settings.clone_into(&mut self.nodes[number].settings);
        self.start(number);
    }

    /// Brings a machine's link up or down.
    pub(crate) fn link(&mut self, number: usize, up: bool) {
        self.nodes[number].up = up;
        let online: BTreeSet<MachineId> =
            self.nodes.iter().filter(|node| node.up).map(|node| node.identity.machine()).collect();
        let machine = self.nodes[number].identity.machine();
        for node in &mut self.nodes {
            node.daemon.facts.link =
                if node.up { LinkState::connected(online.clone()) } else { LinkState::default() };
        }
        self.note(number, if up { Note::LinkUp } else { Note::LinkDown });
        for other in 0..self.nodes.len() {
            if other != number && self.nodes[other].up {
                self.note(other, Note::Peer { machine, online: up });
            }
        }
        self.run();
    }

    /// The step of the next event.
    fn step(&mut self) -> Step {
        self.steps += 1;
        let mut entropy = [0; 32];
        entropy[..8].copy_from_slice(&self.steps.to_be_bytes());
        Step::new(Mono(self.mono), Wall(self.wall), entropy)
    }

    /// Hands an event to a machine and commits what it wrote.
    pub(crate) fn handle(&mut self, number: usize, event: Event) {
        let step = self.step();
        let node = &mut self.nodes[number];
        let mut writes = Writes::new();
        let mut out = Out::new();
        let mut txn = Txn::new(&node.base, None, &mut writes);
        node.daemon.handle(&step, event, &mut txn, &mut out).unwrap();
        self.commit(number, &writes, out.take());
    }

    /// How many steps were taken.
    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    /// Makes a step's writes durable and releases what it said, unless the step is the one that fails.
    fn commit(&mut self, number: usize, writes: &Writes, effects: Vec<Effect>) {
        let fault = self.fault.filter(|(step, _)| *step == self.steps).map(|(_, fault)| fault);
        if fault != Some(Fault::Lost) {
            self.nodes[number].base.apply(writes);
        }
        if fault.is_some() {
            self.start(number);
        } else {
            self.release(number, effects);
        }
    }

    /// Says a note to a machine's roles, as the link and the roster would.
    pub(crate) fn note(&mut self, number: usize, note: Note) {
        let step = self.step();
        let node = &mut self.nodes[number];
        let mut writes = Writes::new();
        let mut out = Out::new();
        let mut txn = Txn::new(&node.base, None, &mut writes);
        let Daemon { facts, roles } = &mut node.daemon;
        let mut notes = VecDeque::from([note]);
        while let Some(note) = notes.pop_front() {
            for role in roles.all() {
                role.hear(&mut Ctx::new(&step, &mut txn, facts, &mut out, &mut notes), &note).unwrap();
            }
        }
        self.commit(number, &writes, out.take());
    }

    /// Lets a test do what a role would within a step of a machine.
    pub(crate) fn within<T>(&mut self, number: usize, work: impl FnOnce(&mut Ctx<'_, '_>) -> T) -> T {
        let step = self.step();
        let node = &mut self.nodes[number];
        let mut writes = Writes::new();
        let mut out = Out::new();
        let mut txn = Txn::new(&node.base, None, &mut writes);
        let mut notes = VecDeque::new();
        let done = work(&mut Ctx::new(&step, &mut txn, &mut node.daemon.facts, &mut out, &mut notes));
        self.commit(number, &writes, out.take());
        done
    }

    fn release(&mut self, number: usize, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::IpcSend { conn, line } => self.nodes[number].lines.push((conn, json(&line))),
                Effect::LinkSend { text, .. } => self.relay(number, text),
                Effect::Snapshot { copy, .. } => self.nodes[number].copies.push(copy),
                Effect::DropSnapshot => self.nodes[number].dropped += 1,
                Effect::Wake { wake, host, ids } => self.nodes[number].wakes.push((wake, host, ids)),
                _ => {}
            }
        }
    }

    /// The relay hears a frame.
    fn relay(&mut self, from: usize, text: String) {
        let Parsed::Frame(frame) = Received::<ClientFrame>::parse(text.into_bytes(), FRAME_BYTES).parsed
        else {
            panic!("a daemon said a frame that is none");
        };
        match frame {
            ClientFrame::Send(env) => {
                let id = env.loose().id.unwrap();
                if let Some((code, retry_after_ms)) = self.nodes[from].refuse.pop_front() {
                    return self.note(from, Note::Nacked { id, code: Some(code), retry_after_ms });
                }
                let to = env.envelope().unwrap().header.to.end().unwrap().device;
                self.nodes[from].sends += 1;
                let known = |held: &Arc<Inspected>| {
                    held.loose().id == Some(id) && held.loose().from_device == env.loose().from_device
                };
                if let Some(to) = self.nodes.iter_mut().find(|node| node.identity.machine() == to)
                    && !to.queue.iter().any(known)
                {
                    to.queue.push_back(Arc::from(env));
                }
                self.note(from, Note::Relayed(id));
            }
            ClientFrame::RecvAck { from: device, id } => {
                let acked = |held: &Arc<Inspected>| {
                    held.loose().id == Some(id) && held.loose().from_device == Some(device)
                };
                self.nodes[from].queue.retain(|held| !acked(held));
            }
            ClientFrame::Presence(env) => {
                let env: Arc<Inspected> = Arc::from(env);
                for other in (0..self.nodes.len()).filter(|other| *other != from) {
                    if self.nodes[other].up {
                        self.note(other, Note::Deliver(Arc::clone(&env)));
                    }
                }
            }
            _ => {}
        }
    }

    /// Delivers what the relay holds, once each, until nothing moves. What is deferred stays.
    pub(crate) fn run(&mut self) {
        loop {
            let before: Vec<usize> = self.nodes.iter().map(|node| node.queue.len()).collect();
            for number in 0..self.nodes.len() {
                let waiting: Vec<_> = self.nodes[number].queue.iter().cloned().collect();
                for env in waiting {
                    if !self.nodes[number].up {
                        break;
                    }
                    self.note(number, Note::Deliver(env));
                    if self.crashing {
                        self.start(number);
                    }
                }
            }
            if before == self.nodes.iter().map(|node| node.queue.len()).collect::<Vec<_>>() {
                return;
            }
        }
    }

    /// Lets time pass on both clocks, with every timer on its time.
    pub(crate) fn pass(&mut self, ms: u64) {
        let end = self.mono + ms;
        loop {
            let next = self.nodes.iter().filter_map(|node| node.daemon.deadline()).map(|(at, _)| at.0).min();
            let next = next.filter(|next| *next <= end).map_or(end, |next| next.max(self.mono));
            self.wall += next - self.mono;
            self.mono = next;
            let mut due = false;
            for number in 0..self.nodes.len() {
                if self.nodes[number].daemon.deadline().is_some_and(|(at, _)| at.0 <= next) {
                    due = true;
                    self.handle(number, Event::Timer);
                    let later = self.nodes[number].daemon.deadline().is_none_or(|(at, _)| at.0 > next);
                    assert!(
                        later,
                        "a timer came and changed nothing: {:?}",
                        self.nodes[number].daemon.deadline()
                    );
                }
            }
            if !due && next == end {
                break;
            }
        }
        self.run();
    }

    /// Delivers an envelope to a machine, as the relay would. Whether it was acked.
    pub(crate) fn deliver(&mut self, number: usize, envelope: Value) -> bool {
        let env = Arc::new(Inspected::new(envelope));
        self.nodes[number].queue.push_back(Arc::clone(&env));
        let before = self.nodes[number].queue.len();
        self.note(number, Note::Deliver(env));
        let acked = self.nodes[number].queue.len() < before;
        self.run();
        acked
    }

    /// A machine hears a presence, which the relay does not keep for it.
    pub(crate) fn hear(&mut self, number: usize, envelope: Value) {
        self.note(number, Note::Deliver(Arc::new(Inspected::new(envelope))));
    }

    /// Hands the roster, changed, to every machine.
    pub(crate) fn reroster(&mut self, change: impl FnOnce(&Author<'_>) -> Value) {
        let roster = std::mem::take(&mut self.roster);
        let entry = change(&Author::new(self.nodes[0].identity.signing(), &roster, Wall(START)).unwrap());
        self.roster = roster;
        let from = self.roster.apply(&entry, ApplyOptions::default()).unwrap().seq;
        for number in 0..self.nodes.len() {
            let node = &mut self.nodes[number];
            let mut writes = Writes::new();
            let mut txn = Txn::new(&node.base, None, &mut writes);
            node.daemon.facts.realm.append(&mut txn, &entry, ApplyOptions::default()).unwrap();
            node.base.apply(&writes);
            self.note(number, Note::RosterChanged { from });
        }
        self.run();
    }

    /// A machine's id.
    pub(crate) fn machine(&self, number: usize) -> MachineId {
        self.nodes[number].identity.machine()
    }
}

impl Node {
    fn new(identity: Identity) -> Self {
        Self {
            daemon: fresh(&identity, "{}"),
            base: MemoryBase::default(),
            identity,
            settings: "{}".to_owned(),
            up: true,
            conns: 0,
            calls: 0,
            queue: VecDeque::new(),
            lines: Vec::new(),
            sends: 0,
            copies: Vec::new(),
            dropped: 0,
            wakes: Vec::new(),
            refuse: VecDeque::new(),
        }
    }

    /// The first envelope the relay holds for it.
    pub(crate) fn first_queued(&self) -> Arc<Inspected> {
        Arc::clone(self.queue.front().unwrap())
    }

    /// Drops what the relay holds for it.
    pub(crate) fn clear_queue(&mut self) {
        self.queue.clear();
    }

    /// How many envelopes the relay holds for it.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }
}

fn fresh(identity: &Identity, settings: &str) -> Daemon {
    let settings = super::config::Settings::parse(settings.as_bytes()).unwrap().settings;
    let config = Config { settings, version: "1.0.0".to_owned(), pid: 7 };
    Daemon::new(config, Some(identity.export().read().unwrap()), None)
}
