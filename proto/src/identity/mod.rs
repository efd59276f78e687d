//! A machine's keys (`messaging/1 §3`), and the encryption keys it keeps after a rotation (`§4`,
//! "Encryption-key rotation").
//!
//! Everything here is pure: keys and the current time come in, and the file's new text goes out. Private keys
//! are erased when they are dropped and never printed.

mod file;
mod read;
mod rotate;

pub use file::IdentityFile;
pub use rotate::RETAIN_MS;

use crate::Code;
use crate::json::Invalid;
use crate::key::{EncKey, EncSecret, MachineId, SigningKey};
use crate::time::Wall;
use std::fmt;
use thiserror::Error;
use zeroize::Zeroizing;

/// An identity that cannot be read, or a rotation that is not possible now. Never holds a value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IdentityError {
    /// The file is not of its schema.
    #[error("identity: {0}")]
    Invalid(#[from] Invalid),
    /// A public key is not the one of its private key; the public member.
    #[error("identity: {0} is not the public key of its private key")]
    Mismatch(&'static str),
    /// The file points to a keychain, which this implementation does not read.
    #[error("identity: the keys are in a keychain")]
    Keychain,
    /// As many earlier keys are retained as may be.
    #[error("identity: too many retained keys")]
    TooManyRetained,
    /// A rotation is not settled yet.
    #[error("identity: a rotation is pending")]
    RotationPending,
    /// No rotation is pending.
    #[error("identity: no rotation is pending")]
    NoRotation,
}

impl IdentityError {
    /// The code of this failure.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Invalid(_) | Self::Mismatch(_) | Self::Keychain => Code::InvalidRequest,
            Self::TooManyRetained | Self::RotationPending | Self::NoRotation => Code::InvalidState,
        }
    }
}

/// An earlier encryption key, which still opens what was sealed before a rotation.
#[derive(Clone, Debug)]
struct Retained {
    key: EncSecret,
    until: Wall,
}

/// A key whose `member.rekey` is not settled.
#[derive(Clone, Debug)]
struct Pending {
    key: EncSecret,
    ts: Wall,
}

/// A machine's keys.
#[derive(Clone)]
pub struct Identity {
    signing: SigningKey,
    enc: EncSecret,
    /// Newest first.
    retained: Vec<Retained>,
    pending: Option<Pending>,
    /// Members of the file this version does not know, each as `,"name":value`.
    unknown: Zeroizing<String>,
}

impl Identity {
    /// An identity of two fresh private keys: the Ed25519 seed and the X25519 scalar.
    #[must_use]
    pub fn generate(seed: [u8; 32], enc: [u8; 32]) -> Self {
        Self {
            signing: SigningKey::from_seed(seed),
            enc: EncSecret::from_bytes(enc),
            retained: Vec::new(),
            pending: None,
            unknown: Zeroizing::default(),
        }
    }

    /// The machine's id.
    #[must_use]
    pub fn machine(&self) -> MachineId {
        self.signing.machine()
    }

    /// The key that mail to this machine is sealed to.
    #[must_use]
    pub fn enc(&self) -> EncKey {
        self.enc.public()
    }

    /// The signing key.
    #[must_use]
    pub const fn signing(&self) -> &SigningKey {
        &self.signing
    }

    /// The key of a rotation that is not settled, and when it was begun.
    #[must_use]
    pub fn pending(&self) -> Option<(EncKey, Wall)> {
        self.pending.as_ref().map(|pending| (pending.key.public(), pending.ts))
    }

    /// The earlier keys with the time each is erased, newest first.
    pub fn retained(&self) -> impl Iterator<Item = (EncKey, Wall)> {
        self.retained.iter().map(|retained| (retained.key.public(), retained.until))
    }

    /// The private keys to try on a sealed envelope, in order: the current one, a pending one, then the retained
    /// ones that are not expired at `now` (`§3`).
    #[must_use]
    pub fn open_keys(&self, now: Wall) -> Vec<&EncSecret> {
        let mut keys = vec![&self.enc];
        keys.extend(self.pending.as_ref().map(|pending| &pending.key));
        keys.extend(
            self.retained.iter().filter(|retained| retained.until > now).map(|retained| &retained.key),
        );
        keys
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("machine", &self.machine())
            .field("enc", &self.enc())
            .finish_non_exhaustive()
    }
}
