//! The laws of fences and of cleaned text, over drawn ones, and what their speed rests on.
#![allow(missing_docs, clippy::unwrap_used)]

use messaging_proto::fuzzing;
use messaging_proto::text::{clean_peer_text, neutralise, terminal_safe};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn nothing_gets_out_of_a_fence(bytes in vec(any::<u8>(), 0..300)) {
        fuzzing::fence(&bytes);
    }

    #[test]
    fn any_text_is_cleaned_once(text in any::<String>()) {
        let safe = terminal_safe(&text);
        prop_assert_eq!(&terminal_safe(&safe), &safe);
        let line = clean_peer_text(&text, None);
        prop_assert_eq!(&clean_peer_text(&line, None), &line);
        let neutral = neutralise(&text);
        prop_assert_eq!(&neutralise(&neutral), &neutral);
    }
}
