//! What each command does.

use crate::args::{Explain, Large, Print, Run, Shrink};
use messaging_sim::chaos::{Dice, team_twice};
use messaging_sim::coverage::Coverage;
use messaging_sim::plan::generate;
use messaging_sim::run::{Failure, Outcome, explained, play, play_twice};
use messaging_sim::{Plan, Profile, shrink as smaller};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Over how long a plan's items spread unless `--days` says otherwise.
const SPAN_MS: u64 = 20 * 60_000;
const DAY_MS: u64 = 24 * 3_600_000;
/// How many runs shrinking a failure of a seed may take.
const TRIES: usize = 300;

fn read(path: &Path) -> Result<Plan, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Plan::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn of_seed(seed: u64, profile: Profile, steps: usize, days: Option<u64>) -> Plan {
    let span = days.map_or(SPAN_MS, |days| days.max(1) * DAY_MS);
    generate(&mut Dice::new(seed, 5_000), seed, profile, steps, span)
}

/// So many seeds must reach everything that [`Coverage::missing`] asks for.
const COVERS: u64 = 100;

/// Panics are findings that are reported with their plan; their own message would only come twice.
pub(crate) fn quietly<T>(run: impl FnOnce() -> T) -> T {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let ran = run();
    std::panic::set_hook(hook);
    ran
}

fn line(name: &str, outcome: &Outcome) -> String {
    let hours = outcome.virtual_ms / 3_600_000;
    let minutes = outcome.virtual_ms / 60_000 % 60;
    format!(
        "{name}  sends {}  relayed {}  {hours}h{minutes:02}  effects {}",
        outcome.sends, outcome.relayed, outcome.effects
    )
}

/// Writes a failing plan, shrunk, and says how to see it again.
fn failed(name: &str, plan: &Plan, failure: &Failure) -> ExitCode {
    eprintln!("messaging-sim: {name}: {failure}");
    let small = quietly(|| {
        smaller::shrink(plan, TRIES, |plan| {
            play(plan, false).is_err_and(|other| other.invariant == failure.invariant)
        })
    });
    let path = PathBuf::from(format!("{}.plan", name.replace(' ', "-")));
    match std::fs::write(&path, small.to_text()) {
        Ok(()) => {
            eprintln!("{} of {} items still fail", small.items.len(), plan.items.len());
            eprintln!("again: cargo run -p messaging-sim-cli -- run {}", path.display());
            eprintln!("see:   cargo run -p messaging-sim-cli -- explain {}", path.display());
        }
        Err(error) => eprintln!("{}: {error}\n{}", path.display(), small.to_text()),
    }
    ExitCode::FAILURE
}

pub(crate) fn run(args: &Run) -> Result<ExitCode, String> {
    if let Some(path) = &args.plan {
        let plan = read(path)?;
        return Ok(match quietly(|| play_twice(&plan)) {
            Ok(outcome) => {
                println!("{}", line(&path.display().to_string(), &outcome));
                if args.coverage {
                    print!("{}", outcome.coverage.page());
                }
                ExitCode::SUCCESS
            }
            Err(failure) => {
                eprintln!("messaging-sim: {}: {failure}", path.display());
                ExitCode::FAILURE
            }
        });
    }
    let seeds = match (args.seed, &args.seeds) {
        (Some(_), Some(_)) => return Err("give --seed or --seeds, not both".to_owned()),
        (Some(seed), None) => seed..=seed,
        (None, seeds) => seeds.clone().unwrap_or(0..=19),
    };
    let (mut runs, mut sends, mut ms, mut coverage) = (0_u64, 0, 0, Coverage::default());
    let (mut bad, start) = (Vec::new(), Instant::now());
    for seed in seeds {
        let place = usize::try_from(seed % 3).unwrap_or(0);
        let profile = args.profile.unwrap_or(Profile::ALL[place]);
        let name = format!("seed {seed} {}", profile.as_str());
        let plan = of_seed(seed, profile, args.steps, args.days);
        let ran = quietly(|| if args.once { play(&plan, false) } else { play_twice(&plan) });
        let outcome = match ran {
            Ok(outcome) => outcome,
            Err(failure) if args.keep_going => {
                eprintln!("messaging-sim: {name}: {failure}");
                bad.push(name);
                continue;
            }
            Err(failure) if args.no_shrink => {
                eprintln!("messaging-sim: {name}: {failure}");
                return Ok(ExitCode::FAILURE);
            }
            Err(failure) => return Ok(failed(&name, &plan, &failure)),
        };
        if !args.quiet {
            println!("{}", line(&name, &outcome));
        }
        if !args.once && args.profile.is_none() && profile == Profile::Calm {
            // The older scenario: rosters and key changes alone, under its own faults.
            if let Err(failure) = quietly(|| team_twice(seed, args.steps)) {
                eprintln!("messaging-sim: team of {failure}");
                return Ok(ExitCode::FAILURE);
            }
        }
        runs += 1;
        sends += outcome.sends;
        ms += outcome.virtual_ms;
        coverage.merge(outcome.coverage);
    }
    let times = if args.once { "once" } else { "twice with the same effects" };
    // Both runs of a seed count.
    let hours = ms as f64 / 3_600_000.0 * if args.once { 1.0 } else { 2.0 };
    let took = start.elapsed().as_secs_f64();
    println!(
        "{runs} seeds, each played {times}; {sends} sends, {hours:.1} virtual hours in {took:.1} s: {:.0} an hour",
        hours / took * 3_600.0
    );
    if args.coverage {
        print!("{}", coverage.page());
        // Many seeds reach everything; a few are asked for what they reach.
        if runs >= COVERS && !coverage.missing().is_empty() {
            eprintln!("messaging-sim: {runs} seeds did not reach {:?}", coverage.missing());
            return Ok(ExitCode::FAILURE);
        }
    }
    if !bad.is_empty() {
        eprintln!("messaging-sim: {} seeds failed: {}", bad.len(), bad.join(", "));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn shrink(args: &Shrink) -> Result<ExitCode, String> {
    let plan = read(&args.plan)?;
    let Err(failure) = quietly(|| play(&plan, false)) else {
        println!("it does not fail");
        return Ok(ExitCode::SUCCESS);
    };
    println!("{failure}");
    let small = quietly(|| {
        let same = |plan: &Plan| play(plan, false).is_err_and(|other| other.invariant == failure.invariant);
        smaller::shrink(&plan, args.tries, same)
    });
    let path = args.plan.with_extension("plan.small");
    std::fs::write(&path, small.to_text()).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("{} of {} items: {}", small.items.len(), plan.items.len(), path.display());
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn explain(args: &Explain) -> Result<ExitCode, String> {
    let plan = read(&args.plan)?;
    let texts: Vec<String> = [&args.envelope, &args.task].into_iter().flatten().cloned().collect();
    let (lines, ran) = quietly(|| explained(&plan, &texts));
    let who = args.machine.as_ref().map(|machine| match machine.as_str() {
        "relay" => " relay ".to_owned(),
        number => format!(" machine {number} "),
    });
    for line in lines.iter().filter(|line| who.as_ref().is_none_or(|who| line.contains(who.as_str()))) {
        println!("{line}");
    }
    Ok(match ran {
        Ok(_) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("fails: {failure}");
            ExitCode::FAILURE
        }
    })
}

pub(crate) fn plan(args: &Print) -> Result<ExitCode, String> {
    print!("{}", of_seed(args.seed, args.profile, args.steps, args.days).to_text());
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn large(args: &Large) -> Result<ExitCode, String> {
    let start = Instant::now();
    let world = messaging_sim::large::large(args.seed);
    println!(
        "seed {}  sessions {}  sends {}  rows {}  effects {}  stores {}",
        args.seed, world.sessions, world.sends, world.rows, world.effects, world.stores
    );
    eprintln!("{:.1} s", start.elapsed().as_secs_f64());
    Ok(ExitCode::SUCCESS)
}
