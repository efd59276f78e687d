//! The fuzz bodies of rosters, tickets and frames over small inputs and over what the vectors hold.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod files;

use files::{cases, load, text};
use messaging_proto::fuzzing;
use messaging_proto::json::canonicalize;
use proptest::prelude::*;

const ROSTER: &str = include_str!("../../vectors/messaging/roster.json");
const WIRE: &str = include_str!("../../vectors/messaging/wire.json");

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn roster_apply_holds(data in bytes()) {
        fuzzing::roster_apply(&data);
    }
}

proptest! {
    #[test]
    fn ticket_holds(data in bytes()) {
        fuzzing::ticket(&data);
    }

    #[test]
    fn frame_holds(data in bytes()) {
        fuzzing::frame(&data);
    }
}

#[test]
fn the_vectors_keep_the_laws() {
    let roster = load(ROSTER);
    for case in cases(&roster, "cards") {
        fuzzing::ticket(text(case, "text").as_bytes());
    }
    for case in cases(&roster, "chain") {
        fuzzing::roster_apply(canonicalize(case.get("entry").unwrap()).unwrap().as_bytes());
    }
    for case in cases(&load(WIRE), "frames") {
        fuzzing::frame(text(case, "text").as_bytes());
    }
}
