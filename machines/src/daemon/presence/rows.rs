//! The last presence of every machine (`messaging/1 §6.5`).
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `presence` | device | [`Seen`] |
//!
//! This machine's own last `seq` is the counter `presence`.

use crate::daemon::rows::{self, Key};
use crate::store::{StoreDown, Table, Txn};
use messaging_proto::key::MachineId;
use messaging_proto::name::{AgentKind, SessionName};
use messaging_proto::payload::{PresencePayload, PresenceSession, SessionState, Tier};
use messaging_proto::time::Wall;
use serde::{Deserialize, Serialize};

pub(crate) const PRESENCE: Table = Table("presence");

/// A machine's last presence. Its label was the roster's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Its `seq`: the latest wins.
    pub(crate) seq: u64,
    /// When it was received.
    pub(crate) at: Wall,
    /// Whether its person is away from it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) away: bool,
    /// What it can do.
    pub(crate) features: Vec<String>,
    /// Its sessions.
    pub(crate) sessions: Vec<Listed>,
}

/// A session as its machine lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) name: SessionName,
    pub(crate) client: AgentKind,
    pub(crate) state: SessionState,
    pub(crate) tier: Tier,
    pub(crate) since: Wall,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) kept: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) wake: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) repo: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) doing: Option<String>,
}

impl From<&PresenceSession> for Listed {
    fn from(session: &PresenceSession) -> Self {
        Self {
            name: session.name.clone(),
            client: session.client.clone(),
            state: session.state,
            tier: session.tier,
            since: session.since,
            kept: session.kept,
            wake: session.wake,
            repo: session.repo.clone(),
            branch: session.branch.clone(),
            doing: session.doing.clone(),
        }
    }
}

impl Seen {
    /// What is kept of a presence.
    pub(crate) fn of(payload: &PresencePayload, at: Wall) -> Self {
        Self {
            seq: payload.seq,
            at,
            away: payload.away,
            features: payload.features.clone(),
            sessions: payload.sessions.iter().map(Listed::from).collect(),
        }
    }

    /// The session with this name.
    pub(crate) fn session(&self, name: &SessionName) -> Option<&Listed> {
        self.sessions.iter().find(|session| session.name == *name)
    }
}

/// A machine's last presence.
pub(crate) fn get(txn: &Txn<'_>, device: &MachineId) -> Result<Option<Seen>, StoreDown> {
    rows::get(txn, PRESENCE, &key(device))
}

/// Writes a machine's last presence.
pub(crate) fn put(txn: &mut Txn<'_>, device: &MachineId, seen: &Seen) {
    rows::put(txn, PRESENCE, &key(device), seen);
}

/// Forgets a machine that left.
pub(crate) fn forget(txn: &mut Txn<'_>, device: &MachineId) {
    rows::delete(txn, PRESENCE, &key(device));
}

/// The `seq` of this machine's next presence: past the last, and past the clock's, so that a store restored from an
/// old copy does not say old numbers again.
pub(crate) fn next_seq(txn: &mut Txn<'_>, now: Wall) -> Result<u64, StoreDown> {
    rows::next_at_least(txn, "presence", now.0)
}

fn key(device: &MachineId) -> Key {
    Key::new().bytes(&device.0)
}
