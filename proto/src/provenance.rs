//! Who a message came from, as its recipient vouches for it (`messaging/1 §6.6`).

use crate::envelope::End;
use crate::json::{Object, Value};
use crate::realm::Device;

/// The extension's URI, which is the member of `message.metadata` that holds it.
pub const URI: &str = "urn:messaging:ext:provenance:v1";

/// What is known of a message's sender: the end of its verified header, and the label its device has in the
/// realm.
#[must_use]
pub fn provenance(device: &Device<'_>, from: &End) -> Value {
    let mut object = Object::new();
    object.push("person".to_owned(), Value::text(from.person.as_str()));
    object.push("device".to_owned(), Value::text(from.device.to_string()));
    object.push("label".to_owned(), Value::text(device.label.as_str()));
    if let Some(agent) = &from.agent {
        object.push("agent".to_owned(), Value::text(agent.as_str()));
        let address = format!("{}/{agent}@{}", from.person, device.label);
        object.push("from".to_owned(), Value::String(address));
    }
    object.into()
}

/// Writes the provenance into an A2A message, over whatever the peer put there.
pub fn write(message: &mut Value, device: &Device<'_>, from: &End) {
    let Value::Object(message) = message else { return };
    let mut metadata = match message.remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Object::new(),
    };
    metadata.set(URI, provenance(device, from));
    message.push("metadata".to_owned(), metadata.into());
}
