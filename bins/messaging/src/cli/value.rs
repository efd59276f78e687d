//! Building and reading the values of the local API.

use serde_json::{Map, Value};

/// An object of these members.
pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

/// A string.
pub(crate) fn string(text: &str) -> Value {
    Value::from(text)
}

/// An integer.
pub(crate) fn number(number: u64) -> Value {
    Value::from(number)
}

/// An array.
pub(crate) fn array(items: impl IntoIterator<Item = Value>) -> Value {
    items.into_iter().collect()
}

/// Reading what a daemon answered: a missing member reads as empty, since the daemon is of our own release.
pub(crate) trait Read {
    /// The member's text, or nothing.
    fn text(&self, name: &str) -> &str;
    /// The member's text, when it is there.
    fn maybe(&self, name: &str) -> Option<&str>;
    /// The member's integer, when it is one.
    fn int(&self, name: &str) -> Option<u64>;
    /// Whether the member is `true`.
    fn flag(&self, name: &str) -> bool;
    /// The member's elements.
    fn items(&self, name: &str) -> &[Value];
}

impl Read for Value {
    fn text(&self, name: &str) -> &str {
        self.maybe(name).unwrap_or_default()
    }

    fn maybe(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    fn int(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(Value::as_u64)
    }

    fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Value::Bool(true)))
    }

    fn items(&self, name: &str) -> &[Value] {
        self.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }
}
