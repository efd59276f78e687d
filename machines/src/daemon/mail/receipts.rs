//! Proofs of how far an envelope came (`messaging/1 §6.4`): said to its sender, and heard about what was sent.

use super::outbox;
use super::post::{self, Draft};
use super::sent;
use crate::daemon::ctx::Ctx;
use crate::daemon::tasks;
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::envelope::{End, Kind};
use messaging_proto::key::MachineId;
use messaging_proto::name::PersonId;
use messaging_proto::payload::{self, Receipt};
use messaging_proto::task::Stage;
use messaging_proto::ulid::Ulid;

/// What became of a received envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Stored.
    Delivered,
    /// Kept for its person.
    Held,
    /// A client was handed it.
    HandedToAgent,
    /// It was read.
    Read,
    /// Refused.
    Rejected(Code),
}

/// The most envelopes that may wait for a machine and a receipt still be said to it: both proofs of every item of the
/// largest quota by default. A member that sends and takes nothing back would fill this store with its answers.
const WAITING_MOST: u64 = 10_000;

/// Says a receipt for `envelope` to the machine that sent it, if that is still a member. It is stored with whatever
/// it is the proof of, in one transaction.
pub(crate) fn say(
    cx: &mut Ctx<'_, '_>,
    person: &PersonId,
    device: MachineId,
    envelope: &Ulid,
    fate: Fate,
) -> Result<(), StoreDown> {
    if outbox::waiting_for(cx.txn, &device)? >= WAITING_MOST {
        return Ok(());
    }
    let (stage, code) = match fate {
        Fate::Delivered => (payload::Stage::Delivered, None),
        Fate::Held => (payload::Stage::Held, None),
        Fate::HandedToAgent => (payload::Stage::HandedToAgent, None),
        Fate::Read => (payload::Stage::Read, None),
        Fate::Rejected(code) => (payload::Stage::Rejected, Some(code.into())),
    };
    let receipt = Receipt { reference: *envelope, stage, code, at: cx.now() };
    let draft = Draft {
        kind: Kind::Receipt,
        from_agent: None,
        to: End { person: person.clone(), device, agent: None },
        reply_to: None,
        payload: receipt.to_value(),
    };
    match post::seal(cx, &draft) {
        Ok(ready) => post::queue(cx, ready, None),
        // Whoever left the team hears nothing.
        Err(_) => Ok(()),
    }
}

/// Applies a receipt whose sender is the machine `of` was sent to.
pub(crate) fn heard(cx: &mut Ctx<'_, '_>, receipt: &Receipt) -> Result<(), StoreDown> {
    let stage = match receipt.stage {
        payload::Stage::Delivered => Stage::Delivered,
        payload::Stage::Held => Stage::Held,
        payload::Stage::HandedToAgent => Stage::HandedToAgent,
        payload::Stage::Read => Stage::Read,
        payload::Stage::Rejected => Stage::Rejected,
    };
    let moved = sent::reach(cx, &receipt.reference, stage, receipt.code.clone())?;
    if let (Some(task), Some(code)) = (moved.and_then(|moved| moved.asked), &receipt.code) {
        tasks::delivery_rejected(cx, &task, code)?;
    }
    Ok(())
}
