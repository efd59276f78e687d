//! What an operator decides about a relay.

use super::limits::Limits;
use messaging_proto::key::MachineId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The choices of one relay (contract ipc §6.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The relay's id: the origin of its connect URL, byte for byte what clients compare (`messaging/1 §7`,
    /// "Relay id").
    pub relay_id: Arc<str>,
    /// Whether teams can be founded here at all.
    pub team_creation: bool,
    /// When not empty, only these machines found teams.
    pub genesis: Vec<MachineId>,
    /// How much the relay holds and takes.
    pub limits: Limits,
}

impl Config {
    /// A relay of this id that anybody can found teams on, with default limits.
    #[must_use]
    pub fn new(relay_id: impl Into<Arc<str>>) -> Self {
        Self {
            relay_id: relay_id.into(),
            team_creation: true,
            genesis: Vec::new(),
            limits: Limits::default(),
        }
    }

    /// Whether this machine may found a team (contract wire-core §7.4).
    #[must_use]
    pub fn may_found(&self, machine: &MachineId) -> bool {
        self.team_creation && (self.genesis.is_empty() || self.genesis.contains(machine))
    }
}
