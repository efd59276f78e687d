//! The daemon process, from its options to its exit status (contract ipc §6.2).

use super::DaemonOptions;
use super::service::{StartError, lost, start};
use crate::driver::Failed;
use crate::log::Log;
use crate::process::{self, Wake};
use crate::store::Refusal;
use std::time::Duration;

/// How long the machine may take to stop once asked.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// Runs the daemon until it is told to stop. The exit status: 0 stopped, 1 not started, 70 an internal failure, 78 a
/// store that is not ours to open.
#[must_use]
pub fn run(options: &DaemonOptions) -> u8 {
    let waiter = match process::Waiter::new() {
        Ok(waiter) => waiter,
        Err(error) => return refuse(&format!("internal: signals: {error}")),
    };
    let mut log = None;
    let open_log = |options: &DaemonOptions| {
        let made = Log::stderr_and_file(options.log_level, &options.home.log_file())?;
        process::exit_on_panic("daemon.fatal", &made);
        log = Some(made.clone());
        Ok(made)
    };
    let daemon = match start(options, open_log, waiter.ended()) {
        Ok(daemon) => daemon,
        Err(StartError::Refused(reason)) => {
            // A client reads the two words after `messagingd:` and nothing behind them (§8.8).
            process::complain(&format!("messagingd: store_refused: {}: {}", reason.as_str(), remedy(reason)));
            return process::STORE_REFUSED;
        }
        Err(error) => return refuse(&error.to_string()),
    };
    process::say(&format!("messagingd: ready {}", std::process::id()));
    process::notify(process::Notice::Ready);
    if waiter.wait() == Wake::Signal {
        process::notify(process::Notice::Stopping);
        daemon.ask_to_stop();
        if !waiter.wait_ended(STOP_TIMEOUT) {
            process::complain("messagingd: internal: the daemon did not stop in time");
            return process::SOFTWARE;
        }
    }
    match daemon.finish() {
        Ok(()) => 0,
        Err(error) => {
            if let Failed::Store(fault) = error {
                process::complain(&format!("messagingd: internal: {}", lost(fault)));
            }
            if let Some(log) = log {
                log.error(
                    "daemon.fatal",
                    &[("origin", "driver".into()), ("error", error.to_string().into())],
                );
            }
            process::SOFTWARE
        }
    }
}

const fn remedy(reason: Refusal) -> &'static str {
    match reason {
        Refusal::PreReset => {
            "this home is of another generation; stop the daemon, move the home aside and set it up again"
        }
        Refusal::Newer => "a newer messagingd wrote this home; upgrade this one and keep the home as it is",
    }
}

fn refuse(text: &str) -> u8 {
    process::complain(&format!("messagingd: {text}"));
    1
}
