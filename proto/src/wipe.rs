//! Erasing a value that held a secret.

use crate::json::Value;
use zeroize::Zeroize;

/// Overwrites every string inside, and leaves `null`. Copies a parser or an allocator made are out of reach.
pub(crate) fn wipe(value: &mut Value) {
    // Not recursive: a value may be nested, and this runs on any of them.
    let mut rest = vec![std::mem::replace(value, Value::Null)];
    while let Some(next) = rest.pop() {
        match next {
            Value::String(mut text) => text.zeroize(),
            Value::Array(items) => rest.extend(items),
            Value::Object(object) => rest.extend(object.into_iter().map(|(_, value)| value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
