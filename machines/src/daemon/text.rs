//! Values as the store keeps them, and short forms of what people and peers wrote.

use messaging_proto::a2a::Part;
use messaging_proto::json::{FromValue, Value, canonicalize, parse_wire};
use messaging_proto::limits::JSON_DEPTH;
use messaging_proto::text::preview;

/// A value's canonical text. What has none (it came neither from the wire nor from us) is `null`.
pub(crate) fn canonical(value: &Value) -> String {
    canonicalize(value).unwrap_or_else(|_| "null".to_owned())
}

/// Containers around a message where a session reads it: the line and its result.
pub(crate) const AROUND_MAIL: usize = 2;
/// Containers around a message of a task where it is deepest: a line, its params, the task, its history and an entry.
pub(crate) const AROUND_HISTORY: usize = 5;
/// Containers around a task's artifact, and around the parts of its status, where they are deepest: a line, its
/// params, the task, and the list of artifacts or the status.
pub(crate) const AROUND_RECORD: usize = 4;

/// Whether a line of the local API can hold a value with `around` containers around it. A line nests no deeper than
/// an envelope's body may (contract ipc §1), so that what is as deep as a body allows would be in none: its task
/// could never be shown again.
pub(crate) fn fits_a_line(value: &Value, around: usize) -> bool {
    value.depth() + around <= JSON_DEPTH
}

/// The value of a text this daemon wrote.
pub(crate) fn parsed(text: &str) -> Value {
    parse_wire(text.as_bytes(), text.len()).unwrap_or(Value::Null)
}

/// `preview` of an array of parts this daemon stored.
pub(crate) fn preview_of(parts: &Value) -> String {
    Vec::<Part>::from_value(parts).map(|parts| preview(&parts)).unwrap_or_default()
}
