//! Sequences of events into a team of daemons: any calls, any frames, crashes and faults.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| messaging_sim::fuzzing::daemon_machine(data));
