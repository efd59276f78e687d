//! A message that was verified and opened: what the policy reads, and what a hold keeps.

use super::peer::Peer;
use crate::daemon::text::{AROUND_HISTORY, AROUND_MAIL};
use messaging_proto::a2a::Part;
use messaging_proto::json::{FromValue, Invalid, Value};
use messaging_proto::name::SessionName;
use messaging_proto::payload::{MessageKind, MessagePayload};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;

/// A message to one of this machine's agents.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// The envelope.
    pub(crate) id: Ulid,
    /// Who wrote it.
    pub(crate) from: Peer,
    /// The session that wrote it.
    pub(crate) author: SessionName,
    /// The addressed session.
    pub(crate) to: SessionName,
    /// What it answers.
    pub(crate) reply_to: Option<Ulid>,
    /// When it ends.
    pub(crate) exp: Wall,
    /// The payload as opened.
    pub(crate) raw: Value,
    /// Its known members.
    pub(crate) payload: MessagePayload,
}

impl Arrival {
    /// An arrival whose payload is read again, as a hold kept it.
    ///
    /// # Errors
    /// [`Invalid`] when the payload is none, which the daemon that held it had checked.
    pub(crate) fn read(
        id: Ulid,
        from: Peer,
        to: SessionName,
        reply_to: Option<Ulid>,
        exp: Wall,
        raw: Value,
    ) -> Result<Self, Invalid> {
        let payload = MessagePayload::from_value(&raw)?;
        let author = from.agent.clone().ok_or_else(|| Invalid::at("from"))?;
        Ok(Self { id, from, author, to, reply_to, exp, raw, payload })
    }

    /// Whether it asks for a task.
    pub(crate) fn is_task(&self) -> bool {
        self.payload.kind == MessageKind::Task
    }

    /// The message as opened.
    pub(crate) fn message(&self) -> &Value {
        self.raw.get("message").unwrap_or(&Value::Null)
    }

    /// How many containers are around it where it is shown deepest.
    pub(crate) const fn around(&self) -> usize {
        if self.payload.message.task_id.is_some() { AROUND_HISTORY } else { AROUND_MAIL }
    }

    /// Its parts.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.payload.message.parts
    }

    /// §6.1: the context, which is the message itself when the sender named none.
    pub(crate) fn context(&self) -> &str {
        let message = &self.payload.message;
        message.context_id.as_ref().unwrap_or(&message.message_id).as_str()
    }
}
