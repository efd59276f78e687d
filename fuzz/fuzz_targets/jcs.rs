//! Any value a program could build, to canonical text and back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| messaging_proto::fuzzing::jcs(data));
