//! Envelopes, good and bad. A body is any bytes: a relay never opens one.

use super::Client;
use messaging_proto::b64u;
use messaging_proto::domain::Domain;
use messaging_proto::json::{Object, Value, canonicalize};
use messaging_proto::realm::Head;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use std::sync::Arc;

/// An envelope that is not signed yet. Every member can be changed.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) object: Object,
}

impl Draft {
    /// A message between two machines of different persons, valid for `ttl` milliseconds.
    pub(crate) fn message(
        from: &Client,
        to: &Client,
        team: String,
        head: Head,
        ts: Wall,
        ttl: u64,
        number: u64,
    ) -> Self {
        let mut draft = Self { object: Object::new() };
        let end = |client: &Client| {
            let mut end = Object::new();
            end.set("person", Value::text(client.person.as_str()));
            end.set("device", Value::text(client.machine().to_string()));
            Value::from(end)
        };
        draft
            .common(from, team, head, ts, ttl, number)
            .set("type", Value::text("message"))
            .set("to", end(to))
            .set("class", Value::text(if from.person == to.person { "self" } else { "contact" }))
            .set("enc", Value::text("seal"))
            .set("epk", Value::text(b64u::encode(&[9; 32])))
            .set("nonce", Value::text(b64u::encode(&[8; 12])))
            .body(100);
        draft
    }

    /// A presence with this `seq`.
    pub(crate) fn presence(from: &Client, team: String, head: Head, ts: Wall, ttl: u64, seq: u64) -> Self {
        let mut draft = Self { object: Object::new() };
        let mut to = Object::new();
        to.set("team", Value::Bool(true));
        draft
            .common(from, team, head, ts, ttl, seq)
            .set("type", Value::text("presence"))
            .set("to", to.into())
            .set("enc", Value::text("none"))
            .set("body", presence_payload(from, seq));
        draft
    }

    fn common(
        &mut self,
        from: &Client,
        team: String,
        head: Head,
        ts: Wall,
        ttl: u64,
        number: u64,
    ) -> &mut Self {
        let mut end = Object::new();
        end.set("person", Value::text(from.person.as_str()));
        end.set("device", Value::text(from.machine().to_string()));
        let mut anchor = Object::new();
        anchor.set("kind", Value::text("roster"));
        anchor.set("seq", Value::int(head.seq));
        anchor.set("hash", Value::text(head.hash.to_string()));
        self.set("v", Value::text("messaging/1"))
            .id(number)
            .set("realm", Value::text(team))
            .set("anchor", anchor.into())
            .set("from", end.into())
            .set("ts", Value::int(ts.0))
            .set("exp", Value::int(ts.0 + ttl))
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) -> &mut Self {
        self.object.set(name, value);
        self
    }

    pub(crate) fn drop_member(&mut self, name: &str) -> &mut Self {
        self.object.remove(name);
        self
    }

    /// Sets a member of a member that is an object.
    pub(crate) fn set_in(&mut self, name: &str, member: &str, value: Value) -> &mut Self {
        let mut inner = self.object.get(name).and_then(Value::as_object).unwrap().clone();
        inner.set(member, value);
        self.set(name, inner.into())
    }

    pub(crate) fn id(&mut self, number: u64) -> &mut Self {
        let mut random = [0; 10];
        random[2..].copy_from_slice(&number.to_be_bytes());
        self.set("id", Value::text(Ulid::new(Wall(1_700_000_000_000), random).to_string()))
    }

    /// A body of so many bytes.
    pub(crate) fn body(&mut self, bytes: usize) -> &mut Self {
        self.set("body", Value::text(b64u::encode(&vec![7; bytes])))
    }

    /// The canonical text, signed.
    pub(crate) fn sign(&self, by: &Client) -> Arc<str> {
        let mut object = self.object.clone();
        let sig = by.key.sign_value(Domain::Envelope, &object.clone().into()).unwrap();
        object.set("sig", Value::text(sig.to_string()));
        Arc::from(canonicalize(&object.into()).unwrap())
    }

    pub(crate) fn ulid(&self) -> Ulid {
        Ulid::parse(self.object.get("id").and_then(Value::as_str).unwrap()).unwrap()
    }
}

/// A presence without sessions.
pub(crate) fn presence_payload(from: &Client, seq: u64) -> Value {
    let mut body = Object::new();
    body.set("seq", Value::int(seq));
    body.set("label", Value::text(from.label.as_str()));
    body.set("sessions", Value::Array(Vec::new()));
    body.set("features", Value::Array(Vec::new()));
    body.into()
}
