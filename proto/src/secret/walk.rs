//! Where in a call's params credentials are looked for, and in which order.

use super::kind_of;
use crate::json::Value;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::fmt;

/// The methods whose params are read.
const METHODS: [&str; 4] = ["msg.send", "task.update", "task.cancel", "person.send"];

/// The names a field may be called by: the params of [`METHODS`]. Any other name is a caller's text.
const NAMES: [&str; 21] = [
    "artifact",
    "clientId",
    "contextId",
    "conversation",
    "extensions",
    "idempotencyKey",
    "kind",
    "message",
    "messageId",
    "metadata",
    "onBehalfOf",
    "parts",
    "reason",
    "referenceTaskIds",
    "replyTo",
    "request",
    "state",
    "taskId",
    "text",
    "thread",
    "to",
];

/// Which param holds the credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// One element of `parts`.
    Part(usize),
    /// A param, by its name.
    Param(&'static str),
    /// A param the method does not have.
    Other,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part(index) => write!(f, "parts[{index}]"),
            Self::Param(name) => f.write_str(name),
            Self::Other => f.write_str("params"),
        }
    }
}

/// A credential that was found: where, and of which kind. Displays as the message of the refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The param.
    pub field: Field,
    /// The kind, for the message and the log.
    pub kind: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} holds a credential ({}); nothing was sent", self.field, self.kind)
    }
}

/// The first credential in the params of a call that sends (`messaging/1 §8.7`); nothing for any other method.
///
/// Every string is read, member names and the bytes of base64 `raw` members included, but the session `key`.
#[must_use]
pub fn find(method: &str, params: &Value) -> Option<Finding> {
    if !METHODS.contains(&method) {
        return None;
    }
    let mut members = params.as_object()?.iter().filter(|(name, _)| *name != "key").collect::<Vec<_>>();
    members.sort_by(|(one, _), (two, _)| one.encode_utf16().cmp(two.encode_utf16()));
    members.into_iter().find_map(|(name, value)| in_member(name, value))
}

fn in_member(name: &str, value: &Value) -> Option<Finding> {
    if let Some(kind) = kind_of(name) {
        return Some(Finding { field: Field::Other, kind });
    }
    let known = NAMES.iter().find(|known| **known == name);
    let field = known.map_or(Field::Other, |known| Field::Param(known));
    match value {
        Value::Array(parts) if name == "parts" => parts.iter().enumerate().find_map(|(index, part)| {
            in_value(None, part).map(|kind| Finding { field: Field::Part(index), kind })
        }),
        _ => in_value(Some(name), value).map(|kind| Finding { field, kind }),
    }
}

/// The first kind found in a value, depth first, the name of a member before its value.
fn in_value(name: Option<&str>, value: &Value) -> Option<&'static str> {
    enum Next<'a> {
        Name(&'a str),
        Value(Option<&'a str>, &'a Value),
    }
    let mut open = vec![Next::Value(name, value)];
    while let Some(next) = open.pop() {
        let found = match next {
            Next::Name(name) => kind_of(name),
            Next::Value(name, Value::String(text)) => kind_of(text).or_else(|| match name {
                Some("raw") => in_bytes(text),
                _ => None,
            }),
            Next::Value(_, Value::Array(items)) => {
                open.extend(items.iter().rev().map(|item| Next::Value(None, item)));
                None
            }
            Next::Value(_, Value::Object(object)) => {
                let members = object
                    .iter()
                    .flat_map(|(name, value)| [Next::Name(name), Next::Value(Some(name), value)]);
                let at = open.len();
                open.extend(members);
                if let Some(new) = open.get_mut(at..) {
                    new.reverse();
                }
                None
            }
            Next::Value(..) => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// The kind found in the bytes that a text stands for. Lenient about padding, so that a sloppy writer hides nothing.
fn in_bytes(text: &str) -> Option<&'static str> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    let bytes = LENIENT.decode(text).ok()?;
    kind_of(&String::from_utf8_lossy(&bytes))
}
