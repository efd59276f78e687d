//! A daemon's chats with 100,000 lines in a redb file: `cargo bench -p messaging-smol --bench chats`. The issue asks
//! for p99 under 50 ms; each benchmark takes 200 samples, so its slowest is at least that.
#![allow(missing_docs, clippy::unwrap_used)]

mod seed;

use divan::Bencher;
use messaging_machines::daemon::Daemon;
use messaging_machines::daemon::io::{Effect, Event, IpcId, Tier};
use messaging_machines::machine::{Machine, Out, Step};
use messaging_machines::store::{Txn, Writes};
use messaging_proto::identity::IdentityFile;
use messaging_proto::name::PersonId;
use messaging_proto::time::{Mono, Wall};
use messaging_sim::{START, World};
use messaging_smol::store::RedbStore;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use tempfile::TempDir;
use zeroize::Zeroizing;

const LINES: usize = 100_000;
const PERSONS: usize = 20;
const CONN: IpcId = IpcId(1);

const WORDS: [&str; 16] = [
    "build", "green", "release", "the", "a", "is", "please", "review", "branch", "merge", "failing", "test",
    "tomorrow", "thanks", "ok", "deploy",
];

fn main() {
    divan::main();
}

struct Home {
    daemon: Daemon,
    store: Arc<RedbStore>,
    steps: u64,
    mono: u64,
    _dir: TempDir,
}

impl Home {
    fn new() -> Self {
        let world = World::team(1, &["alice/laptop", "bob/desk"]);
        let dir = tempfile::tempdir().unwrap();
        let node = &world.nodes[0];
        let store = seed::store(node, &dir.path().join("x.db"));
        let identity = IdentityFile::new(Zeroizing::new(node.identity.clone().unwrap())).read().unwrap();
        let daemon = seed::daemon(identity, &node.config);
        let mut home = Self { daemon, store, steps: 0, mono: 1_000_000, _dir: dir };
        home.handle(Event::Start);
        home.handle(Event::IpcOpened { conn: CONN, tier: Tier::Admin });
        for batch in (0..LINES).collect::<Vec<_>>().chunks(2_000) {
            home.fill(batch);
        }
        home
    }

    fn step(&mut self) -> Step {
        self.steps += 1;
        let mut entropy = [0; 32];
        entropy[..8].copy_from_slice(&self.steps.to_be_bytes());
        Step::new(Mono(self.mono), Wall(START + self.mono), entropy)
    }

    /// Files lines, one a step so that each has an id of its own time.
    fn fill(&mut self, numbers: &[usize]) {
        let mut writes = Writes::new();
        for number in numbers {
            self.mono += 10;
            let step = self.step();
            let reader = self.store.reader();
            let mut txn = Txn::new(&reader, None, &mut writes);
            let person = PersonId::parse(&format!("person-{}", number % PERSONS)).unwrap();
            let words: Vec<_> = (0..12).map(|place| WORDS[(number * 7 + place * place * 3) % 16]).collect();
            let text = format!("{} number{number}", words.join(" "));
            self.daemon.fill_chats(&step, &mut txn, [(person, text)]).unwrap();
        }
        self.store.commit(&writes).unwrap();
    }

    /// Hands an event to the daemon and commits: the lines it says to its client.
    fn handle(&mut self, event: Event) -> Vec<String> {
        let step = self.step();
        let mut writes = Writes::new();
        let mut out = Out::new();
        let reader = self.store.reader();
        self.daemon.handle(&step, event, &mut Txn::new(&reader, None, &mut writes), &mut out).unwrap();
        if !writes.is_empty() {
            self.store.commit(&writes).unwrap();
        }
        let said = |effect| match effect {
            Effect::IpcSend { line, .. } => Some(line),
            _ => None,
        };
        out.take().into_iter().filter_map(said).collect()
    }

    /// Calls a method to its answer, over as many steps as it takes.
    fn call(&mut self, method: &str, params: &str) -> String {
        let line = format!(r#"{{"id":1,"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        let mut said = self.handle(Event::IpcLine { conn: CONN, line: line.into_bytes() });
        loop {
            if let Some(reply) = said.pop() {
                assert!(reply.contains(r#""result""#), "{method}: {reply}");
                return reply;
            }
            self.mono += 1;
            said = self.handle(Event::Timer);
        }
    }
}

fn home() -> MutexGuard<'static, Home> {
    static HOME: OnceLock<Mutex<Home>> = OnceLock::new();
    HOME.get_or_init(|| Mutex::new(Home::new())).lock().unwrap()
}

fn bench(bencher: Bencher<'_, '_>, method: &str, params: &str) {
    let mut home = home();
    bencher.bench_local(|| home.call(method, params));
}

/// No line has the words: every text is read.
#[divan::bench(sample_count = 200, sample_size = 1)]
fn search_nothing(bencher: Bencher<'_, '_>) {
    bench(bencher, "search", r#"{"query":"nowhere to be found"}"#);
}

/// The one hit is the oldest line.
#[divan::bench(sample_count = 200, sample_size = 1)]
fn search_the_oldest(bencher: Bencher<'_, '_>) {
    bench(bencher, "search", r#"{"query":"number0 build"}"#);
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn search_a_common_word(bencher: Bencher<'_, '_>) {
    bench(bencher, "search", r#"{"query":"release","limit":100}"#);
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn search_one_chat(bencher: Bencher<'_, '_>) {
    bench(bencher, "search", r#"{"query":"nowhere","conversation":"dm:person-3"}"#);
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn conv_read_latest(bencher: Bencher<'_, '_>) {
    bench(bencher, "conv.read", r#"{"conversation":"dm:person-3"}"#);
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn conv_read_far_back(bencher: Bencher<'_, '_>) {
    bench(bencher, "conv.read", r#"{"conversation":"dm:person-3","before":20000,"limit":100}"#);
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn conv_list(bencher: Bencher<'_, '_>) {
    bench(bencher, "conv.list", "{}");
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn contacts_list(bencher: Bencher<'_, '_>) {
    bench(bencher, "contacts.list", "{}");
}

/// Half of a chat is left unread, the worst there is to count.
#[divan::bench(sample_count = 1, sample_size = 1)]
fn conv_mark_read_half(bencher: Bencher<'_, '_>) {
    bench(bencher, "conv.markRead", r#"{"conversation":"dm:person-5","upTo":50000}"#);
}
