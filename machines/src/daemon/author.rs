//! Writing roster entries through the relay.

use messaging_proto::Code;
use messaging_proto::key::{EncKey, MachineId, SigningKey};
use messaging_proto::name::PersonName;
use messaging_proto::roster::{Member, Role as MemberRole};
use messaging_proto::ulid::Ulid;

/// Who asked for an entry, and which of its requests it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Job {
    /// A call of `team.*`.
    Team(u64),
    /// A rotation.
    Rotation,
}

/// Why an entry was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// The roster's rules or the relay refuse it: it is not in the roster.
    Refused(Code),
    /// There is no connection to ask on: nothing was sent.
    NoLink,
    /// It was sent, and no answer came in time: whether it is in the roster shows later.
    Unknown,
}

/// What an entry says. It is signed on top of the roster's head, anew after each lost race.
#[derive(Clone, Debug)]
pub enum Draft {
    /// `invite.create`.
    InviteCreate {
        /// The invite's id.
        invite_id: Ulid,
        /// Its seed; only its public half goes into the entry.
        seed: SigningKey,
        /// Whom it admits.
        person: PersonName,
        /// For how long, in milliseconds.
        ttl_ms: u64,
    },
    /// `invite.revoke`.
    InviteRevoke(Ulid),
    /// `member.add`.
    MemberAdd(Member),
    /// `member.remove`.
    MemberRemove(MachineId),
    /// `member.role`.
    MemberRole(MachineId, MemberRole),
    /// `member.rekey`.
    MemberRekey(MachineId, EncKey),
}
