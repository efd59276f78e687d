//! The laws of envelopes, over drawn ones.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::fuzzing;
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    // Each is quick, and there are many templates.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 6, ..ProptestConfig::default() })]

    #[test]
    fn every_change_is_seen_and_nothing_panics(bytes in vec(any::<u8>(), 0..300)) {
        fuzzing::envelope_open(&bytes);
    }
}
