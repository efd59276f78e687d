//! Laws of the wire grammar and of canonical text.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::fuzzing;
use messaging_proto::json::{Value, append_canonical, canonicalize, is_ijson, parse_wire, parse_wire_noting};
use proptest::collection::vec;
use proptest::prelude::*;
use support::{gen_json, slow_json};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 1000 } else { 10_000 }))]

    #[test]
    fn accepts_exactly_what_the_slow_reading_does(
        text in gen_json::text(),
        damaged in gen_json::damaged(),
        soup in gen_json::soup(),
        bytes in vec(any::<u8>(), 0..24),
    ) {
        slow_json::assert_agrees(text.as_bytes());
        slow_json::assert_agrees(&damaged);
        slow_json::assert_agrees(&soup);
        slow_json::assert_agrees(&bytes);
    }

    #[test]
    fn canonical_text_is_a_fixed_point_and_noted_exactly(text in gen_json::text(), damaged in gen_json::damaged()) {
        fuzzing::wire(text.as_bytes());
        fuzzing::wire(&damaged);
    }

    #[test]
    fn any_value_has_canonical_text_exactly_when_it_is_ijson(bytes in vec(any::<u8>(), 0..400)) {
        fuzzing::jcs(&bytes);
    }

    #[test]
    fn canonical_text_is_that_of_another_implementation(text in gen_json::text()) {
        let canonical = parse_wire(text.as_bytes(), usize::MAX).and_then(|value| canonicalize(&value));
        if let Ok(canonical) = canonical {
            let theirs: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(canonical, serde_json_canonicalizer::to_string(&theirs).unwrap());
        }
    }

    #[test]
    fn a_number_is_the_nearest_double(text in gen_json::number()) {
        let expected: f64 = text.parse().unwrap();
        let parsed = parse_wire(text.as_bytes(), usize::MAX).unwrap();
        let Value::Number(number) = parsed else { panic!("{parsed:?}") };
        prop_assert_eq!(number.to_bits(), expected.to_bits());
    }

    #[test]
    fn a_value_in_a_row_comes_back_exactly(text in gen_json::text()) {
        if let Ok(value) = parse_wire(text.as_bytes(), usize::MAX) {
            let row = serde_json::to_string(&value).unwrap();
            let back: Value = serde_json::from_str(&row).unwrap();
            prop_assert_eq!(canonicalize(&back), canonicalize(&value));
            if is_ijson(&value) {
                prop_assert_eq!(format!("{back:?}"), format!("{value:?}"));
            }
        }
    }

    #[test]
    fn limits_are_to_the_byte(text in gen_json::text()) {
        let at = parse_wire(text.as_bytes(), text.len());
        prop_assert_eq!(at, parse_wire(text.as_bytes(), usize::MAX));
        prop_assert!(parse_wire(text.as_bytes(), text.len() - 1).is_err());
    }
}

#[test]
fn wide_objects_are_checked_for_repeated_names_in_any_order() {
    for count in [2, 7, 8, 9, 100, 1000] {
        let member = |index: usize| format!("\"{:x}\":{index}", index * 7919 % 65_536);
        let members: Vec<String> = (0..count).map(member).collect();
        let good = format!("{{{}}}", members.join(","));
        assert_eq!(parse_wire(good.as_bytes(), usize::MAX).unwrap().as_object().unwrap().len(), count);
        for repeated in [0, count / 2, count - 1] {
            let bad = format!("{{{},{}}}", members.join(","), members[repeated]);
            assert!(parse_wire(bad.as_bytes(), usize::MAX).is_err(), "{repeated} of {count}");
            let bad = format!("{{{},{}}}", members[repeated], members.join(","));
            assert!(parse_wire(bad.as_bytes(), usize::MAX).is_err(), "{repeated} of {count}");
        }
    }
}

#[test]
fn surrogate_escapes_come_in_pairs_at_every_edge() {
    let edges =
        ["0041", "d7ff", "d800", "d801", "D83D", "dbff", "dc00", "dc01", "DE02", "dfff", "e000", "ffff"];
    for one in edges {
        slow_json::assert_agrees(format!("\"\\u{one}\"").as_bytes());
        for two in edges {
            for between in ["", "x", "\\n", "\\", " "] {
                slow_json::assert_agrees(format!("\"\\u{one}{between}\\u{two}\"").as_bytes());
                slow_json::assert_agrees(format!("{{\"\\u{one}{between}\\u{two}\":1}}").as_bytes());
            }
            slow_json::assert_agrees(format!("\"\\u{one}u{two}\"").as_bytes());
            slow_json::assert_agrees(format!("\"\\u{one}\\{two}\"").as_bytes());
        }
    }
    // Every unit alone: a surrogate never stands by itself.
    for unit in 0..=u16::MAX {
        let alone = parse_wire(format!("\"\\u{unit:04x}\"").as_bytes(), usize::MAX);
        assert_eq!(alone.is_err(), (0xd800..0xe000).contains(&unit), "{unit:04x}");
    }
}

#[test]
fn the_note_is_false_for_each_way_to_write_otherwise() {
    for (text, canonical) in [
        (r#"{"a":1,"b":[true,null,"é\n\u0000\u001f\"\\"]}"#, true),
        (
            r#"[0.1,1e-7,-1.5,5e-324,9007199254740991,-9007199254740991,123456789012345,1000000000000000]"#,
            true,
        ),
        (r#"{"b":1,"a":2}"#, false),
        (r#"[1, 2]"#, false),
        (" 1", false),
        ("1\n", false),
        ("-0", false),
        ("1.0", false),
        ("1e0", false),
        ("1E5", false),
        ("0.10", false),
        ("1e-07", false),
        ("9007199254740992", false),
        ("-9007199254740993", false),
        ("1e400", false),
        ("123456789012345678901234567890123456789", false),
        (r#""\/""#, false),
        (r#""\u0041""#, false),
        (r#""\u000A""#, false),
        (r#""\u000a""#, false),
        (r#""\u001F""#, false),
        (r#""\ud83d\ude02""#, false),
        (r#"{"\u0061":1}"#, false),
        ("{\"\u{1f602}\":1,\"\u{ffff}\":2}", true),
        ("{\"\u{ffff}\":2,\"\u{1f602}\":1}", false),
    ] {
        let (value, noted) = parse_wire_noting(text.as_bytes(), usize::MAX).unwrap();
        assert_eq!(noted, canonical, "{text}");
        assert_eq!(canonicalize(&value).is_ok_and(|ours| ours == text), canonical, "{text}");
    }
}

#[test]
fn a_hand_built_value_of_any_depth_is_refused_without_recursing_into_it() {
    let mut value = Value::Null;
    for depth in 1..5000 {
        value = if depth % 2 == 0 { Value::Array(vec![value]) } else { Value::from([("a", value)]) };
        assert_eq!(is_ijson(&value), depth <= 32, "{depth}");
    }
}

#[test]
fn a_hand_built_repeated_name_is_refused() {
    for value in [[("a", Value::Null), ("a", Value::Null)], [("b", Value::Null), ("b", Value::Bool(true))]] {
        assert!(canonicalize(&Value::from(value)).is_err());
    }
    let apart = Value::from([("b", Value::Null), ("a", Value::Null), ("b", Value::Null)]);
    assert!(canonicalize(&apart).is_err());
}

#[test]
fn canonical_text_is_appended() {
    let mut text = "before ".to_owned();
    append_canonical(&Value::from([("b", Value::int(1)), ("a", Value::from("x"))]), &mut text).unwrap();
    assert_eq!(text, r#"before {"a":"x","b":1}"#);
}

#[test]
fn infinite_numbers_in_a_row_stay_outside_ijson() {
    for text in ["1e400", "-1e400"] {
        let value = parse_wire(text.as_bytes(), 100).unwrap();
        let back: Value = serde_json::from_str(&serde_json::to_string(&value).unwrap()).unwrap();
        assert!(!is_ijson(&back));
    }
}
