//! The params of `team.*` (`contract ipc §5`).

use crate::daemon::config::RelayParam;
use crate::daemon::ipc::methods::Call as AnyCall;
use crate::daemon::ipc::params::{Int, Text, only};
use messaging_proto::hash::{Hash, RealmId};
use messaging_proto::json::{Fields, Invalid};
use messaging_proto::key::{EncKey, MachineId};
use messaging_proto::limits::TTL_MS;
use messaging_proto::name::{Label, PersonName, TeamName};
use messaging_proto::realm::Role;
use messaging_proto::relay_url::RelayUrl;
use messaging_proto::ulid::Ulid;
use zeroize::Zeroizing;

/// The calls this role serves.
#[derive(Clone, Debug)]
pub enum Call {
    /// `team.prepare`.
    Prepare,
    /// `team.create`.
    Create(Create),
    /// `team.join`.
    Join(Join),
    /// `team.pair`.
    Pair(Pair),
    /// `team.claim`.
    Claim,
    /// `team.pairCancel`.
    PairCancel,
    /// `team.info`.
    Info,
    /// A change of the roster.
    Admin(Change),
}

/// `team.create`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create {
    /// The relay to found the team at.
    pub relay: RelayUrl,
    /// The team's name.
    pub name: TeamName,
    /// The founder.
    pub person: PersonName,
    /// This machine's label.
    pub label: Label,
}

/// `team.join`.
#[derive(Clone)]
pub struct Join {
    /// The ticket's text: a secret.
    pub ticket: Zeroizing<String>,
    /// This machine's label.
    pub label: Label,
}

impl std::fmt::Debug for Join {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Join").field("label", &self.label).finish_non_exhaustive()
    }
}

/// `team.pair`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The team's relay.
    pub relay: RelayUrl,
    /// The team.
    pub team: RealmId,
    /// Whose machine this is to be.
    pub person: PersonName,
    /// Its label.
    pub label: Label,
}

/// What an entry of an existing team is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// `team.invite`.
    Invite {
        /// Whom.
        person: PersonName,
        /// For how long, in milliseconds.
        ttl_ms: u64,
    },
    /// `team.revoke`.
    Revoke(Ulid),
    /// `team.add`.
    Add {
        /// The machine.
        machine: MachineId,
        /// The key to seal to.
        enc: EncKey,
        /// Its person.
        person: PersonName,
        /// Its label.
        label: Label,
    },
    /// `team.remove`.
    Remove(MachineId),
    /// `team.role`.
    Role(MachineId, Role),
    /// `team.rekey`.
    Rekey(MachineId, EncKey),
}

/// How the params of each method read.
pub mod reads {
    use super::{AnyCall, Call, Change, Create, EncKey, Fields, Hash, Int, Invalid, Join, Label, MachineId};
    use super::{Pair, PersonName, RelayParam, Role, TTL_MS, TeamName, Text, Ulid, Zeroizing, only};

    type Read = Result<AnyCall, Invalid>;

    const fn team(call: Call) -> AnyCall {
        AnyCall::Team(call)
    }

    fn admin(change: Change) -> AnyCall {
        team(Call::Admin(change))
    }

    /// `team.prepare`.
    ///
    /// # Errors
    /// [`Invalid`] with the param at fault; so for each of these.
    pub fn prepare(params: &Fields<'_>) -> Read {
        only(params, &[])?;
        Ok(team(Call::Prepare))
    }

    /// `team.create`.
    ///
    /// # Errors
    /// See [`prepare`].
    pub fn create(params: &Fields<'_>) -> Read {
        only(params, &["relay", "name", "person", "label"])?;
        Ok(team(Call::Create(Create {
            relay: params.req::<RelayParam>("relay")?.0,
            name: params.req::<TeamName>("name")?,
            person: params.req("person")?,
            label: params.req("label")?,
        })))
    }

    /// `team.join`.
    ///
    /// # Errors
    /// See [`prepare`].
    pub fn join(params: &Fields<'_>) -> Read {
        only(params, &["ticket", "label"])?;
        let ticket = Zeroizing::new(params.req::<Text<1, 4096>>("ticket")?.0);
        Ok(team(Call::Join(Join { ticket, label: params.req("label")? })))
    }

    /// `team.pair`.
    ///
    /// # Errors
    /// See [`prepare`].
    pub fn pair(params: &Fields<'_>) -> Read {
        only(params, &["relay", "team", "name", "person", "label"])?;
        params.opt::<TeamName>("name")?;
        Ok(team(Call::Pair(Pair {
            relay: params.req::<RelayParam>("relay")?.0,
            team: params.req::<Hash>("team")?,
            person: params.req("person")?,
            label: params.req("label")?,
        })))
    }

    /// `team.claim`.
    ///
    /// # Errors
    /// See [`prepare`].
    pub fn claim(params: &Fields<'_>) -> Read {
        only(params, &[])?;
        Ok(team(Call::Claim))
    }

    /// `team.pairCancel`.
    ///
    /// # Errors
    /// See [`prepare`].
    pub fn pair_cancel(params: &Fields<'_>) -> Read {
        only(params, &[])?;
        Ok(team(Call::PairCancel))
    }

    /// `team.info`.
    ///
    /// # Errors
    /// See [`prepare`].
    pub fn info(params: &Fields<'_>) -> Read {
        only(params, &[])?;
        Ok(team(Call::Info))
    }

    /// `team.invite`.
    ///
    /// # Errors
    /// See [`prepare`].
    pub fn invite(params: &Fields<'_>) -> Read {
        only(params, &["person", "ttlMs"])?;
        let ttl_ms = params.opt::<Int<60_000, TTL_MS>>("ttlMs")?.map_or(TTL_MS, |int| int.0);
        Ok(admin(Change::Invite { person: params.req("person")?, ttl_ms }))
    }

    /// `team.revoke`.
    ///
    /// # Errors
    /// See [`prepare`].
    pub fn revoke(params: &Fields<'_>) -> Read {
        only(params, &["inviteId"])?;
        Ok(admin(Change::Revoke(params.req::<Ulid>("inviteId")?)))
    }

    /// `team.add`.
    ///
    /// # Errors
    /// See [`prepare`].
    pub fn add(params: &Fields<'_>) -> Read {
        only(params, &["machine", "enc", "person", "label"])?;
        Ok(admin(Change::Add {
            machine: params.req::<MachineId>("machine")?,
            enc: params.req::<EncKey>("enc")?,
            person: params.req::<PersonName>("person")?,
            label: params.req::<Label>("label")?,
        }))
    }

    /// `team.remove`.
    ///
    /// # Errors
    /// See [`prepare`].
    pub fn remove(params: &Fields<'_>) -> Read {
        only(params, &["machine"])?;
        Ok(admin(Change::Remove(params.req("machine")?)))
    }

    /// `team.role`.
    ///
    /// # Errors
    /// See [`prepare`].
    pub fn role(params: &Fields<'_>) -> Read {
        only(params, &["machine", "role"])?;
        Ok(admin(Change::Role(params.req("machine")?, params.req::<Role>("role")?)))
    }

    /// `team.rekey`.
    ///
    /// # Errors
    /// See [`prepare`].
    pub fn rekey(params: &Fields<'_>) -> Read {
        only(params, &["machine", "enc"])?;
        Ok(admin(Change::Rekey(params.req("machine")?, params.req("enc")?)))
    }
}
