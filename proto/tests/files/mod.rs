//! Vector files as this crate's values.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use messaging_proto::json::{FromValue, Object, Value};
use std::fmt::Debug;

/// A whole vector file. Read by another parser than ours: some cases hold what ours refuses.
pub fn load(text: &str) -> Value {
    convert(&serde_json::from_str(text).unwrap())
}

pub fn convert(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Bool(*flag),
        serde_json::Value::Number(number) => Value::Number(number.as_f64().unwrap()),
        serde_json::Value::String(text) => Value::text(text.as_str()),
        serde_json::Value::Array(items) => Value::Array(items.iter().map(convert).collect()),
        serde_json::Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), convert(value))).collect::<Object>().into()
        }
    }
}

/// An array of the file, which must not be empty.
pub fn cases<'a>(file: &'a Value, array: &str) -> &'a [Value] {
    let cases = file.get(array).unwrap().as_array().unwrap();
    assert!(!cases.is_empty(), "{array}");
    cases
}

pub fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).unwrap_or_else(|| panic!("no {member}")).as_str().unwrap()
}

pub fn read<T: FromValue + Debug>(value: &Value, member: &str) -> T {
    T::from_value(value.get(member).unwrap_or_else(|| panic!("no {member}"))).unwrap()
}

/// Fails unless the file's arrays and objects are exactly these.
pub fn arrays_are(file: &Value, names: &[&str]) {
    let mut found: Vec<&str> = file.as_object().unwrap().iter().map(|(name, _)| name).collect();
    found.retain(|name| *name != "description");
    found.sort_unstable();
    let mut names = names.to_vec();
    names.sort_unstable();
    assert_eq!(found, names);
}
