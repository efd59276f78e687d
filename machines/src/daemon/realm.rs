//! The verified roster this machine holds: a cache over the stored entries.

use messaging_proto::roster::Roster;

/// The verified roster. Only this module changes it.
#[derive(Debug, Default)]
pub struct Realm {
    roster: Roster,
}

impl Realm {
    /// The roster; nothing before there is a team.
    #[must_use]
    pub fn roster(&self) -> Option<&Roster> {
        self.roster.head().map(|_| &self.roster)
    }

    /// Whether sends wait: a member has signed a head this roster has not reached (`§5`, "Roster head check").
    #[must_use]
    pub const fn paused(&self) -> bool {
        false
    }
}

#[cfg(test)]
impl Realm {
    /// A realm that holds this roster, for tests of the roles that read it.
    pub(in crate::daemon) const fn holding(roster: Roster) -> Self {
        Self { roster }
    }
}
