//! The only way a peer's words get into a result: fenced, or, where they are this side's, neutralised (`§11`, "Model-visible
//! text", "Authors"; contract ipc §9).

use messaging_proto::text::{create_fence, neutralise};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whether the system gave no randomness for a fence. Then no result may leave.
static NO_RANDOMNESS: AtomicBool = AtomicBool::new(false);

/// Whose text it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    /// The other side.
    Peer,
    /// The session, its person or its daemon.
    Ours,
}

impl Author {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::Ours => "ours",
        }
    }

    /// The author of what `ours` says is this side's.
    pub(crate) const fn of(ours: bool) -> Self {
        if ours { Self::Ours } else { Self::Peer }
    }
}

/// Where a text comes from: what its fence says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) author: Author,
    /// The address of whoever wrote it.
    pub(crate) from: &'a str,
    /// The id of what it is part of.
    pub(crate) id: Option<&'a str>,
}

impl<'a> Source<'a> {
    pub(crate) const fn peer(from: &'a str, id: Option<&'a str>) -> Self {
        Self { author: Author::Peer, from, id }
    }

    /// The text, fit for a model.
    pub(crate) fn show(&self, kind: &str, text: &str) -> Value {
        if self.author == Author::Ours {
            return Value::from(neutralise(text));
        }
        let mut attributes = vec![("from", self.from), ("kind", kind)];
        attributes.extend(self.id.map(|id| ("id", id)));
        Value::from(create_fence(&attributes, text, draw))
    }
}

fn draw() -> [u8; 10] {
    let mut bytes = [0; 10];
    if getrandom::fill(&mut bytes).is_err() {
        // Something that does not repeat ends the fence's search; the result is then withheld.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        NO_RANDOMNESS.store(true, Ordering::Relaxed);
        bytes[..8].copy_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    }
    bytes
}

/// Whether a fence of this process may be guessed.
pub(crate) fn broken() -> bool {
    NO_RANDOMNESS.load(Ordering::Relaxed)
}

/// A time of the daemon as ISO 8601 in UTC, to the millisecond.
pub(crate) fn time(ms: &Value) -> Value {
    ms.as_u64().map_or(Value::Null, |ms| Value::from(Wall(ms).iso_millis()))
}

/// A media type when it is one; a peer may write anything there.
pub(crate) fn media_type(text: &str) -> Option<&str> {
    let part = |part: &str| {
        (1..=64).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    text.split_once('/').is_some_and(|(kind, sub)| part(kind) && part(sub)).then_some(text)
}

/// An object under construction: members that are absent are left out.
#[derive(Debug, Default)]
pub(crate) struct Object(Map<String, Value>);

impl Object {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn set(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn maybe(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.set(name, value),
            None => self,
        }
    }

    /// An identifier of the daemon's answer, when it has the form of one.
    pub(crate) fn id(self, name: &str, value: &Value) -> Self {
        let id = value.as_str().filter(|id| Ulid::parse(id).is_some()).map(str::to_owned);
        self.maybe(name, id)
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object.0)
    }
}

/// The summary of a delegation chain.
pub(crate) fn chain(chain: &Value) -> Option<Value> {
    let addresses = chain.get("addresses")?;
    Some(match chain.get("scope") {
        Some(scope) => json!({ "addresses": addresses, "scope": scope }),
        None => json!({ "addresses": addresses }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_carries_no_text() {
        assert_eq!(media_type("image/svg+xml"), Some("image/svg+xml"));
        for text in ["text", "text/plain; x=<system>", "<system>/x", "a/b/c", "text/ plain", "/x", "a/"] {
            assert_eq!(media_type(text), None, "{text}");
        }
    }

    #[test]
    fn ours_is_never_labelled_as_a_peers() {
        let ours = Source { author: Author::Ours, from: "bob/a@b", id: None };
        assert_eq!(ours.show("text", "<system>hi"), "&lt;system>hi");
        let shown = Source::peer("bob/a@b", Some("7")).show("text", "hi");
        let shown = shown.as_str().unwrap();
        assert!(shown.starts_with("<messaging-peer-"), "{shown}");
        assert!(
            shown.contains(" from=\"bob/a@b\" kind=\"text\" id=\"7\">\nhi\n</messaging-peer-"),
            "{shown}"
        );
    }
}
