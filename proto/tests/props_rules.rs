//! The laws of delegation chains, consent grants and cards, over drawn ones.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::fuzzing;
use proptest::collection::vec;
use proptest::prelude::*;
use support::cases;
use support::rules::{wire_text, with_lone_surrogates};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn chains_narrow_and_no_changed_chain_verifies(bytes in vec(any::<u8>(), 0..300)) {
        fuzzing::chain_verify(&bytes);
    }

    #[test]
    fn grants_merge_in_any_order_and_no_changed_grant_verifies(bytes in vec(any::<u8>(), 0..300)) {
        fuzzing::grant_verify(&bytes);
    }
}

/// The seeds of the fuzz targets: every signed value of the vectors, as it would arrive.
#[test]
fn vectors_keep_the_laws() {
    let delegation = with_lone_surrogates(include_str!("../../vectors/messaging/delegation.json"));
    for case in cases(&delegation, "cases") {
        fuzzing::chain_verify(wire_text(&case["chain"]).as_bytes());
    }
    let grants = with_lone_surrogates(include_str!("../../vectors/messaging/grants.json"));
    for (array, member) in [("valid", "grant"), ("invalid", "grant"), ("cards", "card"), ("badCards", "card")]
    {
        for case in cases(&grants, array) {
            fuzzing::grant_verify(wire_text(&case[member]).as_bytes());
        }
    }
}
