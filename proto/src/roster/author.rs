//! Writing entries. An author signs; whether the entry holds is for [`super::Roster::apply`] to say.

use super::entry::{Member, V};
use super::{Head, Role, Roster};
use crate::domain::Domain;
use crate::hash::RealmId;
use crate::json::{Invalid, Object, Value};
use crate::key::{EncKey, MachineId, Sig, SigningKey};
use crate::name::{PersonName, TeamName};
use crate::time::Wall;
use crate::ulid::Ulid;

/// The first entry of a team, signed by its founder's key. `founder.machine` should be the key's.
///
/// # Errors
/// [`Invalid`] when `ts` is past 2^53 − 1.
pub fn genesis(key: &SigningKey, ts: Wall, name: &TeamName, founder: &Member) -> Result<Value, Invalid> {
    let mut entry = Object::new();
    entry.push("v".to_owned(), Value::text(V));
    entry.push("op".to_owned(), Value::text("genesis"));
    entry.push("seq".to_owned(), Value::int(0));
    entry.push("prev".to_owned(), Value::Null);
    entry.push("ts".to_owned(), Value::int(ts.0));
    entry.push("by".to_owned(), Value::text(key.machine().to_string()));
    entry.push("name".to_owned(), Value::text(name.as_str()));
    entry.push("founder".to_owned(), founder.to_value());
    sign(key, entry)
}

/// Who writes the next entry of a team, on top of which head, and when. Every entry it builds is for the
/// position after that head: two of them conflict.
#[derive(Clone, Copy, Debug)]
pub struct Author<'a> {
    key: &'a SigningKey,
    team: RealmId,
    head: Head,
    ts: Wall,
}

impl<'a> Author<'a> {
    /// An author on top of the roster's head; nothing for a roster without entries.
    #[must_use]
    pub fn new(key: &'a SigningKey, roster: &Roster, ts: Wall) -> Option<Self> {
        Some(Self { key, team: roster.team()?, head: roster.head()?, ts })
    }

    /// An author on top of a known head.
    #[must_use]
    pub const fn at(key: &'a SigningKey, team: RealmId, head: Head, ts: Wall) -> Self {
        Self { key, team, head, ts }
    }

    /// When the entries are written.
    #[must_use]
    pub const fn ts(&self) -> Wall {
        self.ts
    }

    /// The team.
    #[must_use]
    pub const fn team(&self) -> RealmId {
        self.team
    }

    /// `invite.create`: opens an invite for one machine of `person` until `expires`.
    ///
    /// # Errors
    /// [`Invalid`] when a number is past 2^53 − 1; so for every entry.
    pub fn invite_create(
        &self,
        invite_id: &Ulid,
        invite_pub: &MachineId,
        person: &PersonName,
        expires: Wall,
    ) -> Result<Value, Invalid> {
        self.entry(
            "invite.create",
            [
                ("inviteId", Value::text(invite_id.to_string())),
                ("invitePub", Value::text(invite_pub.to_string())),
                ("person", Value::text(person.as_str())),
                ("expires", Value::int(expires.0)),
            ],
        )
    }

    /// `invite.revoke`: closes an open invite.
    ///
    /// # Errors
    /// As [`Author::invite_create`].
    pub fn invite_revoke(&self, invite_id: &Ulid) -> Result<Value, Invalid> {
        self.entry("invite.revoke", [("inviteId", Value::text(invite_id.to_string()))])
    }

    /// `invite.redeem`: joins as `member`, whose proof was made over exactly this value.
    ///
    /// # Errors
    /// As [`Author::invite_create`].
    pub fn redeem(&self, invite_id: &Ulid, proof: &Sig, member: Value) -> Result<Value, Invalid> {
        self.entry(
            "invite.redeem",
            [
                ("inviteId", Value::text(invite_id.to_string())),
                ("proof", Value::text(proof.to_string())),
                ("member", member),
            ],
        )
    }

    /// `member.add`: adds a machine.
    ///
    /// # Errors
    /// As [`Author::invite_create`].
    pub fn member_add(&self, member: &Member) -> Result<Value, Invalid> {
        self.entry("member.add", [("member", member.to_value())])
    }

    /// `member.remove`: removes a machine, for ever.
    ///
    /// # Errors
    /// As [`Author::invite_create`].
    pub fn member_remove(&self, machine: &MachineId) -> Result<Value, Invalid> {
        self.entry("member.remove", [("machine", Value::text(machine.to_string()))])
    }

    /// `member.role`: changes a machine's role.
    ///
    /// # Errors
    /// As [`Author::invite_create`].
    pub fn member_role(&self, machine: &MachineId, role: Role) -> Result<Value, Invalid> {
        self.entry(
            "member.role",
            [("machine", Value::text(machine.to_string())), ("role", Value::text(role.as_str()))],
        )
    }

    /// `member.rekey`: changes the key that a machine's mail is sealed to.
    ///
    /// # Errors
    /// As [`Author::invite_create`].
    pub fn member_rekey(&self, machine: &MachineId, enc: &EncKey) -> Result<Value, Invalid> {
        self.entry(
            "member.rekey",
            [("machine", Value::text(machine.to_string())), ("enc", Value::text(enc.to_string()))],
        )
    }

    fn entry<const N: usize>(&self, op: &str, members: [(&str, Value); N]) -> Result<Value, Invalid> {
        let mut entry = Object::new();
        entry.push("v".to_owned(), Value::text(V));
        entry.push("op".to_owned(), Value::text(op));
        entry.push("team".to_owned(), Value::text(self.team.to_string()));
        entry.push("seq".to_owned(), Value::int(self.head.seq.saturating_add(1)));
        entry.push("prev".to_owned(), Value::text(self.head.hash.to_string()));
        entry.push("ts".to_owned(), Value::int(self.ts.0));
        entry.push("by".to_owned(), Value::text(self.key.machine().to_string()));
        for (name, value) in members {
            entry.push(name.to_owned(), value);
        }
        sign(self.key, entry)
    }
}

fn sign(key: &SigningKey, entry: Object) -> Result<Value, Invalid> {
    let unsigned = Value::from(entry.clone());
    let sig = key.sign_value(Domain::Roster, &unsigned)?;
    let mut entry = entry;
    entry.push("sig".to_owned(), Value::text(sig.to_string()));
    Ok(entry.into())
}
