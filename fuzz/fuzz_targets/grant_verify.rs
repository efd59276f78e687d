//! Consent grants and contact cards: made here, changed, merged, signed again, and as they arrive.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| messaging_proto::fuzzing::grant_verify(data));
