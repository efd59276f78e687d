//! The laws of delegation chains, consent grants and cards, over drawn ones.
#![allow(missing_docs, clippy::unwrap_used)]

use messaging_proto::fuzzing;
use proptest::collection::vec;
use proptest::prelude::*;

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
