//! Where a relay may be, and the id it must answer with (`messaging/1 §4`, `§7`; contract wire-core §2).

use crate::text_form::text_form;
use crate::units::utf16_len;
use std::fmt;
use url::{Host, Url};

const URL_UNITS_MAX: usize = 2048;

/// Whether a machine may connect to this URL: `wss`, or `ws` to this computer, without user, password or
/// fragment.
#[must_use]
pub fn is_allowed_relay_url(text: &str) -> bool {
    parse(text).is_some()
}

/// The id of the relay at this URL: scheme, host and port as WHATWG writes an origin. Nothing when the URL is
/// not allowed.
#[must_use]
pub fn relay_origin(text: &str) -> Option<String> {
    parse(text).map(|url| url.origin().ascii_serialization())
}

/// An allowed relay URL, as it was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelayUrl {
    text: String,
    url: Url,
}

impl RelayUrl {
    /// Reads an allowed URL.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        parse(text).map(|url| Self { text: text.to_owned(), url })
    }

    /// The URL as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The id of the relay there.
    #[must_use]
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// The parsed URL, for a client that connects.
    #[must_use]
    pub const fn url(&self) -> &Url {
        &self.url
    }
}

impl fmt::Display for RelayUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

text_form!(RelayUrl, "an allowed relay URL");

fn parse(text: &str) -> Option<Url> {
    // U1. Long texts are refused before they cost anything.
    if text.is_empty() || text.len() > 3 * URL_UNITS_MAX || utf16_len(text) > URL_UNITS_MAX {
        return None;
    }
    let url = Url::parse(text).ok()?;
    let scheme_ok = match url.scheme() {
        "wss" => true,
        "ws" => url.host().is_some_and(|host| is_loopback(&host)),
        _ => false,
    };
    let user = !url.username().is_empty() || url.password().is_some_and(|password| !password.is_empty());
    let fragment = url.fragment().is_some_and(|fragment| !fragment.is_empty());
    (scheme_ok && !user && !fragment).then_some(url)
}

/// U3: this computer, after host parsing. Nothing that only may resolve to it.
fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}
