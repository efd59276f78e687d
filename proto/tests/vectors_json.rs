//! Every case of `jcs.json`, and every case of the `cases` of `wire.json` (its `frames` are `vectors_frame.rs`'s).
#![allow(missing_docs)]

use messaging_proto::json::{Value, canonicalize, is_ijson, parse_wire, parse_wire_noting};
use messaging_proto::{b64u, hash};

const JCS: &str = include_str!("../../vectors/messaging/jcs.json");
const WIRE: &str = include_str!("../../vectors/messaging/wire.json");

fn cases<'a>(file: &'a serde_json::Value, array: &str) -> &'a Vec<serde_json::Value> {
    let cases = file[array].as_array().unwrap();
    assert!(!cases.is_empty(), "{array}");
    cases
}

#[test]
fn jcs_cases() {
    let file: serde_json::Value = serde_json::from_str(JCS).unwrap();
    for case in cases(&file, "cases") {
        let name = case["name"].as_str().unwrap();
        let text = case["text"].as_str().unwrap();
        // The file's texts are read as JSON of any depth: what is too deep fails here already.
        let canonical = parse_wire(text.as_bytes(), usize::MAX).and_then(|value| canonicalize(&value));
        if case.get("error").is_some() {
            assert_eq!(canonical.unwrap_err().code().as_str(), case["error"], "{name}");
        } else {
            let canonical = canonical.unwrap();
            assert_eq!(canonical, case["canonical"].as_str().unwrap(), "{name}");
            assert_eq!(hash::sha256(canonical.as_bytes()).to_string(), case["sha256"], "{name}");
        }
    }
}

#[test]
fn jcs_numbers() {
    let file: serde_json::Value = serde_json::from_str(JCS).unwrap();
    for case in cases(&file, "numbers") {
        let bits = u64::from_str_radix(case["bits"].as_str().unwrap(), 16).unwrap();
        let value = Value::Number(f64::from_bits(bits));
        let ijson = case["ijson"].as_bool().unwrap();
        assert_eq!(is_ijson(&value), ijson, "{case}");
        if ijson {
            let text = canonicalize(&value).unwrap();
            assert_eq!(text, case["es6"], "{case}");
            let (back, canonical) = parse_wire_noting(text.as_bytes(), 100).unwrap();
            assert_eq!(back, value, "{case}");
            assert!(canonical, "{case}");
        }
    }
}

#[test]
fn wire_cases() {
    let file: serde_json::Value = serde_json::from_str(WIRE).unwrap();
    for case in cases(&file, "cases") {
        let name = case["name"].as_str().unwrap();
        let bytes = match case.get("text") {
            Some(text) => text.as_str().unwrap().as_bytes().to_vec(),
            None => b64u::decode(case["bytes"].as_str().unwrap()).unwrap(),
        };
        let max = case.get("maxBytes").map_or(1 << 20, |max| usize::try_from(max.as_u64().unwrap()).unwrap());
        let parsed = parse_wire_noting(&bytes, max);
        if case.get("error").is_some() {
            assert_eq!(parsed.unwrap_err().code().as_str(), case["error"], "{name}");
            continue;
        }
        let (value, noted) = parsed.unwrap_or_else(|_| panic!("{name} is wire JSON"));
        let ijson = case["ijson"].as_bool().unwrap();
        assert_eq!(is_ijson(&value), ijson, "{name}");
        let canonical = canonicalize(&value).ok();
        assert_eq!(canonical.as_deref(), case.get("canonical").map(|text| text.as_str().unwrap()), "{name}");
        assert_eq!(noted, canonical.is_some_and(|text| text.as_bytes() == bytes), "{name}");
    }
}

#[test]
fn every_array_is_covered() {
    for (text, arrays) in [(JCS, &["cases", "numbers"]), (WIRE, &["cases", "frames"])] {
        let file: serde_json::Value = serde_json::from_str(text).unwrap();
        for (name, value) in file.as_object().unwrap() {
            assert!(value.is_string() || arrays.contains(&name.as_str()), "{name}");
        }
    }
}
