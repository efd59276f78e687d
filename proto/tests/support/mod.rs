//! What the tests of this crate share.
#![allow(missing_docs, dead_code, unreachable_pub, clippy::unwrap_used)]

pub mod chats;
pub mod gen_json;
pub mod realm;
pub mod rules;
pub mod slow_json;

use serde_json::Value;

/// The cases of one array of a vector file; there is at least one.
pub fn cases<'a>(file: &'a Value, array: &str) -> &'a Vec<Value> {
    let cases = file[array].as_array().unwrap();
    assert!(!cases.is_empty(), "{array}");
    cases
}

/// Fails when the file has something that is in none of these arrays, so that a new one is noticed.
pub fn assert_all_covered(file: &Value, arrays: &[&str]) {
    for (name, value) in file.as_object().unwrap() {
        assert!(value.is_string() || arrays.contains(&name.as_str()), "{name} is not covered");
    }
}

pub fn text<'a>(case: &'a Value, member: &str) -> &'a str {
    case[member].as_str().unwrap()
}

/// A value of a vector file as one of ours.
pub fn ours(value: &Value) -> messaging_proto::json::Value {
    messaging_proto::json::parse_wire(value.to_string().as_bytes(), usize::MAX).unwrap()
}

/// As [`ours`], for values no wire text can hold: nested too deep, say.
pub fn built(value: &Value) -> messaging_proto::json::Value {
    use messaging_proto::json::Value as Ours;
    match value {
        Value::Null => Ours::Null,
        Value::Bool(flag) => Ours::Bool(*flag),
        Value::Number(number) => Ours::Number(number.as_f64().unwrap()),
        Value::String(text) => Ours::text(text.as_str()),
        Value::Array(items) => Ours::Array(items.iter().map(built).collect()),
        Value::Object(members) => {
            Ours::Object(members.iter().map(|(name, value)| (name.clone(), built(value))).collect())
        }
    }
}
