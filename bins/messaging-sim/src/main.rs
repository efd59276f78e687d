//! `messaging-sim`: simulated teams of messaging machines under faults, from seeds or from plans; and captures of real ones,
//! played again.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod replay;
mod run;

use args::{Args, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Args { command } = argh::from_env();
    let done = match command {
        Command::Run(args) => run::run(&args),
        Command::Shrink(args) => run::shrink(&args),
        Command::Explain(args) => run::explain(&args),
        Command::Plan(args) => run::plan(&args),
        Command::Large(args) => run::large(&args),
        Command::Replay(args) => replay::replay(&args),
    };
    done.unwrap_or_else(|usage| {
        eprintln!("messaging-sim: {usage}");
        ExitCode::from(2)
    })
}
