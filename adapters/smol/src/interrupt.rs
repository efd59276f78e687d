//! Ctrl-C in a program for people, and a request to end: an exit status of its own instead of a death by signal.

use async_signal::{Signal, Signals};
use futures_lite::StreamExt;

/// Exit status after SIGINT, as shells show it.
pub const INTERRUPTED: u8 = 130;
/// Exit status after SIGTERM, as shells show it.
pub const TERMINATED: u8 = 143;

/// Ends the process with [`INTERRUPTED`] on SIGINT and with [`TERMINATED`] on SIGTERM, after `last`. Where the system refuses the handler, the signal ends
/// the process by itself.
pub fn exit_on_interrupt(last: impl Fn() + Send + 'static) {
    let Ok(mut signals) = Signals::new([Signal::Int, Signal::Term]) else { return };
    let _ = std::thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
        if let Some(signal) = async_io::block_on(signals.next()) {
            last();
            let status = if matches!(signal, Ok(Signal::Term)) { TERMINATED } else { INTERRUPTED };
            std::process::exit(i32::from(status));
        }
    });
}
