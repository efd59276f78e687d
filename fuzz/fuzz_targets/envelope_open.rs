//! Any value as an envelope, and valid envelopes with one thing changed.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| messaging_proto::fuzzing::envelope_open(data));
