//! Why a consent grant or a contact card is not signed or not accepted.

use crate::Code;
use crate::json::Invalid;

/// A grant or card that does not count (`messaging/1 §6.9`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConsentError {
    /// It does not have the shape, or is not I-JSON.
    #[error("consent: {0}")]
    Shape(#[from] Invalid),
    /// It breaks a rule that its shape does not show.
    #[error("{member} is not allowed here")]
    Rule {
        /// The member that breaks the rule.
        member: &'static str,
    },
    /// It is over its limit in canonical bytes.
    #[error("the value is over its byte limit")]
    TooLarge,
    /// It speaks of another realm or person than the one it is read for.
    #[error("{member} is another")]
    Other {
        /// The member that differs.
        member: &'static str,
    },
    /// Its signature does not verify.
    #[error("sig does not verify")]
    Signature,
}

impl ConsentError {
    /// The code of a refusal for this reason.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Shape(_) | Self::Rule { .. } | Self::Other { .. } => Code::InvalidRequest,
            Self::TooLarge => Code::TooLarge,
            Self::Signature => Code::BadSignature,
        }
    }
}
