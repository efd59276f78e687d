//! The relay process, from its options to its exit status (contract ipc §6.3).

use super::RelayOptions;
use super::service::{Running, StartError, start};
use crate::driver::Failed;
use crate::log::Log;
use crate::process::{self, Notice, Waiter, Wake};
use serde_json::Value;
use std::io::IsTerminal;
use std::time::Duration;

/// Runs the relay until it is told to stop. The exit status: 0 stopped, 1 not started, 70 an internal failure, 78 a
/// store that is not ours to open.
#[must_use]
pub fn run(options: &RelayOptions) -> u8 {
    let log = Log::stderr(options.log_level);
    process::exit_on_panic("relay.fatal", &log);
    // At a terminal, without anything to reload, closing the terminal ends the relay as usual.
    let reloads = options.tls.is_some() || !std::io::stdin().is_terminal();
    let waiter = match if reloads { Waiter::with_reload() } else { Waiter::new() } {
        Ok(waiter) => waiter,
        Err(error) => return refuse(&format!("internal: signals: {error}")),
    };
    let relay = match start(options, &log, waiter.ended()) {
        Ok(relay) => relay,
        Err(StartError::Refused(reason)) => {
            let message = match reason.as_str() {
                "newer" => "a newer relay wrote this database: upgrade the relay, and keep the database",
                _ => {
                    "this database is not of this relay's generation: stop the relay, move the file and its .journal-0 and .journal-1 aside, start again"
                }
            };
            let fields: [(&str, Value); 3] = [
                ("db", options.db.display().to_string().into()),
                ("reason", reason.as_str().into()),
                ("message", message.into()),
            ];
            log.error("relay.store_refused", &fields);
            return process::STORE_REFUSED;
        }
        Err(error) => return refuse(&error.to_string()),
    };
    process::say(&format!("messaging-relay: ready {}", relay.address.port()));
    process::notify(Notice::Ready);
    if serve(&relay, &waiter) == Wake::Ended {
        // Closes what is open; the reason is the driver's.
        return fatal(&log, relay.stop().err());
    }
    process::notify(Notice::Stopping);
    log.info("relay.stopping", &[]);
    match relay.stop() {
        Ok(()) => {
            log.info("relay.stopped", &[]);
            0
        }
        Err(error) => fatal(&log, Some(error)),
    }
}

/// An end that nobody asked for (`§7`, "Process"): one line, in fixed words.
fn fatal(log: &Log, error: Option<Failed>) -> u8 {
    let error = error.map_or_else(|| "the machine ended".to_owned(), |error| error.to_string());
    log.error("relay.fatal", &[("origin", "driver".into()), ("error", error.into())]);
    process::SOFTWARE
}

/// Waits for the end, and meanwhile reloads when told to and tells the service manager that the machine makes
/// progress.
fn serve(relay: &Running, waiter: &Waiter) -> Wake {
    // Twice within its patience, and once more for a late turn of this thread.
    let tick = process::watchdog().map(|patience| patience / 3);
    let mut progress = relay.progress();
    loop {
        let wake = match tick {
            Some(tick) => waiter.wait_for(tick.max(Duration::from_millis(10))),
            None => Some(waiter.wait()),
        };
        match wake {
            Some(Wake::Reload) => relay.reload(),
            Some(wake) => return wake,
            None => {
                let now = relay.progress();
                // A failing store is no reason to end the process (§7, "Store failures").
                if now != progress || relay.is_failing() {
                    process::notify(Notice::Alive);
                }
                progress = now;
                relay.nudge();
            }
        }
    }
}

fn refuse(text: &str) -> u8 {
    let next = if text.contains("listen") {
        "name another address with --listen, or stop what has this one."
    } else if text.contains("another relay") {
        "stop it first, or name another store with --db."
    } else if text.contains("tls") {
        "correct --tls-cert and --tls-key."
    } else if text.contains("corrupted") {
        "the file of --db or its journal is damaged. Keep a copy of all three files, and restore a backup."
    } else {
        "check that the folder of --db exists, has room and is yours."
    };
    process::complain(&format!("relay: {text}. Next: {next}"));
    1
}
