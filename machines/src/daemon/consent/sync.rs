//! Grants between a person's own devices, and grants whose signer is gone (`messaging/1 §6.9`, "Sync", "Signers").

use super::rows;
use crate::daemon::ctx::{Ctx, obj};
use crate::daemon::io::Level;
use crate::daemon::mail::post::{self, Draft};
use crate::daemon::mail::sent::What;
use crate::daemon::text::canonical;
use crate::machine::Label;
use crate::store::{StoreDown, Txn};
use messaging_proto::a2a::Role;
use messaging_proto::consent::sync::{Holding, SYNC_GRANTS, Taken, grants_of, take};
use messaging_proto::consent::{ConsentGrant, Subject, resign_grant};
use messaging_proto::envelope::{End, Kind};
use messaging_proto::hash::RealmId;
use messaging_proto::json::Value;
use messaging_proto::key::MachineId;
use messaging_proto::limits::PLAINTEXT_BYTES;
use messaging_proto::name::PersonId;
use messaging_proto::payload::{Conv, SyncWhat};
use messaging_proto::realm::RealmView;
use messaging_proto::ulid::Ulid;
use std::collections::BTreeSet;

/// Room for what is around the grants of a sync message, in bytes.
const AROUND: usize = 1_024;

/// What this device holds, for judging a grant.
struct Held<'a, 't> {
    txn: &'a Txn<'t>,
    realm: RealmId,
    person: PersonId,
    devices: BTreeSet<MachineId>,
}

impl Holding for Held<'_, '_> {
    type Down = StoreDown;

    fn realm(&self) -> &RealmId {
        &self.realm
    }

    fn person(&self) -> &PersonId {
        &self.person
    }

    fn is_current(&self, device: &MachineId) -> bool {
        self.devices.contains(device)
    }

    fn held(&self, subject: &Subject) -> Result<Option<ConsentGrant>, StoreDown> {
        rows::get(self.txn, subject)
    }

    fn count(&self) -> Result<usize, StoreDown> {
        rows::count(self.txn)
    }
}

/// A sync message of another of this person's devices: each grant is judged in the order of the list, and nothing
/// is answered but its envelope's receipt.
pub(crate) fn arrived(cx: &mut Ctx<'_, '_>, message: Option<&Value>) -> Result<(), StoreDown> {
    let Some(own) = cx.facts.me() else { return Ok(()) };
    let person = own.person.clone();
    let Some(roster) = cx.facts.roster() else { return Ok(()) };
    let realm = roster.realm();
    let devices: BTreeSet<_> = roster.machines_of(&person).map(|member| member.machine).collect();
    let grants = message.and_then(|message| grants_of(message, false).ok()).unwrap_or_default();
    for raw in grants {
        let held = Held { txn: cx.txn, realm, person: person.clone(), devices: devices.clone() };
        match take(&held, raw)? {
            Taken::Store(grant) => rows::put(cx.txn, &grant)?,
            Taken::Keep => {}
            Taken::Skip(code) => cx.log(Level::Warn, "consent.skipped", vec![("code", code.to_string())]),
        }
    }
    Ok(())
}

/// Sends grants to each of this person's other devices.
pub(super) fn send(cx: &mut Ctx<'_, '_>, grants: &[ConsentGrant]) -> Result<(), StoreDown> {
    for device in other_devices(cx) {
        send_to(cx, device, grants, SyncWhat::Grant)?;
    }
    Ok(())
}

/// Sends everything held to each own device that never got it.
pub(super) fn snapshots(cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
    for device in other_devices(cx) {
        if rows::is_synced(cx.txn, &device)? {
            continue;
        }
        let grants = rows::all(cx.txn)?;
        send_to(cx, device, &grants, SyncWhat::Snapshot)?;
        rows::mark_synced(cx.txn, &device);
    }
    Ok(())
}

/// §6.9 "Signers": each grant whose signer is no longer one of this person's devices is signed again, with what may
/// not lapse; the rest waits for the person.
pub(super) fn resign(cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
    // Only a current device of the person may speak for it.
    if cx.facts.me().is_none() || cx.facts.keys.current().is_none() {
        return Ok(());
    }
    let now = cx.now();
    let mut signed = Vec::new();
    for grant in rows::all(cx.txn)? {
        if super::is_current(cx, &grant.by) {
            continue;
        }
        let Some(identity) = cx.facts.keys.current() else { break };
        match resign_grant(&grant, identity.signing(), now, false) {
            Ok(resigned) => {
                match &resigned.grant {
                    Some(kept) => {
                        rows::put(cx.txn, kept)?;
                        signed.push(kept.clone());
                    }
                    None => rows::remove(cx.txn, &grant.subject)?,
                }
                if let Some(review) = &resigned.lapsed {
                    rows::put_review(cx.txn, review);
                }
            }
            Err(error) => cx.log(Level::Warn, "consent.unsigned", vec![("code", error.code().to_string())]),
        }
    }
    if signed.is_empty() { Ok(()) } else { send(cx, &signed) }
}

fn other_devices(cx: &Ctx<'_, '_>) -> Vec<MachineId> {
    let (Some(own), Some(roster)) = (cx.facts.me(), cx.facts.roster()) else { return Vec::new() };
    let machines = roster.machines_of(&own.person);
    machines.map(|member| member.machine).filter(|machine| *machine != own.machine).collect()
}

/// Sends grants to one device, in as many envelopes as they need.
fn send_to(
    cx: &mut Ctx<'_, '_>,
    device: MachineId,
    grants: &[ConsentGrant],
    what: SyncWhat,
) -> Result<(), StoreDown> {
    let Some(person) = cx.facts.me().map(|own| own.person.clone()) else { return Ok(()) };
    let mut batches: Vec<(usize, Vec<Value>)> = Vec::new();
    for grant in grants {
        let bytes = canonical(grant.raw()).len() + 1;
        match batches.last_mut() {
            Some((held, batch)) if batch.len() < SYNC_GRANTS && *held + bytes + AROUND <= PLAINTEXT_BYTES => {
                *held += bytes;
                batch.push(grant.raw().clone());
            }
            _ => batches.push((bytes, vec![grant.raw().clone()])),
        }
    }
    for (_, batch) in batches {
        let part = obj([("data", obj([("grants", Value::Array(batch))]))]);
        let message = obj([
            ("messageId", Value::text(Ulid::new(cx.now(), cx.step.draw(Label::MessageId)).as_str())),
            ("role", Value::text(Role::User.as_str())),
            ("parts", Value::Array(vec![part])),
        ]);
        let draft = Draft {
            kind: Kind::Message,
            from_agent: None,
            to: End { person: person.clone(), device, agent: None },
            reply_to: None,
            payload: obj([
                ("kind", Value::text("message")),
                ("message", message),
                ("conv", Conv::Sync(what).to_value()),
            ]),
        };
        match post::seal(cx, &draft) {
            Ok(ready) => post::queue(cx, ready, Some(What::Task))?,
            Err(error) => cx.log(Level::Warn, "consent.unsent", vec![("code", error.code().to_string())]),
        }
    }
    Ok(())
}
