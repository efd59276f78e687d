//! What is counted, instruction by instruction, under callgrind: `scripts/counts` runs each of these, divides by the
//! repetitions and compares with `machines/benches/counts.txt`.
//!
//! Only what happens inside [`counted`] counts: setting up does not.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use messaging_machines::daemon::io::Tier;
use messaging_machines::relay::io::{ConnId, Effect, Event};
use messaging_machines::relay::limits::Limits;
use messaging_machines::relay::{Config, Relay};
use messaging_machines::store::{MemoryBase, Txn, Writes};
use messaging_machines::{Machine, Out, Step};
use messaging_proto::envelope::{
    Anchor, End, HeaderParts, Inspected, Kind, To, open_envelope, seal_envelope, verify_envelope,
};
use messaging_proto::frame::{ClientOutbound, HelloClaim, Nonce, Received, RelayFrame, sign_hello};
use messaging_proto::json::{Value, canonicalize, parse_wire, parse_wire_noting};
use messaging_proto::key::{EncSecret, SigningKey};
use messaging_proto::limits::FRAME_BYTES;
use messaging_proto::name::{Label, PersonId, SessionName, TeamName};
use messaging_proto::roster::{ApplyOptions, Author, Member, Role, Roster, genesis};
use messaging_proto::time::{Mono, Wall};
use messaging_proto::ulid::Ulid;
use messaging_sim::World;
use std::hint::black_box;

const NOW: Wall = Wall(1_795_000_000_000);
const RELAY: &str = "wss://relay.example";
const TEXT: usize = 1_000;

/// Runs what is counted. By its name callgrind knows when to begin and to end.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
    black_box(());
}

/// One machine of one person.
struct Device {
    key: SigningKey,
    enc: EncSecret,
    person: PersonId,
}

impl Device {
    fn new(number: u8) -> Self {
        Self {
            key: SigningKey::from_seed([number; 32]),
            enc: EncSecret::from_bytes([number ^ 0x55; 32]),
            person: PersonId::parse(&format!("p{number}")).unwrap(),
        }
    }

    fn member(&self, role: Role) -> Member {
        Member {
            machine: self.key.machine(),
            enc: self.enc.public(),
            person: self.person.clone(),
            role,
            label: Label::parse("m").unwrap(),
        }
    }

    fn end(&self) -> End {
        End { person: self.person.clone(), device: self.key.machine(), agent: SessionName::parse("agent") }
    }
}

/// A team of three, and its entries.
struct Team {
    devices: [Device; 3],
    roster: Roster,
    entries: Vec<Value>,
}

impl Team {
    fn new() -> Self {
        let devices = [1, 2, 3].map(Device::new);
        let name = TeamName::parse("team").unwrap();
        let mut entries =
            vec![genesis(&devices[0].key, NOW, &name, &devices[0].member(Role::Admin)).unwrap()];
        let mut roster = Roster::from_entries(&entries).unwrap();
        for device in &devices[1..] {
            let author = Author::new(&devices[0].key, &roster, NOW).unwrap();
            let entry = author.member_add(&device.member(Role::Member)).unwrap();
            roster.apply(&entry, ApplyOptions::default()).unwrap();
            entries.push(entry);
        }
        Self { devices, roster, entries }
    }

    fn parts(&self, number: u8) -> HeaderParts {
        HeaderParts {
            id: Ulid::new(NOW, [number; 10]),
            kind: Kind::Message,
            realm: self.roster.team().unwrap(),
            anchor: Anchor::Roster(self.roster.head().unwrap()),
            from: self.devices[0].end(),
            to: To::Device(self.devices[1].end()),
            ts: NOW,
            exp: NOW.plus(604_800_000),
            reply_to: None,
        }
    }

    /// The canonical text of an envelope from the first to the second.
    fn envelope(&self, number: u8) -> String {
        let ephemeral = EncSecret::from_bytes([number ^ 7; 32]);
        let to = self.devices[1].enc.public();
        let sealed =
            seal_envelope(&self.devices[0].key, &self.parts(number), &payload(), &to, &ephemeral, [3; 12]);
        sealed.unwrap().text
    }
}

fn payload() -> Value {
    let id = "01M7Q5CQG0B6CF8BHJAKRXAX3R";
    let text = "x".repeat(TEXT);
    let text = format!(
        r#"{{"kind":"message","message":{{"messageId":"{id}","parts":[{{"text":"{text}"}}],"role":"ROLE_USER"}}}}"#
    );
    parse_wire(text.as_bytes(), text.len()).unwrap()
}

/// The relay's machine over a store in memory.
struct Desk {
    relay: Relay,
    base: MemoryBase,
    drawn: u64,
}

impl Desk {
    fn new(team: &Team) -> Self {
        let config = Config {
            relay_id: RELAY.into(),
            team_creation: true,
            genesis: Vec::new(),
            limits: Limits::default(),
        };
        let mut desk = Self { relay: Relay::new(config), base: MemoryBase::default(), drawn: 0 };
        desk.step(Event::Start);
        for (index, entry) in team.entries.iter().enumerate() {
            let conn = ConnId(100 + index as u64);
            if index == 0 {
                desk.open(conn);
            } else {
                desk.hello(team, conn, 0);
            }
            let text = canonicalize(entry).unwrap();
            desk.say(conn, &format!(r#"{{"t":"roster.append","req":"r","entry":{text}}}"#));
        }
        desk
    }

    fn step(&mut self, event: Event) -> Vec<Effect> {
        self.drawn += 1;
        let mut entropy = [0; 32];
        entropy[..8].copy_from_slice(&self.drawn.to_be_bytes());
        let step = Step::new(Mono(1_000), NOW, entropy);
        let (mut writes, mut out) = (Writes::new(), Out::new());
        let mut txn = Txn::new(&self.base, None, &mut writes);
        self.relay.handle(&step, event, &mut txn, &mut out).unwrap();
        self.base.apply(&writes);
        out.take()
    }

    fn open(&mut self, conn: ConnId) -> Nonce {
        let said = self.step(Event::Opened { conn, address: "192.0.2.1".to_owned() });
        let challenge = said.into_iter().find_map(|effect| match effect {
            Effect::Send { frame: RelayFrame::Challenge { nonce, .. }, .. } => Some(nonce),
            _ => None,
        });
        challenge.unwrap()
    }

    fn hello(&mut self, team: &Team, conn: ConnId, device: usize) {
        let nonce = self.open(conn);
        let id = team.roster.team().unwrap();
        let claim = HelloClaim { relay: RELAY, nonce: &nonce, team: &id, ts: NOW };
        let hello = sign_hello(&team.devices[device].key, &claim).unwrap();
        self.say(conn, &ClientOutbound::Hello(hello).to_text());
    }

    fn frame(conn: ConnId, text: &str) -> Event {
        Event::Frame { conn, frame: Box::new(Received::parse(text.as_bytes().to_vec(), FRAME_BYTES)) }
    }

    fn say(&mut self, conn: ConnId, text: &str) -> Vec<Effect> {
        self.step(Self::frame(conn, text))
    }
}

/// `send` frames of different envelopes, parsed and verified.
fn sends(team: &Team, count: u8, conn: ConnId) -> Vec<Event> {
    let one = |number| Desk::frame(conn, &format!(r#"{{"env":{},"t":"send"}}"#, team.envelope(number)));
    (0..count).map(one).collect()
}

fn repeat(times: u8, mut work: impl FnMut()) -> u8 {
    // Once for what is only made the first time.
    work();
    counted(&mut || (0..times).for_each(|_| work()));
    times
}

/// Does one of them; how often.
fn run(name: &str) -> Option<u8> {
    let team = Team::new();
    Some(match name {
        "strict_scan" => {
            let text = team.envelope(1);
            repeat(50, || drop(black_box(parse_wire_noting(text.as_bytes(), text.len()).unwrap())))
        }
        "canonical_text" => {
            let text = team.envelope(1);
            let value = parse_wire(text.as_bytes(), text.len()).unwrap();
            repeat(50, || drop(black_box(canonicalize(&value).unwrap())))
        }
        "envelope_verify" => {
            let text = team.envelope(1);
            let me = team.devices[1].key.machine();
            repeat(10, || {
                let (value, _) = parse_wire_noting(text.as_bytes(), text.len()).unwrap();
                let inspected = Inspected::with_text(value, text.as_str());
                assert!(verify_envelope(&inspected, &team.roster, NOW, Some(&me)).is_ok());
            })
        }
        "seal" => repeat(10, || drop(black_box(team.envelope(1)))),
        "open" => {
            let text = team.envelope(1);
            let inspected = Inspected::new(parse_wire(text.as_bytes(), text.len()).unwrap());
            let keys = [&team.devices[1].enc];
            repeat(10, || drop(black_box(open_envelope(&inspected, &keys).unwrap())))
        }
        "roster_apply" => repeat(5, || drop(black_box(Roster::from_entries(&team.entries).unwrap()))),
        "queue_step" => {
            let mut desk = Desk::new(&team);
            desk.hello(&team, ConnId(1), 0);
            let mut events = sends(&team, 21, ConnId(1)).into_iter();
            repeat(20, || drop(black_box(desk.step(events.next().unwrap()))))
        }
        "delivery_step" => {
            // The same with its recipient there, and its ack.
            let mut desk = Desk::new(&team);
            desk.hello(&team, ConnId(1), 0);
            desk.hello(&team, ConnId(2), 1);
            let from = team.devices[0].key.machine();
            let acks = (0..21).map(|number| {
                let id = Ulid::new(NOW, [number; 10]);
                Desk::frame(ConnId(2), &format!(r#"{{"from":"{from}","id":"{id}","t":"recv.ack"}}"#))
            });
            let acks: Vec<Event> = acks.collect();
            let mut events = sends(&team, 21, ConnId(1)).into_iter().zip(acks);
            repeat(20, || {
                let (send, ack) = events.next().unwrap();
                let said = desk.step(send);
                assert!(said.iter().any(|effect| {
                    matches!(effect, Effect::Send { frame: RelayFrame::Deliver { .. }, .. })
                }));
                desk.step(ack);
            })
        }
        "inbox_step" => {
            // From the sender's call to the receipt: two daemons and the relay, with the simulator's books.
            let mut world = World::team(7, &["alice/laptop", "alice/desk"]);
            let agents = [(0, 'a', "lead"), (1, 'b', "agent")].map(|(node, letter, name)| {
                let conn = world.connect(node, Tier::Agent);
                let key = letter.to_string().repeat(24);
                let params = format!(r#"{{"key":"{key}","name":"{name}","agent":"codex","tier":"push"}}"#);
                world.call_on(node, conn, "session.register", &params).unwrap();
                (conn, key)
            });
            world.pass(3_000);
            let (conn, key) = &agents[0];
            repeat(5, || {
                let params =
                    format!(r#"{{"key":"{key}","to":"alice/agent@desk","parts":[{{"text":"hello"}}]}}"#);
                world.call_on(0, *conn, "msg.send", &params).unwrap();
                world.settle();
            })
        }
        _ => return None,
    })
}

const NAMES: [&str; 9] = [
    "strict_scan",
    "canonical_text",
    "envelope_verify",
    "seal",
    "open",
    "roster_apply",
    "queue_step",
    "delivery_step",
    "inbox_step",
];

fn main() {
    match std::env::args().nth(1).filter(|name| !name.starts_with('-')) {
        Some(name) => match run(&name) {
            Some(times) => println!("{name} {times}"),
            None => std::process::exit(2),
        },
        // `cargo test` and `cargo bench` run it so: each once, to see that it works.
        None => NAMES.iter().for_each(|name| assert!(run(name).is_some())),
    }
}
