//! `messaging-bench`: drives a real relay process over loopback with real signed envelopes and prints JSON lines.
//!
//! The line format is that of the peers' benchmarks: `peer`, `round`, `workload`, `arg`, `bytes`, then figures. The
//! relay runs with its defaults but for the limits that a benchmark has to raise; its durability is the default, a
//! sync before every ack. Envelopes are sealed and signed before a clock starts: that is the client's cost.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod commit;
mod curves;
mod drain;
mod hostile;
mod idle;
mod latency;
mod library;
mod life;
mod publish;
mod raw;
mod soak;

use argh::FromArgs;
use messaging_bench::{Fault, link, relay, team};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// As the relay's: the load is not to be what bounds it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure the relay: acked sends, latency, backlog, memory, and one redb commit for comparison.
#[derive(FromArgs)]
#[argh(
    example = "messaging-bench --relay target/release/messaging-relay\nmessaging-bench --relay target/release/messaging-relay --only publish --rounds 5"
)]
struct Args {
    /// the relay's program
    #[argh(option)]
    relay: PathBuf,
    /// how often to run each workload, interleaved (default 1)
    #[argh(option, default = "1")]
    rounds: u32,
    /// run only this workload: publish, life, latency, drain, idle or commit; or one of those that run only when
    /// named, soak, hostile, reopen, teams, members, roster and library (redb's own choices)
    #[argh(option)]
    only: Option<String>,
    /// bytes of an envelope's canonical text (default 1536)
    #[argh(option, default = "1536")]
    bytes: usize,
    /// senders of `publish`, or how many teams, members or roster entries; repeat for more (default 1, 16 and 64)
    #[argh(option)]
    senders: Vec<usize>,
    /// seconds of `publish` (default 2)
    #[argh(option, default = "2")]
    seconds: u64,
    /// envelopes of `drain` and `reopen`, MiB of `library` (default 20000)
    #[argh(option, default = "20_000")]
    backlog: usize,
    /// envelopes a second of `latency` (default 200)
    #[argh(option, default = "200")]
    rate: u64,
    /// connections of `idle` (default 1000)
    #[argh(option, default = "1_000")]
    connections: usize,
    /// seconds of `soak` (default 600), and of each part of `hostile` (at most 30)
    #[argh(option, default = "600")]
    long: u64,
    /// a kind of client of `hostile`, to have these kinds only; repeat for more
    #[argh(option)]
    act: Vec<String>,
    /// where stores go (default: the system's temporary folder)
    #[argh(option)]
    folder: Option<PathBuf>,
}

fn main() {
    let args: Args = argh::from_env();
    let folder = args.folder.clone().unwrap_or_else(std::env::temp_dir);
    let wanted = |name: &str| args.only.as_deref().is_none_or(|only| only == name);
    let senders = if args.senders.is_empty() { vec![1, 16, 64] } else { args.senders.clone() };
    for round in 0..args.rounds {
        let line = |workload: &str, arg: u64, result: Result<Value, Fault>| {
            let mut line = Map::new();
            line.insert("peer".to_owned(), json!("messaging-relay"));
            line.insert("round".to_owned(), json!(round));
            line.insert("workload".to_owned(), json!(workload));
            line.insert("arg".to_owned(), json!(arg));
            line.insert("bytes".to_owned(), json!(args.bytes));
            match result {
                Ok(Value::Object(figures)) => line.extend(figures),
                Ok(_) => {}
                Err(error) => {
                    line.insert("error".to_owned(), json!(error.to_string()));
                }
            }
            println!("{}", Value::Object(line));
        };
        if wanted("commit") {
            line("commit", 1, commit::run(&folder, args.bytes));
        }
        if wanted("publish") {
            // One relay for all of them, as the peers have one server: what a process and a disk do once is done then.
            match relay::Relay::start(&args.relay, &folder) {
                Ok(relay) => senders.iter().for_each(|&count| {
                    line("pub", count as u64, publish::run(&relay, args.bytes, count, args.seconds));
                }),
                Err(error) => line("pub", 0, Err(error)),
            }
        }
        for (pairs, window) in [(64, 1), (8, 16)].into_iter().filter(|_| wanted("life")) {
            line("life", pairs as u64, life::run(&args.relay, &folder, args.bytes, pairs, window));
        }
        if wanted("latency") {
            line("latency", args.rate, latency::run(&args.relay, &folder, args.bytes, args.rate));
        }
        if wanted("drain") {
            line("drain", args.backlog as u64, drain::run(&args.relay, &folder, args.bytes, args.backlog));
        }
        if args.only.as_deref() == Some("soak") {
            let (connections, rate) = (500, 2_000);
            line("soak", rate, soak::run(&args.relay, &folder, args.bytes, connections, rate, args.long));
        }
        let curve = |name: &str| args.only.as_deref() == Some(name);
        if curve("reopen") {
            line(
                "reopen",
                args.backlog as u64,
                curves::reopen(&args.relay, &folder, args.bytes, args.backlog),
            );
        }
        for &count in senders.iter().filter(|_| curve("teams")) {
            line("teams", count as u64, curves::teams(&args.relay, &folder, count));
        }
        for &count in senders.iter().filter(|_| curve("members")) {
            line("members", count as u64, curves::members(&args.relay, &folder, count));
        }
        for &count in senders.iter().filter(|_| curve("roster")) {
            line("roster", count as u64, curves::roster(&args.relay, &folder, count));
        }
        if curve("library") {
            match library::run(&folder, args.bytes, args.backlog) {
                Ok(lines) => {
                    lines.into_iter().for_each(|figures| line("library", args.backlog as u64, Ok(figures)));
                }
                Err(error) => line("library", args.backlog as u64, Err(error)),
            }
        }
        if args.only.as_deref() == Some("hostile") {
            line("hostile", 0, hostile::run(&args.relay, &folder, args.bytes, args.long.min(30), &args.act));
        }
        if wanted("idle") {
            line("idle", args.connections as u64, idle::run(&args.relay, &folder, args.connections));
        }
    }
}

/// The `share` quantile of sorted microseconds, in milliseconds.
fn quantile_ms(sorted_micros: &[u64], share: f64) -> f64 {
    if sorted_micros.is_empty() {
        return 0.0;
    }
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let at = (((sorted_micros.len() - 1) as f64) * share).round() as usize;
    #[allow(clippy::cast_precision_loss)]
    let ms = sorted_micros[at] as f64 / 1000.0;
    ms
}
