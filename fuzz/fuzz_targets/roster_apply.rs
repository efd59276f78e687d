//! Any value as a roster entry, and sequences of signed entries, some changed after signing.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| messaging_proto::fuzzing::roster_apply(data));
