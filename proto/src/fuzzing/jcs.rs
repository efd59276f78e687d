//! Target `jcs`: any value a program could build, to canonical text and back.

use super::Draw;
use super::wire::depth;
use crate::json::{Value, canonicalize, is_ijson, parse_wire_noting};
use std::collections::BTreeSet;

/// Exactly the I-JSON values have a canonical text, and it reads back as the same value.
pub fn jcs(data: &[u8]) {
    let value = Draw::new(data).value(36);
    let text = canonicalize(&value);
    assert_eq!(text.is_ok(), depth(&value) <= 32 && has_form(&value), "J1 to J5");
    assert_eq!(text.is_ok(), is_ijson(&value));
    let Ok(text) = text else {
        return;
    };
    let Ok((back, noted)) = parse_wire_noting(text.as_bytes(), text.len()) else {
        unreachable!("canonical text is wire JSON")
    };
    assert!(noted, "canonical text is noted");
    assert!(same(&value, &back), "the same value");
    assert_eq!(canonicalize(&back), Ok(text), "a fixed point");
}

/// Whether all numbers and names have a form in I-JSON.
fn has_form(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.abs() < 9_007_199_254_740_992.0,
        Value::Array(items) => items.iter().all(has_form),
        Value::Object(object) => {
            let names: BTreeSet<&str> = object.iter().map(|(name, _)| name).collect();
            names.len() == object.len() && object.iter().all(|(_, value)| has_form(value))
        }
        _ => true,
    }
}

/// Equal but for the order of members.
fn same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len()
                && one.iter().all(|(name, value)| two.get(name).is_some_and(|other| same(value, other)))
        }
        (one, two) => one == two,
    }
}
