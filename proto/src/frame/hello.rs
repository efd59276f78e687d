//! How a machine proves itself to a relay (`messaging/1 §7`, "Connecting").

use super::{Nonce, PROTO};
use crate::domain::Domain;
use crate::hash::RealmId;
use crate::json::{Invalid, Object, Value};
use crate::key::{MachineId, Sig, SigningKey, verify_value};
use crate::time::Wall;
use serde::Serialize;

/// The `hello` of a machine, whose `proto` is this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hello {
    /// The team.
    pub team: RealmId,
    /// The machine.
    pub machine: MachineId,
    /// When it was signed.
    pub ts: Wall,
    /// The machine's signature over what [`HelloClaim`] says.
    pub sig: Sig,
}

/// What a `hello` signs: itself, and the challenge of this connection. A relay that passes it on to another
/// relay gains nothing, since the other's id and nonce differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelloClaim<'a> {
    /// The relay id of the challenge.
    pub relay: &'a str,
    /// The nonce of the challenge.
    pub nonce: &'a Nonce,
    /// The team.
    pub team: &'a RealmId,
    /// When it is signed.
    pub ts: Wall,
}

impl HelloClaim<'_> {
    /// The value that `machine` signs.
    #[must_use]
    pub fn value(&self, machine: &MachineId) -> Value {
        let mut object = Object::new();
        object.push("proto".to_owned(), Value::text(PROTO));
        object.push("relay".to_owned(), Value::text(self.relay));
        object.push("team".to_owned(), Value::text(self.team.to_string()));
        object.push("machine".to_owned(), Value::text(machine.to_string()));
        object.push("nonce".to_owned(), Value::text(self.nonce.to_string()));
        object.push("ts".to_owned(), Value::int(self.ts.0));
        object.into()
    }
}

/// The `hello` of the key's machine.
///
/// # Errors
/// [`Invalid`] when `ts` is past 2^53 − 1.
pub fn sign_hello(key: &SigningKey, claim: &HelloClaim<'_>) -> Result<Hello, Invalid> {
    let machine = key.machine();
    let sig = key.sign_value(Domain::RelayAuth, &claim.value(&machine))?;
    Ok(Hello { team: *claim.team, machine, ts: claim.ts, sig })
}

/// Whether the machine signed this `hello` for this challenge.
#[must_use]
pub fn verify_hello(hello: &Hello, relay: &str, nonce: &Nonce) -> bool {
    let claim = HelloClaim { relay, nonce, team: &hello.team, ts: hello.ts };
    verify_value(&hello.machine, &hello.sig, Domain::RelayAuth, &claim.value(&hello.machine))
}
