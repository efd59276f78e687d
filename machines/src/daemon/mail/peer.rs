//! The other end of mail and tasks, as rows keep it and clients see it.

use crate::daemon::ctx::obj;
use messaging_proto::address::SessionAddress;
use messaging_proto::json::{Object, Value};
use messaging_proto::key::MachineId;
use messaging_proto::name::{Label, PersonId, SessionName};
use serde::{Deserialize, Serialize};

/// `PeerRef` (contract ipc §2). The label is the roster's when the row was written; a member's label never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Peer {
    /// Whose machine it is.
    pub(crate) person: PersonId,
    /// The machine.
    pub(crate) device: MachineId,
    /// Its label.
    pub(crate) label: Label,
    /// The session; absent when the person wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<SessionName>,
}

impl Peer {
    /// The session's address; nothing for a person.
    pub(crate) fn address(&self) -> Option<SessionAddress> {
        let session = self.agent.clone()?;
        Some(SessionAddress { person: self.person.clone(), session, label: self.label.clone() })
    }

    /// As clients see it.
    pub(crate) fn to_value(&self) -> Value {
        let Value::Object(mut peer) = obj([
            ("person", Value::text(self.person.as_str())),
            ("device", Value::text(self.device.to_string())),
            ("label", Value::text(self.label.as_str())),
        ]) else {
            return Value::Null;
        };
        if let (Some(agent), Some(address)) = (&self.agent, self.address()) {
            peer.set("agent", Value::text(agent.as_str()));
            peer.set("address", Value::text(address.to_string()));
        }
        peer.into()
    }
}

/// Sets a member when there is a value for it.
pub(crate) fn set(object: &mut Object, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        object.set(name, value);
    }
}
