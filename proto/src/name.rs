//! The grammars of names (contract wire-core §2): ASCII, whole string, no trimming and no case folding.

use crate::text_form::text_form;
use crate::units::utf16_len;
use std::fmt;
use std::sync::Arc;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident, $what:literal, $check:expr;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Reads a name; nothing when it breaks the grammar.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                let check: fn(&str) -> bool = $check;
                check(text).then(|| Self(text.into()))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), self.0)
            }
        }

        text_form!($name, $what);
    )* };
}

names! {
    /// A person of a roster: `[a-z][a-z0-9-]{0,31}`.
    PersonName, "a person name", |text| shape(text, 32, lower, lower_digit_dash);
    /// A hosted person: `p_` and 26 characters of lower-case base32.
    HostedId, "a hosted id", is_hosted;
    /// A person of either kind. The forms are disjoint: only a hosted id has `_`.
    PersonId, "a person", |text| is_hosted(text) || shape(text, 32, lower, lower_digit_dash);
    /// A machine's label: `[a-z0-9][a-z0-9-]{0,31}`.
    Label, "a label", |text| shape(text, 32, lower_digit, lower_digit_dash);
    /// A session: `[a-z0-9][a-z0-9._-]{0,63}`.
    SessionName, "a session name", |text| shape(text, 64, lower_digit, |byte| lower_digit(byte) || b"._-".contains(&byte));
    /// A channel: `[a-z0-9][a-z0-9-]{0,31}`.
    ChannelName, "a channel name", |text| shape(text, 32, lower_digit, lower_digit_dash);
    /// A team's name: 1 to 64 UTF-16 units, any characters. Shown only after cleaning.
    TeamName, "a team name", |text| (1..=64).contains(&utf16_len(text));
    /// The kind of an agent, such as `codex` or `cli`: `[a-z0-9][a-z0-9._-]{0,31}`.
    AgentKind, "an agent kind", |text| shape(text, 32, lower_digit, |byte| lower_digit(byte) || b"._-".contains(&byte));
    /// One scope of a delegation: `[a-z0-9][a-z0-9._:/-]{0,63}` (§6.7).
    ScopeLabel, "a scope", |text| shape(text, 64, lower_digit, |byte| lower_digit(byte) || b"._:/-".contains(&byte));
}

impl PersonId {
    /// Whether this is a hosted id (`messaging/1 §15.1`).
    #[must_use]
    pub fn is_hosted(&self) -> bool {
        is_hosted(&self.0)
    }
}

impl From<PersonName> for PersonId {
    fn from(name: PersonName) -> Self {
        Self(name.0)
    }
}

impl From<HostedId> for PersonId {
    fn from(id: HostedId) -> Self {
        Self(id.0)
    }
}

/// 1 to `max` bytes, the first and the others each of their class.
fn shape(text: &str, max: usize, first: fn(u8) -> bool, other: fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [head, tail @ ..] => first(*head) && tail.len() < max && tail.iter().all(|byte| other(*byte)),
        [] => false,
    }
}

fn is_hosted(text: &str) -> bool {
    text.strip_prefix("p_")
        .is_some_and(|id| id.len() == 26 && id.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7')))
}

const fn lower(byte: u8) -> bool {
    byte.is_ascii_lowercase()
}

const fn lower_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

const fn lower_digit_dash(byte: u8) -> bool {
    lower_digit(byte) || byte == b'-'
}
