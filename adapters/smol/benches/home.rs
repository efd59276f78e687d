//! A home after years of use, behind a real daemon process: how soon it serves, how long calls take over its socket and
//! how much memory it holds. Prints JSON lines.
//!
//! `cargo bench -p messaging-smol --bench home -- --program target/release/messaging`; `--samples N` (200) calls of each kind.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod filling;

use messaging_smol::client::{Client, Options};
use messaging_smol::home::Home;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often the daemon is started, each way.
const STARTS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    // `cargo test --benches` runs this, too; without a program there is nothing to measure.
    let Some(program) = after("--program").map(PathBuf::from) else { return };
    let samples = after("--samples").map_or(200, |text| text.parse().unwrap());

    let empty = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&program, &Home::new(&empty.path().join("home")));
    std::thread::sleep(Duration::from_secs(1));
    print("empty", json!({"rss_mib": daemon.memory("VmRSS")}));
    drop(daemon);

    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(&folder.path().join("home"));
    let filled = filling::fill(&home);
    let bytes = std::fs::metadata(home.store()).unwrap().len();
    print("filled", json!({"counts": filled, "store_mib": mib(bytes)}));

    for (how, stop) in [("stopped", true), ("killed", false)] {
        let mut starts = Vec::new();
        for _ in 0..STARTS {
            let mut daemon = Daemon::start(&program, &home);
            starts.push(daemon.served);
            if stop {
                daemon.client().call("daemon.stop", json!({})).unwrap();
                daemon.child.wait().unwrap();
            } else {
                // Something is written before it dies.
                daemon.session();
            }
        }
        starts.sort();
        let (median, slowest) = (ms(quantile(&starts, 50)), ms(quantile(&starts, 100)));
        print("start", json!({"after": how, "median_ms": median, "max_ms": slowest, "samples": STARTS}));
    }

    let daemon = Daemon::start(&program, &home);
    std::thread::sleep(Duration::from_secs(1));
    print("idle", json!({"rss_mib": daemon.memory("VmRSS")}));
    let client = daemon.session();
    for (name, method, params) in calls() {
        let mut params = params;
        let mut times = Vec::new();
        if method.starts_with("inbox.") || method.starts_with("task.") {
            params["key"] = json!(filling::KEY);
        }
        if name.ends_with("deep") {
            params["cursor"] = deep(&client, method);
        }
        for _ in 0..samples {
            let begin = Instant::now();
            client.call(method, params.clone()).unwrap();
            times.push(begin.elapsed());
        }
        times.sort();
        let [p50, p99, max] = [50, 99, 100].map(|percent| ms(quantile(&times, percent)));
        print(method, json!({"what": name, "p50_ms": p50, "p99_ms": p99, "max_ms": max, "samples": samples}));
    }
    let mut times: Vec<_> = (0..20)
        .map(|_| {
            let begin = Instant::now();
            let mut command = Command::new(&program);
            command.arg("--home").arg(home.path()).args(["daemon", "status"]);
            assert!(command.stdout(Stdio::null()).status().unwrap().success());
            begin.elapsed()
        })
        .collect();
    times.sort();
    print("cli", json!({"what": "daemon status", "p50_ms": ms(quantile(&times, 50)), "max_ms": ms(quantile(&times, 100))}));
    print("memory", json!({"rss_mib": daemon.memory("VmRSS"), "peak_mib": daemon.memory("VmHWM")}));
}

/// What is called, and how it is called in the results.
fn calls() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("latest 50", "conv.read", json!({"conversation": "dm:person-3"})),
        ("100 from far back", "conv.read", json!({"conversation": "dm:person-3", "before": 20_000, "limit": 100})),
        ("latest 50", "inbox.list", json!({})),
        ("200 unread", "inbox.list", json!({"unreadOnly": true, "limit": 200})),
        ("50 tasks", "inbox.list", json!({"kind": "task"})),
        ("page deep", "inbox.list", json!({"limit": 200})),
        ("nothing", "search", json!({"query": "nowhere to be found"})),
        ("the oldest line", "search", json!({"query": "number0 build"})),
        ("a common word, 100", "search", json!({"query": "release", "limit": 100})),
        ("everything there is", "contacts.list", json!({})),
        ("latest 100", "conv.list", json!({})),
        ("latest 20", "task.list", json!({})),
        ("all", "grant.list", json!({})),
        ("50 members", "team.info", json!({})),
        ("latest 50", "notice.list", json!({"lines": true})),
        ("all", "agents.list", json!({})),
        ("status", "daemon.status", json!({})),
    ]
}

/// A cursor 2,000 items back.
fn deep(client: &Client, method: &str) -> Value {
    let mut cursor = Value::Null;
    for _ in 0..10 {
        let mut params = json!({"key": filling::KEY, "limit": 200});
        if cursor.is_string() {
            params["cursor"] = cursor;
        }
        cursor = client.call(method, params).unwrap()["nextCursor"].clone();
    }
    cursor
}

fn print(workload: &str, mut figures: Value) {
    figures["peer"] = json!("messagingd");
    figures["workload"] = json!(workload);
    println!("{figures}");
}

/// A daemon process, killed when dropped.
struct Daemon {
    child: Child,
    home: Home,
    /// From its start to its answer to a first call.
    served: Duration,
}

impl Daemon {
    fn start(program: &Path, home: &Home) -> Self {
        let begin = Instant::now();
        let mut child = Command::new(program)
            .arg("--home")
            .arg(home.path())
            .args(["daemon", "run"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("messagingd: ready"), "{line}");
        let mut daemon = Self { child, home: home.clone(), served: Duration::ZERO };
        daemon.client().call("daemon.status", json!({})).unwrap();
        daemon.served = begin.elapsed();
        daemon
    }

    fn client(&self) -> Client {
        Client::connect(&Options::admin(self.home.clone())).unwrap()
    }

    /// The client of the session whose inbox is full.
    fn session(&self) -> Client {
        let client = self.client();
        let register =
            json!({"key": filling::KEY, "name": filling::SESSION, "agent": "codex", "tier": "push"});
        client.call("session.register", register).unwrap();
        client
    }

    /// A figure of `/proc/<pid>/status`, in MiB.
    fn memory(&self, name: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        mib(kib * 1024)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() - 1) * percent / 100]
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 100_000.0).round() / 100.0
}

fn mib(bytes: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a size to show")]
    let mib = bytes as f64 / 1_048_576.0;
    (mib * 10.0).round() / 10.0
}
