//! A team of daemons in memory, for tests of the roles between the roster and the link: real envelopes, rows and
//! local calls. The relay is a list of envelopes per recipient; the roster is given.

use super::ctx::{Ctx, Note};
use super::io::{Effect, Event, IpcId, Tier};
use super::link::LinkState;
use super::realm::Realm;
use super::schema;
use super::{Config, Daemon};
use crate::machine::{Label, Machine, Out, Step};
use crate::store::{MemoryBase, Txn, Writes};
use messaging_proto::Code;
use messaging_proto::domain::Domain;
use messaging_proto::envelope::{
    End, HeaderParts, Inspected, Kind, To, open_envelope, seal_header, seal_presence,
};
use messaging_proto::frame::{ClientFrame, Parsed, Received};
use messaging_proto::identity::Identity;
use messaging_proto::json::{FromValue, Object, Value, canonicalize, parse_wire};
use messaging_proto::key::{EncSecret, MachineId};
use messaging_proto::limits::FRAME_BYTES;
use messaging_proto::name::{self, PersonId, TeamName};
use messaging_proto::realm::{RealmView, Role};
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

/// An envelope a machine makes by hand.
#[derive(Debug)]
pub(crate) struct Forged<'a> {
    pub(crate) kind: Kind,
    pub(crate) from_agent: Option<&'a str>,
    pub(crate) to_agent: Option<&'a str>,
    pub(crate) reply_to: Option<&'a str>,
    pub(crate) payload: &'a str,
    pub(crate) header: Vec<(&'static str, Value)>,
}

impl<'a> Forged<'a> {
    /// An envelope of this type to a device.
    pub(crate) const fn new(kind: Kind, payload: &'a str) -> Self {
        Self { kind, from_agent: None, to_agent: None, reply_to: None, payload, header: Vec::new() }
    }

    /// The same between two sessions.
    pub(crate) const fn between(mut self, from: &'a str, to: &'a str) -> Self {
        self.from_agent = Some(from);
        self.to_agent = Some(to);
        self
    }
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

    fn release(&mut self, number: usize, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::IpcSend { conn, line } => self.nodes[number].lines.push((conn, json(&line))),
                Effect::LinkSend { text, .. } => self.relay(number, text),
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

    /// A connection of the admin socket.
    pub(crate) fn connect(&mut self, number: usize) -> IpcId {
        self.open_socket(number, Tier::Admin)
    }

    /// A connection of the agent socket.
    pub(crate) fn agent(&mut self, number: usize) -> IpcId {
        self.open_socket(number, Tier::Agent)
    }

    fn open_socket(&mut self, number: usize, tier: Tier) -> IpcId {
        self.nodes[number].conns += 1;
        let conn = IpcId(self.nodes[number].conns);
        self.handle(number, Event::IpcOpened { conn, tier });
        conn
    }

    /// Closes a connection.
    pub(crate) fn close(&mut self, number: usize, conn: IpcId) {
        self.handle(number, Event::IpcClosed { conn });
    }

    /// Calls a method. The result, or the error object.
    pub(crate) fn call(
        &mut self,
        number: usize,
        conn: IpcId,
        method: &str,
        params: &str,
    ) -> Result<Value, Value> {
        self.nodes[number].calls += 1;
        let id = self.nodes[number].calls;
        let params = json(params);
        let request: Object = [
            ("jsonrpc".to_owned(), Value::text("2.0")),
            ("id".to_owned(), Value::int(id)),
            ("method".to_owned(), Value::text(method)),
            ("params".to_owned(), params),
        ]
        .into_iter()
        .collect();
        let line = canonicalize(&request.into()).unwrap().into_bytes();
        // A machine that failed since has forgotten the connection.
        let failed = self.fault.is_some();
        self.handle(number, Event::IpcLine { conn, line });
        let lines = &self.nodes[number].lines;
        let mine = |line: &&(IpcId, Value)| {
            line.0 == conn && line.1.get("id").is_some_and(|value| u64::from_value(value).ok() == Some(id))
        };
        let Some((_, reply)) = lines.iter().rfind(mine) else {
            assert!(failed, "{method} was not answered");
            return Err(Value::Null);
        };
        let reply = reply.clone();
        match (reply.get("result"), reply.get("error")) {
            (Some(result), None) => Ok(result.clone()),
            (None, Some(error)) => Err(error.clone()),
            _ => panic!("no reply: {reply:?}"),
        }
    }

    /// Calls a method that succeeds.
    pub(crate) fn ok(&mut self, number: usize, conn: IpcId, method: &str, params: &str) -> Value {
        self.call(number, conn, method, params).unwrap_or_else(|error| panic!("{method} {params}: {error:?}"))
    }

    /// Calls a method that is refused: its code.
    pub(crate) fn refused(&mut self, number: usize, conn: IpcId, method: &str, params: &str) -> String {
        match self.call(number, conn, method, params) {
            Ok(result) => panic!("{method} {params}: {result:?}"),
            Err(error) => text(&error, "data.code").to_owned(),
        }
    }

    /// Registers a push session and subscribes its events on a new connection.
    pub(crate) fn session(&mut self, number: usize, letter: char, name: &str, agent: &str) -> IpcId {
        let conn = self.connect(number);
        let key = key(letter);
        self.ok(
            number,
            conn,
            "session.register",
            &format!(r#"{{"key":"{key}","name":"{name}","agent":"{agent}","tier":"push"}}"#),
        );
        self.ok(number, conn, "events.subscribe", &format!(r#"{{"key":"{key}"}}"#));
        self.pass(2_000);
        conn
    }

    /// An envelope as the machine `from` could make one for `to`, whatever its daemon would. `header` changes members
    /// of the header before it is signed.
    pub(crate) fn forge(&mut self, from: usize, to: usize, forged: &Forged<'_>) -> Value {
        let step = self.step();
        let member = |number: usize| {
            let machine = self.nodes[number].identity.machine();
            self.roster.member(&machine).unwrap().clone()
        };
        let (sender, recipient) = (member(from), member(to));
        let mut end = Object::new();
        end.set("person", Value::text(recipient.person.as_str()));
        end.set("device", Value::text(recipient.machine.to_string()));
        let mut start = Object::new();
        start.set("person", Value::text(sender.person.as_str()));
        start.set("device", Value::text(sender.machine.to_string()));
        for (object, agent) in [(&mut start, forged.from_agent), (&mut end, forged.to_agent)] {
            if let Some(agent) = agent {
                object.set("agent", Value::text(agent));
            }
        }
        let parts = HeaderParts {
            id: Ulid::new(Wall(self.wall), step.draw(Label::EnvelopeId)),
            kind: forged.kind,
            realm: self.roster.realm(),
            anchor: self.roster.anchor(),
            from: End::from_value(&start.into()).unwrap(),
            to: To::from_value(&end.into()).unwrap(),
            ts: Wall(self.wall),
            exp: Wall(self.wall + 604_800_000),
            reply_to: forged.reply_to.map(|id| Ulid::parse(id).unwrap()),
        };
        let Value::Object(mut header) = parts.to_value() else { panic!("no header") };
        for (name, value) in &forged.header {
            header.set(*name, value.clone());
        }
        let ephemeral = EncSecret::from_bytes(step.draw(Label::Ephemeral));
        let signer = self.nodes[from].identity.signing();
        let sealed = seal_header(
            signer,
            header.into(),
            &json(forged.payload),
            &recipient.enc,
            &ephemeral,
            step.draw(Label::Nonce),
        );
        sealed.unwrap().value
    }

    /// A presence as the machine `from` could say one, whatever its daemon would.
    pub(crate) fn forge_presence(&mut self, from: usize, payload: &str) -> Value {
        let step = self.step();
        let machine = self.nodes[from].identity.machine();
        let parts = HeaderParts {
            id: Ulid::new(Wall(self.wall), step.draw(Label::EnvelopeId)),
            kind: Kind::Presence,
            realm: self.roster.realm(),
            anchor: self.roster.anchor(),
            from: End {
                person: self.roster.member(&machine).unwrap().person.clone(),
                device: machine,
                agent: None,
            },
            to: To::Team,
            ts: Wall(self.wall),
            exp: Wall(self.wall + 604_800_000),
            reply_to: None,
        };
        seal_presence(self.nodes[from].identity.signing(), &parts, json(payload)).unwrap().value
    }

    /// Signs an envelope again, after it was changed.
    pub(crate) fn resign(&self, from: usize, envelope: Value) -> Value {
        let Value::Object(mut envelope) = envelope else { panic!("no envelope") };
        envelope.remove("sig");
        let unsigned = Value::Object(envelope.clone());
        let sig = self.nodes[from].identity.signing().sign_value(Domain::Envelope, &unsigned).unwrap();
        envelope.set("sig", Value::text(sig.to_string()));
        envelope.into()
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

    /// The payload of an envelope for a machine.
    pub(crate) fn open(&self, number: usize, env: &Inspected) -> Value {
        let keys = self.nodes[number].identity.open_keys(Wall(self.wall));
        open_envelope(env, &keys).unwrap().raw().clone()
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

    /// The events of a type a machine has sent, and forgets them.
    pub(crate) fn events(&mut self, number: usize, of: &str) -> Vec<Value> {
        let is = |line: &Value| {
            line.get("params").is_some_and(|event| event.get("type").and_then(Value::as_str) == Some(of))
        };
        let (taken, kept) =
            std::mem::take(&mut self.nodes[number].lines).into_iter().partition(|(_, line)| is(line));
        self.nodes[number].lines = kept;
        let taken: Vec<(IpcId, Value)> = taken;
        taken.into_iter().filter_map(|(_, line)| line.get("params").cloned()).collect()
    }

    /// The stages of a sent envelope, as its session sees them.
    pub(crate) fn stages(&mut self, number: usize, conn: IpcId, letter: char, envelope: &str) -> Vec<String> {
        let params = format!(r#"{{"key":"{}","id":"{envelope}"}}"#, key(letter));
        let read = self.ok(number, conn, "item.read", &params);
        at(&read, "history")
            .as_array()
            .unwrap()
            .iter()
            .map(|reached| text(reached, "stage").to_owned())
            .collect()
    }

    /// The unread items of a session, newest first.
    pub(crate) fn unread(&mut self, number: usize, conn: IpcId, letter: char) -> Vec<Value> {
        let params = format!(r#"{{"key":"{}","unreadOnly":true}}"#, key(letter));
        at(&self.ok(number, conn, "inbox.list", &params), "items").as_array().unwrap().to_vec()
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
