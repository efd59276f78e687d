//! Any text as a relay frame on both sides, and frames with something changed.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| messaging_proto::fuzzing::frame(data));
