//! Why a grant was not made, or a chain not accepted.

use crate::Code;
use crate::json::Invalid;

/// A grant that may not be made or a chain that does not hold (`messaging/1 §6.7`).
///
/// Grants are counted from the root, which is 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DelegationError {
    /// The input does not have the shape of a grant or of a chain, or is not I-JSON.
    #[error("delegation: {0}")]
    Shape(#[from] Invalid),
    /// A new grant ends before it begins, or lives longer than `ttlMs`.
    #[error("exp is not between ts and ts + ttlMs")]
    Lifetime,
    /// A new grant does not start where its parent ends.
    #[error("from is not the parent's to")]
    NotFromParent,
    /// The parent of a new grant is over.
    #[error("the parent grant has expired")]
    ParentExpired,
    /// A new grant would allow more than its parent.
    #[error("{member} is wider than the parent's")]
    Widens {
        /// The member that is wider: `scope`, `maxDepth` or `exp`.
        member: &'static str,
    },
    /// The chain is larger than `delegationBytes`.
    #[error("the chain is over delegationBytes")]
    TooLarge,
    /// A grant is of another realm.
    #[error("grant {grant}: realm is another")]
    Realm {
        /// Which grant.
        grant: usize,
    },
    /// A grant is not in force now.
    #[error("grant {grant}: outside its time window")]
    Expired {
        /// Which grant.
        grant: usize,
    },
    /// A grant's signer is not the current machine that its `from` names.
    #[error("grant {grant}: by is not the current machine of from")]
    NotMember {
        /// Which grant.
        grant: usize,
    },
    /// A grant's signature does not verify.
    #[error("grant {grant}: sig does not verify")]
    Signature {
        /// Which grant.
        grant: usize,
    },
    /// A grant does not follow the one before it.
    #[error("grant {grant}: {member} does not follow the grant before")]
    Broken {
        /// Which grant.
        grant: usize,
        /// The member that does not follow: `from` or `parent`.
        member: &'static str,
    },
    /// A grant allows more than the one before it.
    #[error("grant {grant}: {member} is wider than in the grant before")]
    Widened {
        /// Which grant.
        grant: usize,
        /// The member that is wider: `scope`, `maxDepth` or `exp`.
        member: &'static str,
    },
    /// The chain has more grants than one of them allows.
    #[error("the chain is longer than its smallest maxDepth")]
    TooDeep,
    /// The chain comes back to a session it already passed.
    #[error("the chain passes a session twice")]
    Cycle,
    /// The last grant is not the statement for the hop the chain arrived on.
    #[error("the last grant's {member} is not the hop's")]
    OtherHop {
        /// The member that differs: `by`, `from`, `to` or `task`.
        member: &'static str,
    },
}

impl DelegationError {
    /// The code of a refusal for this reason (`messaging/1 §6.7`).
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Shape(_)
            | Self::Lifetime
            | Self::NotFromParent
            | Self::Realm { .. }
            | Self::Broken { .. } => Code::InvalidRequest,
            Self::TooLarge => Code::TooLarge,
            Self::ParentExpired | Self::Expired { .. } => Code::Expired,
            Self::NotMember { .. } => Code::NotMember,
            Self::Signature { .. } => Code::BadSignature,
            Self::Widens { .. }
            | Self::Widened { .. }
            | Self::TooDeep
            | Self::Cycle
            | Self::OtherHop { .. } => Code::Forbidden,
        }
    }
}
