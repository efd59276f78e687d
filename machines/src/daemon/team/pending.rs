//! What is under way towards a team, as it is stored.

use crate::daemon::schema::{self, TEAM};
use crate::store::{StoreDown, Txn};
use messaging_proto::hash::RealmId;
use messaging_proto::key::MachineId;
use messaging_proto::name::{Label, PersonName, TeamName};
use messaging_proto::relay_url::RelayUrl;
use serde::{Deserialize, Serialize};

const KEY: &[u8] = b"pending";

/// What the keys in `pairing.json` are for. One purpose at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pending {
    /// Founding keys that wait for `team.create`.
    Prepared {
        /// Their machine.
        machine: MachineId,
    },
    /// A machine that waits to be added.
    Pairing {
        /// Its machine.
        machine: MachineId,
        /// The team's relay.
        relay: RelayUrl,
        /// The team.
        team: RealmId,
        /// Whose machine it is to be.
        person: PersonName,
        /// Its label.
        label: Label,
    },
    /// A genesis that may have been sent.
    Creating {
        /// The founder's machine.
        machine: MachineId,
        /// The relay.
        relay: RelayUrl,
        /// The team's name.
        name: TeamName,
        /// The founder's person.
        person: PersonName,
        /// The founder's label.
        label: Label,
        /// The genesis's canonical text: sent again as it is.
        genesis: String,
        /// Whether the keys were prepared: a refusal keeps them.
        prepared: bool,
    },
    /// A redeem that may have been sent. The invite's seed is not kept.
    Joining {
        /// The joiner's machine.
        machine: MachineId,
        /// The relay.
        relay: RelayUrl,
        /// The team.
        team: RealmId,
        /// The invited person.
        person: PersonName,
        /// The joiner's label.
        label: Label,
    },
    /// In the team: the roster is stored, and the files are being written.
    Adopting {
        /// This machine.
        machine: MachineId,
        /// The relay.
        relay: RelayUrl,
        /// The team.
        team: RealmId,
        /// This machine's person.
        person: PersonName,
        /// Its label.
        label: Label,
    },
}

impl Pending {
    /// The machine of the keys.
    #[must_use]
    pub const fn machine(&self) -> &MachineId {
        match self {
            Self::Prepared { machine }
            | Self::Pairing { machine, .. }
            | Self::Creating { machine, .. }
            | Self::Joining { machine, .. }
            | Self::Adopting { machine, .. } => machine,
        }
    }

    /// What is under way, if anything.
    ///
    /// # Errors
    /// [`StoreDown`].
    pub fn load(txn: &Txn<'_>) -> Result<Option<Self>, StoreDown> {
        schema::get(txn, TEAM, KEY)
    }

    pub(super) fn store(&self, txn: &mut Txn<'_>) {
        schema::put(txn, TEAM, KEY, self);
    }

    pub(super) fn clear(txn: &mut Txn<'_>) {
        txn.delete(TEAM, KEY);
    }
}
