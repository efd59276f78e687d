//! The relay link.

use super::io::LinkId;
use messaging_proto::key::MachineId;
use std::collections::BTreeSet;

/// The link as the API names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkPhase {
    /// Welcomed and caught up.
    Connected,
    /// On the way there.
    Connecting,
    /// There is nothing to connect to.
    #[default]
    Offline,
}

/// What others know of the link. Only this module changes it.
#[derive(Debug, Default)]
pub struct LinkState {
    phase: LinkPhase,
    welcomed: Option<LinkId>,
    errand: Option<LinkId>,
    online: BTreeSet<MachineId>,
}

impl LinkState {
    /// The link as the API names it.
    #[must_use]
    pub const fn phase(&self) -> LinkPhase {
        self.phase
    }

    /// Whether the link is welcomed and caught up: sends go out.
    #[must_use]
    pub fn up(&self) -> bool {
        self.phase == LinkPhase::Connected
    }

    /// The connection that said `welcome`.
    #[must_use]
    pub const fn welcomed(&self) -> Option<LinkId> {
        self.welcomed
    }

    /// The connection of the team role's errand, once challenged.
    #[must_use]
    pub const fn errand(&self) -> Option<LinkId> {
        self.errand
    }

    /// Whether another member's machine is connected, as the relay says.
    #[must_use]
    pub fn online(&self, machine: &MachineId) -> bool {
        self.online.contains(machine)
    }
}

#[cfg(test)]
impl LinkState {
    /// A link that is up, with these members online, for tests of the roles that send on it.
    pub(in crate::daemon) const fn connected(online: BTreeSet<MachineId>) -> Self {
        Self { phase: LinkPhase::Connected, welcomed: Some(LinkId(1)), errand: None, online }
    }
}
