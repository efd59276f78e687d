//! Values as the store keeps them, and short forms of what people and peers wrote.

use messaging_proto::a2a::Part;
use messaging_proto::json::{FromValue, Value, canonicalize, parse_wire};
use messaging_proto::text::preview;

/// A value's canonical text. What has none (it came neither from the wire nor from us) is `null`.
pub(crate) fn canonical(value: &Value) -> String {
    canonicalize(value).unwrap_or_else(|_| "null".to_owned())
}

/// The value of a text this daemon wrote.
pub(crate) fn parsed(text: &str) -> Value {
    parse_wire(text.as_bytes(), text.len()).unwrap_or(Value::Null)
}

/// `preview` of an array of parts this daemon stored.
pub(crate) fn preview_of(parts: &Value) -> String {
    Vec::<Part>::from_value(parts).map(|parts| preview(&parts)).unwrap_or_default()
}
