//! One received message, read once and away from any machine.

use crate::b64u;
use crate::envelope::Inspected;
use crate::json::{Fields, Invalid, Object, Value, parse_wire_noting};
use crate::key::VerifyKey;
use crate::units::utf16_len;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The frames one side hears.
pub trait Frame: Sized {
    /// The types this side serves. Any other is ignored.
    const TYPES: &'static [&'static str];

    /// Reads a frame of the type `t`, one of [`Frame::TYPES`].
    ///
    /// # Errors
    /// [`Invalid`] when the frame is not of the shape of its type.
    fn read(t: &'static str, members: Members<'_>) -> Result<Self, Invalid>;

    /// The frame's type.
    fn t(&self) -> &'static str;

    /// What a refusal of this frame calls it, when its type says so (contract §7.2); nothing when any readable id will do.
    fn request(&self) -> Option<&str> {
        None
    }
}

/// The members of a received frame.
#[derive(Debug)]
pub struct Members<'a> {
    object: Object,
    /// The text of the whole frame, when it is canonical.
    canonical: Option<&'a str>,
    /// The key of whoever sent the frame, if known.
    sender: Option<&'a VerifyKey>,
}

impl Members<'_> {
    /// The members to read.
    pub(super) const fn fields(&self) -> Fields<'_> {
        Fields::from_object(&self.object)
    }

    /// Takes a member that is an object.
    pub(super) fn take_object(&mut self, name: &'static str) -> Result<Value, Invalid> {
        match self.object.remove(name) {
            Some(value @ Value::Object(_)) => Ok(value),
            _ => Err(Invalid::at(name)),
        }
    }

    /// Takes a member that is an array of at most `max` objects.
    pub(super) fn take_objects(&mut self, name: &'static str, max: usize) -> Result<Vec<Value>, Invalid> {
        match self.object.remove(name) {
            Some(Value::Array(items)) if items.len() <= max => {
                match items.iter().position(|item| item.as_object().is_none()) {
                    Some(index) => Err(Invalid::new().within_index(index).within(name)),
                    None => Ok(items),
                }
            }
            _ => Err(Invalid::at(name)),
        }
    }

    /// Takes the envelope, and does the heavy work on it.
    pub(super) fn take_envelope(mut self, t: &str) -> Result<Box<Inspected>, Invalid> {
        let alone = self.object.len() == 2;
        let env = self.take_object("env")?;
        // In a canonical frame of `env` and `t` alone, the envelope's text is what is between.
        let text = self.canonical.filter(|_| alone).and_then(|text| {
            text.strip_prefix(r#"{"env":"#)?.strip_suffix(r#""}"#)?.strip_suffix(t)?.strip_suffix(r#","t":""#)
        });
        Ok(Box::new(Inspected::knowing(env, text, self.sender)))
    }
}

/// What a message turned out to be (`§7`, "Unknown `t`"; contract §7.1).
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed<F> {
    /// A frame of this side's types, of the right shape.
    Frame(F),
    /// A type this side does not serve: ignored, though it counts.
    Unknown,
    /// A type this side serves, of another shape.
    BadShape {
        /// The type.
        t: &'static str,
        /// What to answer it with, as [`Received::id`].
        id: Option<String>,
    },
    /// No wire JSON, no object, or no text as `t`: a protocol error.
    Malformed,
}

/// A text message as it was received.
///
/// Serialised as its text, and read again from it, so a captured run stays small and repeats every check.
#[derive(Clone)]
pub struct Received<F> {
    /// What it is.
    pub parsed: Parsed<F>,
    /// Its size in bytes, which budgets count.
    pub bytes: usize,
    id: Option<String>,
    raw: Vec<u8>,
    max: usize,
}

impl<F: Frame> Received<F> {
    /// Reads a message of at most `max` bytes. Includes the work that needs no state: the canonical text and the
    /// signature of an envelope in it.
    #[must_use]
    pub fn parse(bytes: Vec<u8>, max: usize) -> Self {
        Self::parse_from(bytes, max, None)
    }

    /// As [`Received::parse`], of a message from a machine whose key is at hand, if one is. Reads the same.
    #[must_use]
    pub fn parse_from(bytes: Vec<u8>, max: usize, sender: Option<&VerifyKey>) -> Self {
        let (parsed, id) = read(&bytes, max, sender);
        Self { parsed, bytes: bytes.len(), id, raw: bytes, max }
    }

    /// The type, for counting: a type of this side's, or `other`.
    #[must_use]
    pub fn t(&self) -> &'static str {
        match &self.parsed {
            Parsed::Frame(frame) => frame.t(),
            Parsed::BadShape { t, .. } => t,
            Parsed::Unknown | Parsed::Malformed => "other",
        }
    }
}

impl<F> Received<F> {
    /// What a refusal of this message calls it: `req` of a request, else `env.id`, else `req`, else `id`, the first that is a
    /// string of 1 to 64 UTF-16 units.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
}

fn read<F: Frame>(bytes: &[u8], max: usize, sender: Option<&VerifyKey>) -> (Parsed<F>, Option<String>) {
    let Ok((Value::Object(object), canonical)) = parse_wire_noting(bytes, max) else {
        return (Parsed::Malformed, None);
    };
    let Some(t) = object.get("t").and_then(Value::as_str) else { return (Parsed::Malformed, None) };
    let id = readable_id(&object);
    let Some(t) = F::TYPES.iter().copied().find(|known| *known == t) else { return (Parsed::Unknown, id) };
    let canonical = if canonical { std::str::from_utf8(bytes).ok() } else { None };
    match F::read(t, Members { object, canonical, sender }) {
        Ok(frame) => {
            // A member that no table lists is no id: an `env` in a request of the roster, say.
            let id = frame.request().map(str::to_owned).or(id);
            (Parsed::Frame(frame), id)
        }
        Err(_) => (Parsed::BadShape { t, id: id.clone() }, id),
    }
}

fn readable_id(object: &Object) -> Option<String> {
    let env_id = object.get("env").and_then(|env| env.get("id"));
    [env_id, object.get("req"), object.get("id")]
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .find(|text| text.len() <= 3 * 64 && (1..=64).contains(&utf16_len(text)))
        .map(str::to_owned)
}

impl<F: Frame> fmt::Debug for Received<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.parsed {
            Parsed::Frame(_) => "frame",
            Parsed::Unknown => "unknown",
            Parsed::BadShape { .. } => "bad shape",
            Parsed::Malformed => "malformed",
        };
        f.debug_struct("Received")
            .field("t", &self.t())
            .field("is", &what)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// The captured form: text where it is text, else base64url.
#[derive(Serialize, Deserialize)]
struct Captured {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
    max: usize,
}

impl<F> Serialize for Received<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = std::str::from_utf8(&self.raw).ok().map(str::to_owned);
        let bytes = if text.is_none() { Some(b64u::encode(&self.raw)) } else { None };
        Captured { text, bytes, max: self.max }.serialize(serializer)
    }
}

impl<'de, F: Frame> Deserialize<'de> for Received<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let captured = Captured::deserialize(deserializer)?;
        let bytes = match (captured.text, captured.bytes) {
            (Some(text), None) => Some(text.into_bytes()),
            (None, Some(bytes)) => b64u::decode(&bytes),
            _ => None,
        };
        let bytes = bytes.ok_or_else(|| serde::de::Error::custom("not a captured frame"))?;
        Ok(Self::parse(bytes, captured.max))
    }
}
