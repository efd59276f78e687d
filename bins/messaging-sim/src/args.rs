//! The arguments.

use argh::FromArgs;
use messaging_sim::Profile;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Simulated worlds of messaging machines.
#[derive(FromArgs)]
pub(crate) struct Args {
    #[argh(subcommand)]
    pub(crate) command: Command,
}

#[derive(FromArgs)]
#[argh(subcommand)]
pub(crate) enum Command {
    Run(Run),
    Shrink(Shrink),
    Explain(Explain),
    Plan(Print),
    Replay(Replay),
    Large(Large),
}

/// Play plans: from seeds, or one from a file. Every plan is played twice, and every released effect compared.
#[derive(FromArgs)]
#[argh(subcommand, name = "run")]
pub(crate) struct Run {
    /// one seed
    #[argh(option)]
    pub(crate) seed: Option<u64>,
    /// seeds A..B, without B (default 0..20)
    #[argh(option, from_str_fn(seeds))]
    pub(crate) seeds: Option<RangeInclusive<u64>>,
    /// calm, rough or hostile (default: each seed takes the next)
    #[argh(option)]
    pub(crate) profile: Option<Profile>,
    /// actions and faults of a plan (default 40)
    #[argh(option, default = "40")]
    pub(crate) steps: usize,
    /// over how many virtual days they spread (default: 20 minutes)
    #[argh(option)]
    pub(crate) days: Option<u64>,
    /// play each plan once only
    #[argh(switch)]
    pub(crate) once: bool,
    /// print what the runs reached: codes, moves, operations
    #[argh(switch)]
    pub(crate) coverage: bool,
    /// go on after a seed that fails; each failing seed is named, and none shrunk
    #[argh(switch)]
    pub(crate) keep_going: bool,
    /// stop at the first seed that fails without making its plan small
    #[argh(switch)]
    pub(crate) no_shrink: bool,
    /// print nothing but failures and the sum
    #[argh(switch)]
    pub(crate) quiet: bool,
    /// a plan's file
    #[argh(positional)]
    pub(crate) plan: Option<PathBuf>,
}

/// Leave out of a failing plan what it fails without. Writes PLAN.small.
#[derive(FromArgs)]
#[argh(subcommand, name = "shrink")]
pub(crate) struct Shrink {
    /// the plan's file
    #[argh(positional)]
    pub(crate) plan: PathBuf,
    /// the most runs
    #[argh(option, default = "400")]
    pub(crate) tries: usize,
}

/// Print what happens in a plan, a line for every frame, answer, event and stage.
#[derive(FromArgs)]
#[argh(subcommand, name = "explain")]
pub(crate) struct Explain {
    /// the plan's file
    #[argh(positional)]
    pub(crate) plan: PathBuf,
    /// lines of this machine alone, by its number; `relay` for the relay
    #[argh(option)]
    pub(crate) machine: Option<String>,
    /// lines that name this envelope
    #[argh(option)]
    pub(crate) envelope: Option<String>,
    /// lines that name this task
    #[argh(option)]
    pub(crate) task: Option<String>,
}

/// Print the plan of a seed.
#[derive(FromArgs)]
#[argh(subcommand, name = "plan")]
pub(crate) struct Print {
    /// the seed
    #[argh(option)]
    pub(crate) seed: u64,
    /// calm, rough or hostile
    #[argh(option)]
    pub(crate) profile: Profile,
    /// actions and faults (default 40)
    #[argh(option, default = "40")]
    pub(crate) steps: usize,
    /// over how many virtual days they spread (default: 20 minutes)
    #[argh(option)]
    pub(crate) days: Option<u64>,
}

/// Play the capture of a relay or a daemon: the same machine must say the same, byte for byte.
#[derive(FromArgs)]
#[argh(subcommand, name = "replay")]
pub(crate) struct Replay {
    /// the capture's file
    #[argh(positional)]
    pub(crate) file: PathBuf,
    /// stop after this event, counted from 1
    #[argh(option)]
    pub(crate) until: Option<u64>,
    /// print every event and what came of it; this shows what people wrote
    #[argh(switch)]
    pub(crate) dump: bool,
}

/// Live through a world of hundreds of sessions and print the hashes of its effects and stores: the same in every process and build.
#[derive(FromArgs)]
#[argh(subcommand, name = "large")]
pub(crate) struct Large {
    /// the seed (default 1)
    #[argh(option, default = "1")]
    pub(crate) seed: u64,
}

/// Reads `A..B`.
fn seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let ends = text.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    let ends = ends.filter(|(from, to): &(u64, u64)| from < to);
    ends.map(|(from, to)| from..=to - 1).ok_or_else(|| "want A..B with A below B".to_owned())
}
