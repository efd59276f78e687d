//! The purposes of signatures and hashes, kept apart by a prefix (`messaging/1 §2`).

use crate::json::{Invalid, Value, append_canonical};

macro_rules! domains {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $prefix:literal;)*) => {
        /// What a signature or a hash is for. One made for one purpose never verifies for another.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Domain { $($(#[$doc])* $name,)* }

        impl Domain {
            /// Every purpose.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The specification's name of this purpose.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What stands before the canonical text; ends in one LF.
            #[must_use]
            pub const fn prefix(self) -> &'static str {
                match self { $(Self::$name => concat!("messaging/1/", $prefix, "\n"),)* }
            }
        }
    };
}

domains! {
    /// An envelope without `sig`.
    Envelope = "envelope", "envelope";
    /// A roster entry without `sig`.
    Roster = "roster", "roster";
    /// What `hello` proves to a relay.
    RelayAuth = "relayAuth", "relay-auth";
    /// The proof that redeems an invite.
    Invite = "invite", "invite";
    /// The proof that lets a joiner read a roster.
    InviteJoin = "inviteJoin", "invite-join";
    /// A delegation grant.
    Delegation = "delegation", "delegation";
    /// A consent grant.
    Grant = "grant", "grant";
    /// A contact card.
    Card = "card", "card";
    /// Hash: the id of a hosted person.
    Person = "person", "person";
    /// The proof of a directory read.
    DirRead = "dirRead", "dir-read";
    /// A device-log entry.
    DeviceLog = "deviceLog", "device-log";
    /// A keys statement.
    DeviceKeys = "deviceKeys", "device-keys";
    /// A link request.
    DeviceLink = "deviceLink", "device-link";
    /// A signed tree head.
    Epoch = "epoch", "epoch";
    /// A rotation of the epoch key.
    DirKey = "dirKey", "dir-key";
    /// A conversation event.
    ConvEvent = "convEvent", "conv-event";
    /// Hash: the start of a conversation's chain.
    ConvGenesis = "convGenesis", "conv-genesis";
    /// Hash: the id of a conversation of two persons.
    Dm = "dm", "dm";
    /// Hash: the id of a person's conversation with itself.
    SelfChat = "self", "self";
}

/// The bytes that are signed or hashed for this purpose: the prefix, then the canonical text.
///
/// # Errors
/// [`Invalid`] when the value is not I-JSON.
pub fn signed_bytes(domain: Domain, value: &Value) -> Result<Vec<u8>, Invalid> {
    let mut text = domain.prefix().to_owned();
    append_canonical(value, &mut text)?;
    Ok(text.into_bytes())
}
