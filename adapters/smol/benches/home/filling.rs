//! Fills a home with as much as it is told, a tenth of its inbox items tasks.

use crate::seed;
use messaging_machines::daemon::Daemon;
use messaging_machines::daemon::io::{Event, IpcId, Tier};
use messaging_machines::daemon::schema::ROSTER;
use messaging_machines::machine::{Machine, Out, Step};
use messaging_machines::store::{Txn, Writes};
use messaging_proto::identity::{Identity, IdentityFile};
use messaging_proto::key::MachineId;
use messaging_proto::name::{Label, PersonId, SessionName};
use messaging_proto::roster::{ApplyOptions, Author, Member, Role, Roster};
use messaging_proto::time::{Mono, Wall};
use messaging_sim::{START, URL, World};
use messaging_smol::home::Home;
use messaging_smol::store::RedbStore;
use serde_json::{Value, json};
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::sync::Arc;
use std::time::SystemTime;
use zeroize::Zeroizing;

/// How much a home holds.
#[derive(Clone, Copy)]
pub(crate) struct Amount {
    pub(crate) lines: usize,
    pub(crate) items: usize,
    pub(crate) grants: usize,
    pub(crate) members: usize,
    /// Of the roster.
    pub(crate) entries: usize,
}

/// Years of use.
pub(crate) const YEARS: Amount =
    Amount { lines: 100_000, items: 20_000, grants: 500, members: 50, entries: 10_000 };
/// A week of a busy team of ten: five agents here, each with a hundred messages a day.
pub(crate) const WEEK: Amount = Amount { lines: 3_500, items: 1_750, grants: 20, members: 10, entries: 30 };

/// One inbox item of so many is a task.
const TASK_EVERY: usize = 10;
/// Writes of one commit.
const BATCH: usize = 2_000;
/// How long ago the filling begins: nothing of it is old enough to be deleted.
const AGO_MS: u64 = 5 * 86_400_000;

pub(crate) const SESSION: &str = "builder";
pub(crate) const KEY: &str = "builder-0123456789abcdefghijklmnop";
const CONN: IpcId = IpcId(1);

const WORDS: [&str; 16] = [
    "build", "green", "release", "the", "a", "is", "please", "review", "branch", "merge", "failing", "test",
    "tomorrow", "thanks", "ok", "deploy",
];

/// Fills it, and says with how much.
pub(crate) fn fill(home: &Home, amount: Amount) -> Value {
    let world = World::team(1, &["alice/laptop"]);
    let node = &world.nodes[0];
    let identity = node.identity.clone().unwrap();
    // A relay that is not there: what is measured is this machine alone.
    let config = node.config.replace(URL, "ws://127.0.0.1:9/v1/connect");
    DirBuilder::new().mode(0o700).create(home.path()).unwrap();
    write(home, "identity.json", &identity);
    write(home, "config.json", &config);

    let store = seed::store(node, &home.store());
    let keys = IdentityFile::new(Zeroizing::new(identity)).read().unwrap();
    let entries = node.base.iter().filter(|(table, ..)| *table == ROSTER);
    let texts: Vec<_> = entries.map(|(.., value)| String::from_utf8(value[1..].to_vec()).unwrap()).collect();
    let (roster, peers) = grown(Roster::replay_texts(&texts).unwrap(), &keys, amount);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let wall = u64::try_from(now).unwrap() - AGO_MS;
    let daemon = seed::daemon(keys, &config);
    let mut filler = Filler { daemon, store, steps: 0, wall };
    filler.event(Event::Start);
    filler.all(1, |daemon, step, txn, _| daemon.fill_roster(step, txn, roster.clone()).unwrap());
    filler.event(Event::IpcOpened { conn: CONN, tier: Tier::Admin });
    let register = format!(
        r#"{{"id":1,"jsonrpc":"2.0","method":"session.register","params":{{"key":"{KEY}","name":"{SESSION}","agent":"codex","tier":"push"}}}}"#
    );
    filler.event(Event::IpcLine { conn: CONN, line: register.into_bytes() });
    filler.all(peers.len(), |daemon, step, txn, at| daemon.fill_presence(step, txn, &peers[at]).unwrap());
    filler.all(amount.grants, |daemon, step, txn, at| daemon.fill_grant(step, txn, person(at + 1)).unwrap());
    filler.all(amount.lines, |daemon, step, txn, at| {
        let line = (person(at % peers.len() + 1), text(at));
        daemon.fill_chats(step, txn, [line]).unwrap();
    });
    let session = SessionName::parse(SESSION).unwrap();
    filler.all(amount.items, |daemon, step, txn, at| {
        let is_task = at % TASK_EVERY == 0;
        let from = &peers[at % peers.len()];
        daemon.fill_inbox(step, txn, &session, from, (&text(at), is_task)).unwrap();
    });
    let Amount { lines, items, grants, members, entries } = amount;
    let tasks = items / TASK_EVERY;
    json!({"lines": lines, "items": items, "tasks": tasks, "grants": grants, "members": members, "entries": entries})
}

struct Filler {
    daemon: Daemon,
    store: Arc<RedbStore>,
    steps: u64,
    wall: u64,
}

impl Filler {
    fn step(&mut self) -> Step {
        self.steps += 1;
        let mut entropy = [0; 32];
        entropy[..8].copy_from_slice(&self.steps.to_be_bytes());
        Step::new(Mono(self.steps * 10), Wall(self.wall + self.steps * 10), entropy)
    }

    fn event(&mut self, event: Event) {
        let (mut writes, mut out) = (Writes::new(), Out::new());
        let (step, reader) = (self.step(), self.store.reader());
        self.daemon.handle(&step, event, &mut Txn::new(&reader, None, &mut writes), &mut out).unwrap();
        self.store.commit(&writes).unwrap();
    }

    /// Fills so many times, each at its own time.
    fn all(&mut self, count: usize, mut fill: impl FnMut(&mut Daemon, &Step, &mut Txn<'_>, usize)) {
        for batch in (0..count).collect::<Vec<_>>().chunks(BATCH) {
            let mut writes = Writes::new();
            let reader = self.store.reader();
            for &at in batch {
                let step = self.step();
                fill(&mut self.daemon, &step, &mut Txn::new(&reader, None, &mut writes), at);
            }
            self.store.commit(&writes).unwrap();
        }
    }
}

/// The founder's roster with the other members and a long history of new keys; and the others' machines.
fn grown(mut roster: Roster, founder: &Identity, amount: Amount) -> (Roster, Vec<MachineId>) {
    let mut ts = START + 1_000_000;
    let others: Vec<_> = (1..amount.members).map(|number| identity(number, 0)).collect();
    for (at, other) in others.iter().enumerate() {
        let member = Member {
            machine: other.machine(),
            enc: other.enc(),
            person: person(at + 1),
            role: Role::Member,
            label: Label::parse("desk").unwrap(),
        };
        ts += 1_000;
        let entry = Author::new(founder.signing(), &roster, Wall(ts)).unwrap().member_add(&member).unwrap();
        roster.apply(&entry, ApplyOptions::default()).unwrap();
    }
    let mut round = 0;
    while usize::try_from(roster.head().unwrap().seq).unwrap() + 1 < amount.entries {
        round += 1;
        let at = round % others.len();
        let (other, enc) = (&others[at], identity(at + 1, round).enc());
        ts += 1_000;
        let author = Author::new(other.signing(), &roster, Wall(ts)).unwrap();
        let entry = author.member_rekey(&other.machine(), &enc).unwrap();
        roster.apply(&entry, ApplyOptions::default()).unwrap();
    }
    (roster, others.iter().map(Identity::machine).collect())
}

fn identity(number: usize, round: usize) -> Identity {
    let (mut seed, mut enc) = ([7; 32], [9; 32]);
    seed[..8].copy_from_slice(&number.to_be_bytes());
    enc[..8].copy_from_slice(&number.to_be_bytes());
    enc[8..16].copy_from_slice(&round.to_be_bytes());
    Identity::generate(seed, enc)
}

fn person(number: usize) -> PersonId {
    PersonId::parse(&format!("person-{number}")).unwrap()
}

fn text(number: usize) -> String {
    let words: Vec<_> = (0..12).map(|place| WORDS[(number * 7 + place * place * 3) % 16]).collect();
    format!("{} number{number}", words.join(" "))
}

fn write(home: &Home, name: &str, text: &str) {
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(home.path().join(name)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}
