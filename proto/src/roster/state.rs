//! Who is in a team, and the rules that change it (`messaging/1 §4`, "Authority rules" and "Invites").

use super::entry::{Entry, Member, Op};
use super::error::{Forbidden, InviteFault, RosterError};
use crate::json::Value;
use crate::key::MachineId;
use crate::limits;
use crate::name::{Label, PersonId};
use crate::realm::Role;
use crate::ticket;
use crate::time::Wall;
use crate::ulid::Ulid;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Where an invite is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InviteState {
    /// Neither used nor revoked. An expired invite stays open; only a redeem looks at the time.
    Open,
    /// A machine joined by it.
    Redeemed,
    /// An admin closed it.
    Revoked,
}

impl InviteState {
    /// The state's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Redeemed => "redeemed",
            Self::Revoked => "revoked",
        }
    }
}

/// An invite as the roster keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    /// The public half of the invite's seed.
    pub invite_pub: MachineId,
    /// Whom it admits.
    pub person: PersonId,
    /// When it ends: a redeem's `ts` must be before.
    pub expires: Wall,
    /// Where it is in its life.
    pub state: InviteState,
}

/// A current member with what the roster notes beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) member: Member,
    /// Position and signer of the latest `member.rekey` of this machine.
    pub(super) rekey: Option<(u64, MachineId)>,
}

/// Whether an entry comes from this machine's own store, whose signatures it checked when they came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    Checked,
    Unchecked,
}

/// The state after some entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    seats: BTreeMap<MachineId, Seat>,
    removed: BTreeSet<MachineId>,
    invites: BTreeMap<Ulid, Invite>,
    /// The machine of each current `(person, label)`.
    labels: BTreeMap<PersonId, BTreeMap<Label, MachineId>>,
    admins: usize,
}

impl State {
    pub(super) const fn seats(&self) -> &BTreeMap<MachineId, Seat> {
        &self.seats
    }

    pub(super) const fn removed(&self) -> &BTreeSet<MachineId> {
        &self.removed
    }

    pub(super) const fn invites(&self) -> &BTreeMap<Ulid, Invite> {
        &self.invites
    }

    pub(super) fn labels_of(&self, person: &PersonId) -> Option<&BTreeMap<Label, MachineId>> {
        self.labels.get(person)
    }

    pub(super) fn label_is_free(&self, person: &PersonId, label: &Label) -> bool {
        self.labels.get(person).is_none_or(|labels| !labels.contains_key(label))
    }

    /// Whether `entry` may follow this state: the authority rules, then the invite rules, which come last.
    pub(super) fn check(&self, entry: &Entry, raw: &Value, trust: Trust) -> Result<(), RosterError> {
        self.authority(entry).map_err(RosterError::Forbidden)?;
        self.invite(entry, raw, trust).map_err(RosterError::Invite)
    }

    /// §4 Authority.
    fn authority(&self, entry: &Entry) -> Result<(), Forbidden> {
        let by_admin = self.role(&entry.by) == Some(Role::Admin);
        let admin = || if by_admin { Ok(()) } else { Err(Forbidden::NotAdmin) };
        match &entry.op {
            Op::Genesis { founder, .. } => {
                if founder.role == Role::Admin && entry.by == founder.machine {
                    Ok(())
                } else {
                    Err(Forbidden::NotFounder)
                }
            }
            Op::InviteCreate { .. } | Op::InviteRevoke { .. } => admin(),
            Op::MemberAdd { member } => {
                admin()?;
                self.may_enter(member)
            }
            Op::InviteRedeem { member, .. } => {
                if entry.by != member.machine {
                    return Err(Forbidden::NotJoiner);
                }
                self.may_enter(member)
            }
            Op::MemberRemove { machine } => {
                let role = self.role(machine).ok_or(Forbidden::NotCurrent)?;
                // A member may always leave, unless it is the last admin.
                if entry.by != *machine {
                    admin()?;
                }
                self.an_admin_remains_without(role)
            }
            Op::MemberRole { machine, role } => {
                admin()?;
                let before = self.role(machine).ok_or(Forbidden::NotCurrent)?;
                if *role == Role::Admin { Ok(()) } else { self.an_admin_remains_without(before) }
            }
            Op::MemberRekey { machine, .. } => {
                self.role(machine).ok_or(Forbidden::NotCurrent)?;
                if entry.by == *machine { Ok(()) } else { admin() }
            }
        }
    }

    fn role(&self, machine: &MachineId) -> Option<Role> {
        self.seats.get(machine).map(|seat| seat.member.role)
    }

    fn an_admin_remains_without(&self, role: Role) -> Result<(), Forbidden> {
        if role == Role::Admin && self.admins < 2 { Err(Forbidden::LastAdmin) } else { Ok(()) }
    }

    fn may_enter(&self, member: &Member) -> Result<(), Forbidden> {
        if self.seats.contains_key(&member.machine) {
            Err(Forbidden::AlreadyMember)
        } else if self.removed.contains(&member.machine) {
            Err(Forbidden::Removed)
        } else if self.label_is_free(&member.person, &member.label) {
            Ok(())
        } else {
            Err(Forbidden::LabelTaken)
        }
    }

    /// §4 Invites.
    fn invite(&self, entry: &Entry, raw: &Value, trust: Trust) -> Result<(), InviteFault> {
        let open = |invite_id: &Ulid| match self.invites.get(invite_id) {
            None => Err(InviteFault::Unknown),
            Some(invite) if invite.state == InviteState::Open => Ok(invite),
            Some(_) => Err(InviteFault::NotOpen),
        };
        match &entry.op {
            Op::InviteCreate { invite_id, expires, .. } => {
                if self.invites.contains_key(invite_id) {
                    return Err(InviteFault::IdUsed);
                }
                let lifetime = expires.0.saturating_sub(entry.ts.0);
                if lifetime == 0 || lifetime > limits::TTL_MS { Err(InviteFault::Lifetime) } else { Ok(()) }
            }
            Op::InviteRevoke { invite_id } => open(invite_id).map(|_| ()),
            Op::InviteRedeem { invite_id, proof, member } => {
                let invite = open(invite_id)?;
                // §4 Invite expiry, the chain rule: the entry's own time, on every replay.
                if entry.ts >= invite.expires {
                    return Err(InviteFault::Expired);
                }
                if trust == Trust::Checked && !proof_holds(entry, invite, invite_id, proof, raw) {
                    return Err(InviteFault::Proof);
                }
                if member.person != invite.person {
                    return Err(InviteFault::Person);
                }
                if member.role == Role::Member { Ok(()) } else { Err(InviteFault::Role) }
            }
            _ => Ok(()),
        }
    }

    /// Makes the change of an entry that [`State::check`] accepted.
    pub(super) fn change(&mut self, entry: &Entry) {
        match &entry.op {
            Op::Genesis { founder, .. } => self.enter(founder),
            Op::MemberAdd { member } => self.enter(member),
            Op::InviteCreate { invite_id, invite_pub, person, expires } => {
                let invite = Invite {
                    invite_pub: *invite_pub,
                    person: person.clone(),
                    expires: *expires,
                    state: InviteState::Open,
                };
                self.invites.insert(*invite_id, invite);
            }
            Op::InviteRevoke { invite_id } => self.close(invite_id, InviteState::Revoked),
            Op::InviteRedeem { invite_id, member, .. } => {
                self.close(invite_id, InviteState::Redeemed);
                self.enter(member);
            }
            Op::MemberRemove { machine } => self.leave(machine),
            Op::MemberRole { machine, role } => {
                if let Some(seat) = self.seats.get_mut(machine) {
                    self.admins -= usize::from(seat.member.role == Role::Admin);
                    self.admins += usize::from(*role == Role::Admin);
                    seat.member.role = *role;
                }
            }
            Op::MemberRekey { machine, enc } => {
                if let Some(seat) = self.seats.get_mut(machine) {
                    seat.member.enc = *enc;
                    seat.rekey = Some((entry.seq, entry.by));
                }
            }
        }
    }

    fn enter(&mut self, member: &Member) {
        self.admins += usize::from(member.role == Role::Admin);
        self.labels.entry(member.person.clone()).or_default().insert(member.label.clone(), member.machine);
        self.seats.insert(member.machine, Seat { member: member.clone(), rekey: None });
    }

    fn leave(&mut self, machine: &MachineId) {
        let Some(seat) = self.seats.remove(machine) else { return };
        self.admins -= usize::from(seat.member.role == Role::Admin);
        if let Some(labels) = self.labels.get_mut(&seat.member.person) {
            labels.remove(&seat.member.label);
            if labels.is_empty() {
                self.labels.remove(&seat.member.person);
            }
        }
        self.removed.insert(*machine);
    }

    fn close(&mut self, invite_id: &Ulid, state: InviteState) {
        if let Some(invite) = self.invites.get_mut(invite_id) {
            invite.state = state;
        }
    }
}

/// §4 The proof is over the raw member, so it also covers members only a newer peer knows.
fn proof_holds(
    entry: &Entry,
    invite: &Invite,
    invite_id: &Ulid,
    proof: &crate::key::Sig,
    raw: &Value,
) -> bool {
    let (Some(team), Some(member)) = (entry.team, raw.get("member")) else { return false };
    ticket::verify_redeem_proof(&invite.invite_pub, proof, &team, invite_id, member)
}
