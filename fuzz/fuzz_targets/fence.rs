//! Peer text that wants out of its fence.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| messaging_proto::fuzzing::fence(data));
