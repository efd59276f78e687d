//! Why a chat envelope is refused.

use crate::Code;

/// Why a chat envelope is refused; nothing is stored then (`messaging/1 §6.8`, "Receiver rules").
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The created channel is held.
    #[error("the channel exists here")]
    Known,
    /// The sender, or this machine's person, is not among the persons of a created channel.
    #[error("persons: the sender or the receiver is missing")]
    NotListed,
    /// This machine left the channel, or was put out of it, not long ago.
    #[error("the channel ended here not long ago")]
    Ended,
    /// A person this machine cannot admit.
    #[error("persons: a person is unknown here")]
    UnknownPerson,
    /// This machine holds as many channels as it may.
    #[error("too many channels")]
    TooMany,
    /// Every local name for the channel's name is taken.
    #[error("name: every local name is taken")]
    NamesTaken,
    /// No channel with this id is held, or its name is another.
    #[error("the channel is unknown here")]
    Unknown,
    /// The sender is no member, or for a post this machine's person is none.
    #[error("not a member")]
    NotMember,
    /// The channel would have more members than it may.
    #[error("persons: the channel would be too large")]
    TooLarge,
    /// The sender may not remove members.
    #[error("only the creator and team admins remove members")]
    NotAllowed,
    /// The sender removes itself.
    #[error("persons: a sender leaves, and does not remove itself")]
    Itself,
    /// A person to remove is no member.
    #[error("persons: a person is no member")]
    NoSuchMember,
}

impl ChannelError {
    /// The code of §13, which the `rejected` receipt carries.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Known | Self::NotListed | Self::Ended | Self::NotMember | Self::NotAllowed => {
                Code::Forbidden
            }
            Self::UnknownPerson | Self::Unknown | Self::NoSuchMember => Code::NotFound,
            Self::TooMany | Self::NamesTaken => Code::RateLimited,
            Self::TooLarge | Self::Itself => Code::InvalidRequest,
        }
    }
}
