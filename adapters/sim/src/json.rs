//! Reading values in tests.

use messaging_proto::json::{Value, parse_wire};

/// Reads a JSON text of a test.
pub fn json(text: &str) -> Value {
    parse_wire(text.as_bytes(), 1 << 24).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The member of a value at a path of names and positions.
pub fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, step| match step.parse::<usize>() {
        Ok(index) => &value.as_array().unwrap_or_else(|| panic!("{path} of {value:?}"))[index],
        Err(_) => value.get(step).unwrap_or_else(|| panic!("{path} of {value:?}")),
    })
}

/// The text at a path.
pub fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).as_str().unwrap_or_else(|| panic!("{path} of {value:?}"))
}
