//! The id of a request (`messaging/1 §7`).

use crate::text_form::text_form;
use std::fmt;

/// What a client calls one of its requests: `[A-Za-z0-9._:-]{1,64}`. The reply echoes it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Req(String);

impl Req {
    /// Reads a request id.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte));
        fits.then(|| Self(text.to_owned()))
    }

    /// A request id made of a number.
    #[must_use]
    pub fn of(number: u64) -> Self {
        Self(number.to_string())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Req {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Req {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Req({})", self.0)
    }
}

text_form!(Req, "a request id");
