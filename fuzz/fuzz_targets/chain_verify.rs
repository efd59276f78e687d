//! Delegation chains: made here, changed, and as they arrive.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| messaging_proto::fuzzing::chain_verify(data));
