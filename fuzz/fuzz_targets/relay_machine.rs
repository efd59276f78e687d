//! Sequences of events into the relay's machine: connections that say anything, a failing store, a clock that jumps.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| messaging_sim::fuzzing::relay_machine(data));
