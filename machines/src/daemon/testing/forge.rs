//! Envelopes made by hand, with the keys of a member: what a hostile or a later daemon could send.

use super::{World, json};
use crate::machine::Label;
use messaging_proto::domain::Domain;
use messaging_proto::envelope::{
    End, HeaderParts, Inspected, Kind, To, open_envelope, seal_header, seal_presence,
};
use messaging_proto::json::{FromValue, Object, Value};
use messaging_proto::key::EncSecret;
use messaging_proto::realm::RealmView;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;

/// An envelope a machine makes by hand.
#[derive(Debug)]
pub(crate) struct Forged<'a> {
    pub(crate) kind: Kind,
    pub(crate) from_agent: Option<&'a str>,
    pub(crate) to_agent: Option<&'a str>,
    pub(crate) reply_to: Option<&'a str>,
    pub(crate) payload: &'a str,
    pub(crate) header: Vec<(&'static str, Value)>,
}

impl<'a> Forged<'a> {
    /// An envelope of this type to a device.
    pub(crate) const fn new(kind: Kind, payload: &'a str) -> Self {
        Self { kind, from_agent: None, to_agent: None, reply_to: None, payload, header: Vec::new() }
    }

    /// The same between two sessions.
    pub(crate) const fn between(mut self, from: &'a str, to: &'a str) -> Self {
        self.from_agent = Some(from);
        self.to_agent = Some(to);
        self
    }
}

impl World {
    /// An envelope as the machine `from` could make one for `to`, whatever its daemon would. `header` changes members
    /// of the header before it is signed.
    pub(crate) fn forge(&mut self, from: usize, to: usize, forged: &Forged<'_>) -> Value {
        let step = self.step();
        let member = |number: usize| {
            let machine = self.nodes[number].identity.machine();
            self.roster.member(&machine).unwrap().clone()
        };
        let (sender, recipient) = (member(from), member(to));
        let mut end = Object::new();
        end.set("person", Value::text(recipient.person.as_str()));
        end.set("device", Value::text(recipient.machine.to_string()));
        let mut start = Object::new();
        start.set("person", Value::text(sender.person.as_str()));
        start.set("device", Value::text(sender.machine.to_string()));
        for (object, agent) in [(&mut start, forged.from_agent), (&mut end, forged.to_agent)] {
            if let Some(agent) = agent {
                object.set("agent", Value::text(agent));
            }
        }
        let parts = HeaderParts {
            id: Ulid::new(Wall(self.wall), step.draw(Label::EnvelopeId)),
            kind: forged.kind,
            realm: self.roster.realm(),
            anchor: self.roster.anchor(),
            from: End::from_value(&start.into()).unwrap(),
            to: To::from_value(&end.into()).unwrap(),
            ts: Wall(self.wall),
            exp: Wall(self.wall + 604_800_000),
            reply_to: forged.reply_to.map(|id| Ulid::parse(id).unwrap()),
        };
        let Value::Object(mut header) = parts.to_value() else { panic!("no header") };
        for (name, value) in &forged.header {
            header.set(*name, value.clone());
        }
        let ephemeral = EncSecret::from_bytes(step.draw(Label::Ephemeral));
        let signer = self.nodes[from].identity.signing();
        let sealed = seal_header(
            signer,
            header.into(),
            &json(forged.payload),
            &recipient.enc,
            &ephemeral,
            step.draw(Label::Nonce),
        );
        sealed.unwrap().value
    }

    /// A presence as the machine `from` could say one, whatever its daemon would.
    pub(crate) fn forge_presence(&mut self, from: usize, payload: &str) -> Value {
        let step = self.step();
        let machine = self.nodes[from].identity.machine();
        let parts = HeaderParts {
            id: Ulid::new(Wall(self.wall), step.draw(Label::EnvelopeId)),
            kind: Kind::Presence,
            realm: self.roster.realm(),
            anchor: self.roster.anchor(),
            from: End {
                person: self.roster.member(&machine).unwrap().person.clone(),
                device: machine,
                agent: None,
            },
            to: To::Team,
            ts: Wall(self.wall),
            exp: Wall(self.wall + 604_800_000),
            reply_to: None,
        };
        seal_presence(self.nodes[from].identity.signing(), &parts, json(payload)).unwrap().value
    }

    /// Signs an envelope again, after it was changed.
    pub(crate) fn resign(&self, from: usize, envelope: Value) -> Value {
        let Value::Object(mut envelope) = envelope else { panic!("no envelope") };
        envelope.remove("sig");
        let unsigned = Value::Object(envelope.clone());
        let sig = self.nodes[from].identity.signing().sign_value(Domain::Envelope, &unsigned).unwrap();
        envelope.set("sig", Value::text(sig.to_string()));
        envelope.into()
    }

    /// The payload of an envelope for a machine.
    pub(crate) fn open(&self, number: usize, env: &Inspected) -> Value {
        let keys = self.nodes[number].identity.open_keys(Wall(self.wall));
        open_envelope(env, &keys).unwrap().raw().clone()
    }
}
