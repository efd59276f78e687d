//! Why an envelope is refused.

use crate::Code;
use crate::json::Invalid;

/// Why an envelope cannot be sent, accepted or opened. Nothing in it comes from the envelope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// The envelope, or what was sealed in it, breaks its schema.
    #[error(transparent)]
    Shape(#[from] Invalid),
    /// `realm` is not this machine's.
    #[error("realm is another one")]
    Realm,
    /// `anchor.kind` belongs to the other kind of realm.
    #[error("anchor.kind is not the realm's")]
    AnchorKind,
    /// `ts` and `exp` do not hold now.
    #[error("{0}")]
    Time(TimeFault),
    /// `from` is not a current member of the roster, or not of that person.
    #[error("from is not a current member")]
    NotMember,
    /// `from` is not a current device of its person in the directory.
    #[error("from is not a current device")]
    UnknownDevice,
    /// `sig` does not verify under `from.device`.
    #[error("sig does not verify")]
    Signature,
    /// `to` is not this machine, or not its person.
    #[error("to is not this machine")]
    Recipient,
    /// No held key opens the seal.
    #[error("body does not open")]
    Seal,
    /// No held key opens the seal, and the sender had not seen this machine's newest key.
    #[error("body is sealed to a key that was replaced")]
    StaleSeal,
    /// The sealed payload is over `plaintextBytes`.
    #[error("body is over its limit")]
    PlaintextSize,
    /// The presence payload is over `presenceBytes`.
    #[error("body is over the presence limit")]
    PresenceSize,
    /// The envelope without its body is over `headerBytes`.
    #[error("header is over its limit")]
    HeaderSize,
    /// The signer is not `from.device`.
    #[error("from.device is not the signing machine")]
    Signer,
    /// `exp` is before `ts`, or further after it than `ttlMs`.
    #[error("exp is out of range")]
    Lifetime,
    /// Nothing can be sealed to the recipient's key.
    #[error("the recipient's key is unusable")]
    RecipientKey,
}

/// Which rule of the time window an envelope breaks (`messaging/1 §5`, step 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeFault {
    /// `ts` is after `exp`.
    #[error("ts is after exp")]
    Backwards,
    /// `ts` is further ahead than `clockSkewMs`.
    #[error("ts is in the future")]
    Future,
    /// `exp` is not after now.
    #[error("exp is over")]
    Over,
    /// `exp` is further after `ts` than `ttlMs`.
    #[error("exp is too far after ts")]
    Long,
}

impl EnvelopeError {
    /// The code of this refusal.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Shape(_)
            | Self::AnchorKind
            | Self::Recipient
            | Self::Signer
            | Self::Lifetime
            | Self::RecipientKey => Code::InvalidRequest,
            Self::Realm | Self::NotMember => Code::NotMember,
            Self::UnknownDevice => Code::UnknownDevice,
            Self::Time(_) => Code::Expired,
            Self::Signature | Self::Seal => Code::BadSignature,
            Self::StaleSeal => Code::RosterConflict,
            Self::PlaintextSize | Self::PresenceSize | Self::HeaderSize => Code::TooLarge,
        }
    }
}
