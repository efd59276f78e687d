//! The bodies of the fuzz targets over machines, here so that every build compiles them.
//!
//! One file and one function for each target of `fuzz/`. A function takes any bytes, reads a sequence of events out of them
//! with `arbitrary`, plays it, and panics only when an invariant is broken. The same functions run in this crate's tests.

mod daemon;
mod relay;
mod relay_events;

pub use daemon::daemon_machine;
pub use relay::relay_machine;

use arbitrary::{Arbitrary, Unstructured};

/// How many events one run plays at most.
const EVENTS: usize = 48;

/// The events that bytes stand for; none when they are used up.
fn events<'a, T: Arbitrary<'a>>(data: &'a [u8]) -> Vec<T> {
    let mut source = Unstructured::new(data);
    let mut events = Vec::new();
    while events.len() < EVENTS && !source.is_empty() {
        match T::arbitrary(&mut source) {
            Ok(event) => events.push(event),
            Err(_) => break,
        }
    }
    events
}
