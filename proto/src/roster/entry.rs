//! One entry of a roster, as its schema reads it (`messaging/1 §4`).

use crate::hash::Hash;
use crate::json::{Fields, FromValue, Invalid, Object, Value};
use crate::key::{EncKey, MachineId, Sig};
use crate::name::{Label, PersonId, PersonName, TeamName};
use crate::realm::Role;
use crate::time::Wall;
use crate::ulid::Ulid;
use serde::{Deserialize, Serialize};

/// What `v` is on everything that is signed or stored.
pub(crate) const V: &str = "messaging/1";

/// A member as the roster keeps it: exactly these members, whatever else the entry said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The machine's id, which is its signing key.
    pub machine: MachineId,
    /// The key to seal to.
    pub enc: EncKey,
    /// Whose machine it is: a roster person name.
    pub person: PersonId,
    /// What it may do to the roster.
    pub role: Role,
    /// The machine's name among its person's machines.
    pub label: Label,
}

impl Member {
    /// The member as it is written in an entry.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.push("machine".to_owned(), Value::text(self.machine.to_string()));
        object.push("enc".to_owned(), Value::text(self.enc.to_string()));
        object.push("person".to_owned(), Value::text(self.person.as_str()));
        object.push("role".to_owned(), Value::text(self.role.as_str()));
        object.push("label".to_owned(), Value::text(self.label.as_str()));
        object.into()
    }
}

impl FromValue for Member {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        Ok(Self {
            machine: fields.req("machine")?,
            enc: fields.req("enc")?,
            person: fields.req::<PersonName>("person")?.into(),
            role: fields.req("role")?,
            label: fields.req("label")?,
        })
    }
}

/// What an entry does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Founds the team.
    Genesis {
        /// The team's name.
        name: TeamName,
        /// Its first admin.
        founder: Member,
    },
    /// Opens an invite for one machine of a person.
    InviteCreate {
        /// The invite's id.
        invite_id: Ulid,
        /// The public half of the invite's seed.
        invite_pub: MachineId,
        /// Whom it admits.
        person: PersonId,
        /// When it ends.
        expires: Wall,
    },
    /// Closes an open invite.
    InviteRevoke {
        /// The invite's id.
        invite_id: Ulid,
    },
    /// Joins by an invite.
    InviteRedeem {
        /// The invite's id.
        invite_id: Ulid,
        /// A signature by the invite's seed over this member.
        proof: Sig,
        /// The machine that joins.
        member: Member,
    },
    /// Adds a machine.
    MemberAdd {
        /// The machine.
        member: Member,
    },
    /// Removes a machine, for ever.
    MemberRemove {
        /// The machine.
        machine: MachineId,
    },
    /// Changes a machine's role.
    MemberRole {
        /// The machine.
        machine: MachineId,
        /// Its role from now on.
        role: Role,
    },
    /// Changes the key that a machine's mail is sealed to.
    MemberRekey {
        /// The machine.
        machine: MachineId,
        /// Its key from now on.
        enc: EncKey,
    },
}

/// A typed view of one entry. The raw value is what is signed and hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The team; nothing in a genesis.
    pub team: Option<Hash>,
    /// Its position, 0 for the genesis.
    pub seq: u64,
    /// The hash of the entry before; nothing in a genesis.
    pub prev: Option<Hash>,
    /// When the author wrote it.
    pub ts: Wall,
    /// Who signed it.
    pub by: MachineId,
    /// The signature.
    pub sig: Sig,
    /// What it does.
    pub op: Op,
}

impl Entry {
    /// The key this entry would admit, and the path of the member that holds it (`§3`, "Usable keys").
    #[must_use]
    pub const fn admitted(&self) -> Option<(&MachineId, &'static str)> {
        match &self.op {
            Op::Genesis { founder, .. } => Some((&founder.machine, "founder.machine")),
            Op::InviteCreate { invite_pub, .. } => Some((invite_pub, "invitePub")),
            Op::InviteRedeem { member, .. } | Op::MemberAdd { member } => {
                Some((&member.machine, "member.machine"))
            }
            Op::InviteRevoke { .. }
            | Op::MemberRemove { .. }
            | Op::MemberRole { .. }
            | Op::MemberRekey { .. } => None,
        }
    }
}

impl Op {
    /// The operation's name on the wire.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Genesis { .. } => "genesis",
            Self::InviteCreate { .. } => "invite.create",
            Self::InviteRevoke { .. } => "invite.revoke",
            Self::InviteRedeem { .. } => "invite.redeem",
            Self::MemberAdd { .. } => "member.add",
            Self::MemberRemove { .. } => "member.remove",
            Self::MemberRole { .. } => "member.role",
            Self::MemberRekey { .. } => "member.rekey",
        }
    }

    fn read(fields: &Fields<'_>) -> Result<Self, Invalid> {
        let op = fields.raw("op").and_then(Value::as_str).ok_or_else(|| Invalid::at("op"))?;
        Ok(match op {
            "genesis" => Self::Genesis { name: fields.req("name")?, founder: fields.req("founder")? },
            "invite.create" => Self::InviteCreate {
                invite_id: fields.req("inviteId")?,
                invite_pub: fields.req("invitePub")?,
                person: fields.req::<PersonName>("person")?.into(),
                expires: Wall(fields.req("expires")?),
            },
            "invite.revoke" => Self::InviteRevoke { invite_id: fields.req("inviteId")? },
            "invite.redeem" => Self::InviteRedeem {
                invite_id: fields.req("inviteId")?,
                proof: fields.req("proof")?,
                member: fields.req("member")?,
            },
            "member.add" => Self::MemberAdd { member: fields.req("member")? },
            "member.remove" => Self::MemberRemove { machine: fields.req("machine")? },
            "member.role" => Self::MemberRole { machine: fields.req("machine")?, role: fields.req("role")? },
            "member.rekey" => Self::MemberRekey { machine: fields.req("machine")?, enc: fields.req("enc")? },
            _ => return Err(Invalid::at("op")),
        })
    }
}

impl FromValue for Entry {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        fields.literal("v", V)?;
        let op = Op::read(&fields)?;
        let seq: u64 = fields.req("seq")?;
        let genesis = matches!(op, Op::Genesis { .. });
        // Position 0 belongs to the genesis, and only to it.
        if genesis != (seq == 0) {
            return Err(Invalid::at("seq"));
        }
        let (team, prev) = if genesis {
            fields.absent("team")?;
            match fields.raw("prev") {
                Some(Value::Null) => (None, None),
                _ => return Err(Invalid::at("prev")),
            }
        } else {
            (Some(fields.req("team")?), Some(fields.req("prev")?))
        };
        Ok(Self {
            team,
            seq,
            prev,
            ts: Wall(fields.req("ts")?),
            by: fields.req("by")?,
            sig: fields.req("sig")?,
            op,
        })
    }
}
