//! Every case of `jcs.json`, and of the `cases` of `wire.json`; the `frames` of `wire.json` have their own test.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::json::{Value, canonicalize, is_ijson, parse_wire, parse_wire_noting};
use messaging_proto::{b64u, hash};
use support::{assert_all_covered, cases, slow_json, text};

const JCS: &str = include_str!("../../vectors/messaging/jcs.json");
const WIRE: &str = include_str!("../../vectors/messaging/wire.json");

#[test]
fn jcs_cases() {
    let file: serde_json::Value = serde_json::from_str(JCS).unwrap();
    assert_all_covered(&file, &["cases", "numbers"]);
    for case in cases(&file, "cases") {
        let name = text(case, "name");
        let source = text(case, "text").as_bytes();
        slow_json::assert_agrees(source);
        let canonical = parse_wire(source, usize::MAX).and_then(|value| canonicalize(&value));
        if case.get("error").is_some() {
            assert_eq!(canonical.unwrap_err().code().as_str(), case["error"], "{name}");
        } else {
            let canonical = canonical.unwrap();
            assert_eq!(canonical, text(case, "canonical"), "{name}");
            assert_eq!(hash::sha256(canonical.as_bytes()).to_string(), case["sha256"], "{name}");
        }
    }
}

#[test]
fn jcs_numbers() {
    let file: serde_json::Value = serde_json::from_str(JCS).unwrap();
    for case in cases(&file, "numbers") {
        let bits = u64::from_str_radix(text(case, "bits"), 16).unwrap();
        let value = Value::Number(f64::from_bits(bits));
        let ijson = case["ijson"].as_bool().unwrap();
        assert_eq!(is_ijson(&value), ijson, "{case}");
        if ijson {
            let es6 = canonicalize(&value).unwrap();
            assert_eq!(es6, case["es6"], "{case}");
            let (back, canonical) = parse_wire_noting(es6.as_bytes(), 100).unwrap();
            assert_eq!(back, value, "{case}");
            assert!(canonical, "{case}");
        }
    }
}

#[test]
fn wire_cases() {
    let file: serde_json::Value = serde_json::from_str(WIRE).unwrap();
    assert_all_covered(&file, &["cases", "frames"]);
    for case in cases(&file, "cases") {
        let name = text(case, "name");
        let bytes = match case.get("text") {
            Some(text) => text.as_str().unwrap().as_bytes().to_vec(),
            None => b64u::decode(text(case, "bytes")).unwrap(),
        };
        slow_json::assert_agrees(&bytes);
        let max = case.get("maxBytes").map_or(1 << 20, |max| usize::try_from(max.as_u64().unwrap()).unwrap());
        let parsed = parse_wire_noting(&bytes, max);
        if case.get("error").is_some() {
            assert_eq!(parsed.unwrap_err().code().as_str(), case["error"], "{name}");
            continue;
        }
        let (value, noted) = parsed.unwrap_or_else(|_| panic!("{name} is wire JSON"));
        assert_eq!(is_ijson(&value), case["ijson"].as_bool().unwrap(), "{name}");
        let canonical = canonicalize(&value).ok();
        assert_eq!(canonical.as_deref(), case.get("canonical").map(|text| text.as_str().unwrap()), "{name}");
        assert_eq!(noted, canonical.is_some_and(|text| text.as_bytes() == bytes), "{name}");
    }
}
