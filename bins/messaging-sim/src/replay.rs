//! `replay`: a capture, played again.

use crate::args::Replay;
use crate::run::quietly;
use messaging_sim::replay::{Failure, Options, replay as play};
use std::process::ExitCode;

/// 0 when the machine said the same, 1 when it did not, 2 when the file cannot be played.
pub(crate) fn replay(args: &Replay) -> Result<ExitCode, String> {
    let shown = args.file.display();
    let bytes = std::fs::read(&args.file).map_err(|error| format!("{shown}: {error}"))?;
    let mut print = |line: &str| println!("{line}");
    let dump = args.dump.then_some(&mut print as &mut dyn FnMut(&str));
    match quietly(|| play(&bytes, Options { until: args.until, dump })) {
        Ok(played) => {
            let own = env!("CARGO_PKG_VERSION");
            for release in played.releases.iter().filter(|release| *release != own) {
                println!("written by release {release}, played by {own}: the same is not promised");
            }
            for remark in &played.remarks {
                println!("{remark}");
            }
            println!(
                "the same: {} machines, {} events, {} effects, {} batches of rows",
                played.machines, played.events, played.effects, played.batches
            );
            Ok(ExitCode::SUCCESS)
        }
        Err(failure @ Failure::Differs { .. }) => {
            eprintln!("messaging-sim: {shown}: {failure}");
            Ok(ExitCode::FAILURE)
        }
        Err(failure) => Err(format!("{shown}: {failure}")),
    }
}
