//! The text of an identity file.

use super::{Identity, IdentityError};
use crate::b64u;
use crate::json::parse_wire;
use crate::key::EncSecret;
use crate::wipe::wipe;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use zeroize::Zeroizing;

/// The largest text that is read as an identity.
const FILE_BYTES: usize = 65_536;

/// The whole text of an identity file, private keys and all. Erased when dropped, redacted when printed.
///
/// It serialises as its text, because a captured run of a machine needs it: such a capture is a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct IdentityFile(Zeroizing<String>);

impl IdentityFile {
    /// A text that was read from the file. Not checked before [`IdentityFile::read`].
    #[must_use]
    pub const fn new(text: Zeroizing<String>) -> Self {
        Self(text)
    }

    /// The text to write: one JSON object and a line feed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Reads the identity in the text.
    ///
    /// # Errors
    /// As [`Identity::import`]; a text that is not wire JSON is [`IdentityError::Invalid`].
    pub fn read(&self) -> Result<Identity, IdentityError> {
        let mut value = parse_wire(self.0.as_bytes(), FILE_BYTES)?;
        let identity = Identity::import(&value);
        wipe(&mut value);
        identity
    }
}

impl Identity {
    /// The file that holds this identity, unknown members of the file it was read from included.
    #[must_use]
    pub fn export(&self) -> IdentityFile {
        let seed = self.signing.seed();
        let mut text = Zeroizing::new(String::with_capacity(2048));
        // Written by hand: every value is base64url or an integer, and no private key is copied into a `Value`.
        text.push_str(r#"{"v":"messaging/1","machine":""#);
        text.push_str(&self.machine().to_string());
        text.push_str(r#"","#);
        text.push_str(&pair(&self.enc));
        text.push_str(r#","signingKey":""#);
        text.push_str(&Zeroizing::new(b64u::encode(&seed[..])));
        text.push('"');
        if !self.retained.is_empty() {
            text.push_str(r#","retained":["#);
            for (index, retained) in self.retained.iter().enumerate() {
                text.push_str(if index == 0 { "{" } else { ",{" });
                text.push_str(&pair(&retained.key));
                text.push_str(r#","until":"#);
                text.push_str(&retained.until.0.to_string());
                text.push('}');
            }
            text.push(']');
        }
        if let Some(pending) = &self.pending {
            text.push_str(r#","pending":{"#);
            text.push_str(&pair(&pending.key));
            text.push_str(r#","ts":"#);
            text.push_str(&pending.ts.0.to_string());
            text.push('}');
        }
        text.push_str(&self.unknown);
        text.push_str("}\n");
        IdentityFile(text)
    }
}

/// `"enc":"…","encKey":"…"`.
fn pair(key: &EncSecret) -> Zeroizing<String> {
    let secret = key.bytes();
    let secret = Zeroizing::new(b64u::encode(&secret[..]));
    let mut text = Zeroizing::new(String::with_capacity(128));
    for part in [r#""enc":""#, &key.public().to_string(), r#"","encKey":""#, &secret, r#"""#] {
        text.push_str(part);
    }
    text
}

impl fmt::Debug for IdentityFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdentityFile(redacted)")
    }
}

impl Serialize for IdentityFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for IdentityFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Zeroizing::new(text)))
    }
}
