//! Refusing to send what holds a credential (`messaging/1 §8.7`).

use super::ctx::{Ctx, Outcome};
use super::io::Level;
use super::ipc::RpcError;
use messaging_proto::Code;
use messaging_proto::json::Value;
use messaging_proto::secret;

/// Refuses a call whose params hold a credential, before anything is stored, sealed or sent. Only the field and the
/// kind are named, to the client and in the log; `outbound.refuseSecrets` turns the check off.
///
/// # Errors
/// `secret_refused`.
pub(crate) fn refuse(cx: &mut Ctx<'_, '_>, method: &'static str, params: &Value) -> Outcome<()> {
    if !cx.facts.config.refuse_secrets() {
        return Ok(());
    }
    let Some(found) = secret::find(method, params) else { return Ok(()) };
    cx.log(
        Level::Info,
        "outbound.secret_refused",
        vec![("method", method.to_owned()), ("kind", found.kind.to_owned())],
    );
    let error = RpcError::new(Code::SecretRefused, "a field holds a credential; nothing was sent");
    Err(error.saying(found.to_string()).at(found.field.to_string()).into())
}

#[cfg(test)]
mod tests;
