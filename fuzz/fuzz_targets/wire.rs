//! Any bytes as wire JSON: the laws of the parser, and the slow reading of the grammar that the tests use.
#![no_main]

#[allow(dead_code)]
#[path = "../../proto/tests/support/slow_json.rs"]
mod slow_json;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    messaging_proto::fuzzing::wire(data);
    slow_json::assert_agrees(data);
});
