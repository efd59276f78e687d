//! Writing canonical frames.

use crate::json::{Value, append_canonical};
use std::fmt::Display;
use std::sync::Arc;

/// A canonical object, member by member in order of name. The caller gives the names in that order.
pub(super) struct Line(String);

impl Line {
    pub(super) fn new(capacity: usize) -> Self {
        let mut text = String::with_capacity(capacity);
        text.push('{');
        Self(text)
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(name);
        self.0.push_str("\":");
    }

    /// A member whose text is a JSON value as it stands.
    pub(super) fn raw(mut self, name: &str, json: &str) -> Self {
        self.name(name);
        self.0.push_str(json);
        self
    }

    /// A number or a literal.
    pub(super) fn plain(self, name: &str, value: impl Display) -> Self {
        self.raw(name, &value.to_string())
    }

    /// A string that may need escapes.
    pub(super) fn text(mut self, name: &str, text: &str) -> Self {
        self.name(name);
        // A string is always I-JSON.
        let _ = append_canonical(&Value::text(text), &mut self.0);
        self
    }

    pub(super) fn opt_text(self, name: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(name, text),
            None => self,
        }
    }

    pub(super) fn opt_plain(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.plain(name, value),
            None => self,
        }
    }

    /// An array of values that stand as they are.
    pub(super) fn list(mut self, name: &str, items: &[Arc<str>]) -> Self {
        self.name(name);
        self.0.push('[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            self.0.push_str(item);
        }
        self.0.push(']');
        self
    }

    /// An array of strings that need no escapes.
    pub(super) fn names(mut self, name: &str, items: &[impl Display]) -> Self {
        self.name(name);
        self.0.push('[');
        for (index, item) in items.iter().enumerate() {
            self.0.push_str(if index == 0 { "\"" } else { ",\"" });
            self.0.push_str(&item.to_string());
            self.0.push('"');
        }
        self.0.push(']');
        self
    }

    pub(super) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}
