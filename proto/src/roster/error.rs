//! Why a roster refuses an entry.

use crate::Code;
use crate::json::Invalid;
use thiserror::Error;

/// An entry that a roster does not accept (`messaging/1 §9`, `Roster.apply`). Never holds a value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RosterError {
    /// The entry is not of its schema, or not I-JSON.
    #[error("roster entry: {0}")]
    Invalid(#[from] Invalid),
    /// A key the entry would admit is not usable; the member that holds it.
    #[error("roster entry: {0} is not a usable key")]
    UnusableKey(&'static str),
    /// The canonical entry is over `rosterEntryBytes`.
    #[error("roster entry: larger than the limit")]
    TooLarge,
    /// `seq` and `prev` do not extend the head.
    #[error("roster entry: seq and prev do not extend the head")]
    Conflict,
    /// `team` is another team, or a `seq` 0 entry is not this team's genesis.
    #[error("roster entry: team is another one")]
    AnotherTeam,
    /// `ts` is more than the clock skew before the entry before.
    #[error("roster entry: ts is before the previous entry")]
    Backdated,
    /// There are no entries to build a roster from.
    #[error("roster: no entries")]
    Empty,
    /// `ts` is too far from now.
    #[error("roster entry: ts is too far from now")]
    Expired,
    /// `sig` does not verify under `by`.
    #[error("roster entry: sig does not verify")]
    BadSignature,
    /// The signer lacks the authority, or the target is in the wrong state.
    #[error("roster entry: {0}")]
    Forbidden(Forbidden),
    /// The invite does not allow it.
    #[error("roster entry: {0}")]
    Invite(InviteFault),
}

/// Which authority rule an entry breaks (`messaging/1 §4`, "Authority rules").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Forbidden {
    /// A genesis whose signer is not its admin founder.
    #[error("the signer is not the admin founder")]
    NotFounder,
    /// Only a current admin may do this.
    #[error("the signer is not an admin")]
    NotAdmin,
    /// The machine is a member already.
    #[error("the machine is a member already")]
    AlreadyMember,
    /// The machine was removed, which is for ever.
    #[error("the machine was removed")]
    Removed,
    /// A current machine of the person has this label.
    #[error("the label is taken")]
    LabelTaken,
    /// A redeem not signed by the machine that joins.
    #[error("the signer is not the machine that joins")]
    NotJoiner,
    /// The machine is not a current member.
    #[error("the machine is not a member")]
    NotCurrent,
    /// No admin would remain.
    #[error("no admin would remain")]
    LastAdmin,
}

/// Which invite rule an entry breaks (`messaging/1 §4`, "Invites").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InviteFault {
    /// The invite id was used before.
    #[error("the invite id was used before")]
    IdUsed,
    /// The lifetime is not above zero and at most `ttlMs`.
    #[error("the lifetime of the invite is out of range")]
    Lifetime,
    /// There is no such invite.
    #[error("the invite is unknown")]
    Unknown,
    /// The invite was redeemed or revoked.
    #[error("the invite is not open")]
    NotOpen,
    /// The entry is at or past the invite's expiry.
    #[error("the invite is expired")]
    Expired,
    /// `proof` does not verify under the invite's key.
    #[error("proof does not verify")]
    Proof,
    /// The member is another person than the invited one.
    #[error("the invite is for another person")]
    Person,
    /// An invite never admits an admin.
    #[error("an invite admits no admin")]
    Role,
}

impl RosterError {
    /// The code of this refusal.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Invalid(_) | Self::UnusableKey(_) | Self::AnotherTeam | Self::Backdated | Self::Empty => {
                Code::InvalidRequest
            }
            Self::TooLarge => Code::TooLarge,
            Self::Conflict => Code::RosterConflict,
            Self::Expired => Code::Expired,
            Self::BadSignature => Code::BadSignature,
            Self::Forbidden(_) => Code::Forbidden,
            Self::Invite(_) => Code::InviteInvalid,
        }
    }
}
