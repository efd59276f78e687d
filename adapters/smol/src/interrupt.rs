//! Ctrl-C in a program for people: an exit status of its own instead of a death by signal.

use async_signal::{Signal, Signals};
use futures_lite::StreamExt;

/// Exit status after SIGINT, as shells show it.
pub const INTERRUPTED: u8 = 130;

/// Ends the process with [`INTERRUPTED`] on SIGINT, after `last`. Where the system refuses the handler, the signal ends
/// the process by itself.
pub fn exit_on_interrupt(last: impl Fn() + Send + 'static) {
    let Ok(mut signals) = Signals::new([Signal::Int]) else { return };
    let _ = std::thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
        if async_io::block_on(signals.next()).is_some() {
            last();
            std::process::exit(i32::from(INTERRUPTED));
        }
    });
}
