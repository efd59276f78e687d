//! `messaging-sim run`: simulated teams under random faults, one run per seed, each done twice.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use argh::FromArgs;
use messaging_sim::chaos::{STEPS, team_twice};
use std::ops::RangeInclusive;
use std::process::ExitCode;

/// Simulated worlds of messaging machines.
#[derive(FromArgs)]
struct Args {
    #[argh(subcommand)]
    command: Command,
}

#[derive(FromArgs)]
#[argh(subcommand)]
enum Command {
    Run(Run),
}

/// Run a team under random faults from each seed, twice, and compare every released effect.
#[derive(FromArgs)]
#[argh(subcommand, name = "run")]
struct Run {
    /// one seed
    #[argh(option)]
    seed: Option<u64>,
    /// seeds A..B, without B (default 0..20)
    #[argh(option, from_str_fn(seeds))]
    seeds: Option<RangeInclusive<u64>>,
    /// faults and actions of a run (default 60)
    #[argh(option, default = "STEPS")]
    steps: usize,
}

/// Reads `A..B`.
fn seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let ends = text.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    let ends = ends.filter(|(from, to): &(u64, u64)| from < to);
    ends.map(|(from, to)| from..=to - 1).ok_or_else(|| "want A..B with A below B".to_owned())
}

fn main() -> ExitCode {
    let Args { command: Command::Run(run) } = argh::from_env();
    let seeds = match (run.seed, run.seeds) {
        (Some(_), Some(_)) => {
            eprintln!("messaging-sim: give --seed or --seeds, not both");
            return ExitCode::from(2);
        }
        (Some(seed), None) => seed..=seed,
        (None, seeds) => seeds.unwrap_or(0..=19),
    };
    let (mut runs, mut entries) = (0_u64, 0);
    for seed in seeds {
        match team_twice(seed, run.steps) {
            Ok(report) => {
                println!(
                    "seed {seed}  steps {}  roster entries {}  effects {}",
                    report.steps, report.entries, report.effects
                );
                runs += 1;
                entries += report.entries;
            }
            Err(failure) => {
                eprintln!("messaging-sim: {failure}");
                eprintln!("again: cargo run -p messaging-sim-cli -- run --seed {seed} --steps {}", run.steps);
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{runs} seeds, each run twice with the same effects; {entries} roster entries in all");
    ExitCode::SUCCESS
}
