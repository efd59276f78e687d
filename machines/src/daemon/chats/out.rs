//! Sealing the copies of a line or a change, and putting them on their way (`messaging/1 §6.8`, "Wire").

use super::delivery::Source;
use crate::daemon::ctx::{Ctx, Outcome, Refusal, obj};
use crate::daemon::mail::post::{self, Draft, Ready};
use crate::daemon::mail::sent::What;
use crate::daemon::mail::{Mail, peer::set};
use messaging_proto::Code;
use messaging_proto::a2a::Role;
use messaging_proto::envelope::{End, Kind};
use messaging_proto::json::{Object, Value};
use messaging_proto::key::MachineId;
use messaging_proto::name::{PersonId, SessionName};
use messaging_proto::payload::{ChannelConv, Conv};
use messaging_proto::ulid::Ulid;

/// One envelope to make.
pub(super) struct To {
    /// Whose machine it goes to.
    pub(super) person: PersonId,
    /// The machine.
    pub(super) machine: MachineId,
    /// What it says of a channel.
    pub(super) conv: Option<ChannelConv>,
}

/// What the envelopes have in common.
pub(super) struct Said {
    /// The `messageId`.
    pub(super) id: Ulid,
    /// The first line of its thread.
    pub(super) thread: Option<Ulid>,
    /// The session that says it.
    pub(super) agent: Option<SessionName>,
    /// The text.
    pub(super) text: String,
    /// The channel it changes.
    pub(super) change: Option<Ulid>,
}

impl Said {
    fn message(&self) -> Value {
        let mut message = Object::new();
        message.set("messageId", Value::text(self.id.as_str()));
        set(&mut message, "contextId", self.thread.map(|thread| Value::text(thread.as_str())));
        message.set("role", Value::text(Role::User.as_str()));
        message.set("parts", Value::Array(vec![obj([("text", Value::text(self.text.as_str()))])]));
        message.into()
    }
}

/// Sealed envelopes with the person each goes to, in the order of the persons.
pub(super) struct Sealed(Vec<(PersonId, Ready)>);

/// Seals every copy. Writes nothing.
///
/// # Errors
/// `no_identity` for a machine out of its team, `too_large`.
pub(super) fn seal(cx: &Ctx<'_, '_>, said: &Said, to: Vec<To>) -> Outcome<Sealed> {
    let message = said.message();
    let mut sealed = Vec::new();
    for To { person, machine, conv } in to {
        let mut payload = Object::new();
        payload.set("kind", Value::text("message"));
        payload.set("message", message.clone());
        set(&mut payload, "conv", conv.map(|conv| Conv::Channel(conv).to_value()));
        let draft = Draft {
            kind: Kind::Message,
            from_agent: said.agent.clone(),
            to: End { person: person.clone(), device: machine, agent: None },
            reply_to: None,
            payload: payload.into(),
        };
        let ready = post::seal_in_order(cx, &draft).map_err(|error| match error.code() {
            Code::TooLarge => Refusal::code(Code::TooLarge, "the sealed line is over its limit"),
            Code::NotMember => Refusal::code(Code::NoIdentity, "this machine is in no team"),
            code => Refusal::code(code, "the line breaks a rule of its shape"),
        })?;
        sealed.push((person, ready));
    }
    Ok(Sealed(sealed))
}

/// Stores the sealed copies to be sent, with a record of each, and counts them.
pub(super) fn queue(
    mail: &mut Mail,
    cx: &mut Ctx<'_, '_>,
    said: &Said,
    own: &PersonId,
    sealed: Sealed,
) -> Outcome<()> {
    let source = Source { line: said.id, change: said.change, own };
    let mono = cx.mono();
    let mut places: Vec<PersonId> = Vec::new();
    for (person, ready) in sealed.0 {
        let place = places.iter().position(|known| *known == person).unwrap_or_else(|| {
            places.push(person.clone());
            places.len() - 1
        });
        mail.pace.sent([&ready.device], mono);
        let of = source.open(cx.txn, place as u64, &person, &ready.device, &ready.id);
        post::queue(cx, ready, Some(What::Chat(of)))?;
    }
    Ok(())
}
