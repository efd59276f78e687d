//! A home after years of use, behind a real daemon process: how soon it serves, how long calls take over its socket and
//! how much memory it holds. Prints JSON lines.
//!
//! `cargo bench -p messaging-smol --bench home -- --program target/release/messaging`; `--samples N` (200) calls of each
//! kind; `--only home`, `--only week` (a home a week old), `--only curves` (how search grows with lines, and a start with
//! the roster) or `--only receive`, which is a thousand envelopes that wait for a daemon at the relay; `--perf FILE` records the
//! receiving daemon.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod filling;
mod process;
mod receive;
#[path = "../seed/mod.rs"]
mod seed;

use filling::{Amount, WEEK, YEARS};
use messaging_smol::client::Client;
use messaging_smol::home::Home;
use process::Daemon;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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

    let only = after("--only");
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if wanted("home") {
        empty(&program);
        full(&program, samples, YEARS, &[]);
    }
    if wanted("week") {
        full(&program, samples, WEEK, &[]);
    }
    if wanted("receive") {
        receive::run(&program, after("--perf").as_deref());
    }
    if only.as_deref() == Some("curves") {
        curves(&program, samples);
    }
}

/// How a search grows with the transcript, and a start with the roster.
fn curves(program: &Path, samples: usize) {
    let few = Amount { lines: 100, items: 100, grants: 5, members: 10, entries: 20 };
    for lines in [1_000, 10_000, 100_000, 1_000_000] {
        full(program, samples, Amount { lines, ..few }, &["search", "conv.read"]);
    }
    for entries in [20, 100, 1_000, 10_000, 100_000] {
        full(program, samples, Amount { entries, ..few }, &["team.info"]);
    }
}

/// A home that nothing happened in.
fn empty(program: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(program, &Home::new(&folder.path().join("home")));
    std::thread::sleep(Duration::from_secs(1));
    print("empty", json!({"rss_mib": daemon.memory("VmRSS")}));
}

/// A home that holds something, asked in every way, or by these methods.
fn full(program: &Path, samples: usize, amount: Amount, methods: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(&folder.path().join("home"));
    let filled = filling::fill(&home, amount);
    let bytes = std::fs::metadata(home.store()).unwrap().len();
    print("filled", json!({"counts": filled, "store_mib": mib(bytes)}));

    for (how, stop) in [("stopped", true), ("killed", false)] {
        let mut starts = Vec::new();
        for _ in 0..STARTS {
            let daemon = Daemon::start(program, &home);
            starts.push(daemon.served);
            if stop {
                daemon.stop();
            } else {
                // Something is written before it dies.
                daemon.register(filling::SESSION, filling::KEY, "codex");
            }
        }
        starts.sort();
        let (median, slowest) = (ms(quantile(&starts, 50)), ms(quantile(&starts, 100)));
        print("start", json!({"after": how, "median_ms": median, "max_ms": slowest, "samples": STARTS}));
    }

    let daemon = Daemon::start(program, &home);
    std::thread::sleep(Duration::from_secs(1));
    print("idle", json!({"rss_mib": daemon.memory("VmRSS")}));
    let client = daemon.register(filling::SESSION, filling::KEY, "codex");
    let asked = |method: &str| methods.is_empty() || methods.contains(&method);
    for (name, method, params) in calls().into_iter().filter(|(_, method, _)| asked(method)) {
        let mut params = params;
        let mut times = Vec::new();
        if method.starts_with("inbox.") || method.starts_with("task.") {
            params["key"] = json!(filling::KEY);
        }
        if name.ends_with("deep") {
            params["cursor"] = deep(&client, method);
            if params["cursor"].is_null() {
                continue;
            }
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
            let mut command = Command::new(program);
            command.arg("--home").arg(home.path()).arg("status");
            assert!(command.stdout(Stdio::null()).status().unwrap().success());
            begin.elapsed()
        })
        .collect();
    times.sort();
    print(
        "cli",
        json!({"what": "status", "p50_ms": ms(quantile(&times, 50)), "max_ms": ms(quantile(&times, 100))}),
    );
    print("memory", json!({"rss_mib": daemon.memory("VmRSS"), "peak_mib": daemon.memory("VmHWM")}));
}

/// What is called, and how it is called in the results.
fn calls() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("latest 50", "conv.read", json!({"conversation": "dm:person-3"})),
        (
            "100 from far back",
            "conv.read",
            json!({"conversation": "dm:person-3", "before": 20_000, "limit": 100}),
        ),
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
