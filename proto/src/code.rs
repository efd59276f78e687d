//! Error codes (`messaging/1 §13`): one closed list, and the text each has on the wire.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What a refusal is called on the wire, in the API and in logs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code, in the order of the specification.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The code's text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }

            /// The code with this text, if it is one of the list.
            #[must_use]
            pub fn from_text(text: &str) -> Option<Self> {
                match text { $($text => Some(Code::$name),)* _ => None }
            }
        }
    };
}

codes! {
    /// The input is malformed or breaks a schema.
    InvalidRequest = "invalid_request",
    /// The sender or the recipient is not a current member.
    NotMember = "not_member",
    /// A signature or a seal failed.
    BadSignature = "bad_signature",
    /// The addressed session is neither registered nor kept on its machine.
    UnknownSession = "unknown_session",
    /// Sessions on more than one machine match; `@label` picks one.
    AmbiguousAddress = "ambiguous_address",
    /// The address names nobody.
    NoRecipients = "no_recipients",
    /// A tool address names nobody this machine knows (a client code, never on the wire).
    UnknownAddress = "unknown_address",
    /// The recipient refuses this sender.
    Refused = "refused",
    /// The recipient's person declined a held request.
    Declined = "declined",
    /// The recipient's person has not accepted this sender.
    RequestRequired = "request_required",
    /// Too much traffic; try again later.
    RateLimited = "rate_limited",
    /// The guard against agents answering each other for ever tripped.
    LoopGuard = "loop_guard",
    /// A size limit was exceeded.
    TooLarge = "too_large",
    /// The sending daemon found a credential in what was to be sent; nothing was sent.
    SecretRefused = "secret_refused",
    /// The lifetime is over, or a timestamp is outside the allowed clock skew.
    Expired = "expired",
    /// The envelope id was seen before (treated as success).
    Duplicate = "duplicate",
    /// There is no relay connection.
    RelayUnavailable = "relay_unavailable",
    /// The id is unknown.
    NotFound = "not_found",
    /// An illegal task transition, or the wrong role.
    InvalidState = "invalid_state",
    /// The caller lacks the authority.
    Forbidden = "forbidden",
    /// A guarded turn tried to send to a third party (a client code).
    GuardedTurn = "guarded_turn",
    /// A roster entry does not extend the head, or a head is not on this chain.
    RosterConflict = "roster_conflict",
    /// The invite is unknown, expired, revoked, used or mismatched.
    InviteInvalid = "invite_invalid",
    /// The daemon has not created or joined a team.
    NoIdentity = "no_identity",
    /// A device binding or log entry failed verification.
    BindingInvalid = "binding_invalid",
    /// The identity provider's keys could not be fetched.
    JellyUnavailable = "jelly_unavailable",
    /// A device-log entry does not extend its log.
    LogConflict = "log_conflict",
    /// A conversation entry does not extend its log.
    ConvConflict = "conv_conflict",
    /// A conversation message is sealed under an old epoch.
    StaleEpoch = "stale_epoch",
    /// The person has the most devices allowed.
    DeviceLimit = "device_limit",
    /// A first binding without the authority it needs.
    AdmissionRequired = "admission_required",
    /// A first binding whose token does not admit it.
    AdmissionInvalid = "admission_invalid",
    /// The directory contradicted itself; the evidence is kept.
    DirectoryInconsistent = "directory_inconsistent",
    /// The device is not a current device of its person.
    UnknownDevice = "unknown_device",
    /// The key directory could not be reached.
    DirectoryUnavailable = "directory_unavailable",
    /// The identity provider offers no device sign-in here.
    LoginUnsupported = "login_unsupported",
    /// The person denied the sign-in.
    LoginDenied = "login_denied",
    /// The call needs an action grant.
    GrantRequired = "grant_required",
    /// The action grant did not verify.
    GrantInvalid = "grant_invalid",
    /// The call needs a session ticket.
    TicketRequired = "ticket_required",
    /// The session ticket did not verify.
    TicketInvalid = "ticket_invalid",
    /// No daemon answers (a client code).
    DaemonUnavailable = "daemon_unavailable",
    /// The daemon is of another release (a client code).
    DaemonMismatch = "daemon_mismatch",
    /// The daemon refused its store (a client code).
    StoreRefused = "store_refused",
    /// An unexpected failure; details stay in local logs.
    Internal = "internal",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_reads_back() {
        for code in Code::ALL {
            assert_eq!(Code::from_text(code.as_str()), Some(*code));
        }
        assert_eq!(Code::from_text("nope"), None);
    }
}
