//! Any text as a ticket or a card, and valid ones with something changed.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| messaging_proto::fuzzing::ticket(data));
