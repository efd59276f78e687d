//! One machine of one person.

use messaging_proto::key::{EncSecret, MachineId, SigningKey};
use messaging_proto::name::{Label, PersonId};
use messaging_proto::realm::Role;
use messaging_proto::roster::Member;

#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) key: SigningKey,
    pub(crate) person: PersonId,
    pub(crate) label: Label,
    enc: EncSecret,
}

impl Client {
    /// The machine with this number. Its person is its own.
    pub(crate) fn new(number: u8) -> Self {
        Self {
            key: SigningKey::from_seed([number; 32]),
            person: PersonId::parse(&format!("p{number}")).unwrap(),
            label: Label::parse(&format!("m{number}")).unwrap(),
            enc: EncSecret::from_bytes([number ^ 0x55; 32]),
        }
    }

    pub(crate) fn machine(&self) -> MachineId {
        self.key.machine()
    }

    pub(crate) fn member(&self, role: Role) -> Member {
        Member {
            machine: self.machine(),
            enc: self.enc.public(),
            person: self.person.clone(),
            role,
            label: self.label.clone(),
        }
    }
}
