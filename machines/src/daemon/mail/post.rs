//! Sealing an envelope and putting it on its way (`messaging/1 §5`, `§8.2`).

use super::outbox::{self, Queued};
use super::sent::{self, What};
use crate::daemon::ctx::{Ctx, Note};
use crate::machine::Label;
use crate::store::StoreDown;
use messaging_proto::envelope::{End, EnvelopeError, HeaderParts, Kind, To, seal_envelope};
use messaging_proto::json::Value;
use messaging_proto::key::{EncSecret, MachineId};
use messaging_proto::limits::TTL_MS;
use messaging_proto::name::SessionName;
use messaging_proto::realm::RealmView;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;

/// What an envelope is to say.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// Its type.
    pub(crate) kind: Kind,
    /// The session that caused it.
    pub(crate) from_agent: Option<SessionName>,
    /// Whom it is for.
    pub(crate) to: End,
    /// What it answers.
    pub(crate) reply_to: Option<Ulid>,
    /// What it carries.
    pub(crate) payload: Value,
}

/// A sealed envelope that is not stored yet.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    /// Its id.
    pub(crate) id: Ulid,
    /// The machine it is sealed to.
    pub(crate) device: MachineId,
    /// When it ends.
    pub(crate) exp: Wall,
    /// Whether it must arrive after what was queued before it for the same machine.
    ordered: bool,
    text: String,
}

/// Seals a draft to its device's key. Writes nothing.
///
/// # Errors
/// [`EnvelopeError::NotMember`] when this machine or the recipient is no current member; otherwise as sealing.
pub(crate) fn seal(cx: &Ctx<'_, '_>, draft: &Draft) -> Result<Ready, EnvelopeError> {
    let facts = &*cx.facts;
    let identity = facts.keys.current().ok_or(EnvelopeError::NotMember)?;
    let realm = facts.roster().ok_or(EnvelopeError::NotMember)?;
    let own = realm.device(&identity.machine()).ok_or(EnvelopeError::NotMember)?;
    let recipient = realm
        .device(&draft.to.device)
        .filter(|device| *device.person == draft.to.person)
        .ok_or(EnvelopeError::NotMember)?;
    let now = cx.now();
    let parts = HeaderParts {
        id: Ulid::new(now, cx.step.draw(Label::EnvelopeId)),
        kind: draft.kind,
        realm: realm.realm(),
        anchor: realm.anchor(),
        from: End { person: own.person.clone(), device: own.machine, agent: draft.from_agent.clone() },
        to: To::Device(draft.to.clone()),
        ts: now,
        exp: now.plus(TTL_MS),
        reply_to: draft.reply_to,
    };
    let ephemeral = EncSecret::from_bytes(cx.step.draw(Label::Ephemeral));
    let sealed = seal_envelope(
        identity.signing(),
        &parts,
        &draft.payload,
        &recipient.enc,
        &ephemeral,
        cx.step.draw(Label::Nonce),
    )?;
    Ok(Ready {
        id: parts.id,
        device: draft.to.device,
        exp: parts.exp,
        // §6.3: an artifact that came after the terminal status would be refused.
        ordered: matches!(draft.kind, Kind::TaskStatus | Kind::TaskArtifact),
        text: sealed.text,
    })
}

/// As [`seal`], for what must arrive in the order it was said.
///
/// # Errors
/// As [`seal`].
pub(crate) fn seal_in_order(cx: &Ctx<'_, '_>, draft: &Draft) -> Result<Ready, EnvelopeError> {
    seal(cx, draft).map(|ready| Ready { ordered: true, ..ready })
}

/// Stores a sealed envelope to be sent, with its delivery record when it gets one.
pub(crate) fn queue(cx: &mut Ctx<'_, '_>, ready: Ready, what: Option<What>) -> Result<(), StoreDown> {
    let now = cx.now();
    let local = cx.facts.keys.current().is_some_and(|identity| identity.machine() == ready.device);
    if let Some(what) = what {
        sent::accept(cx.txn, &ready.id, ready.device, ready.exp, what, now);
    }
    let row = Queued { id: ready.id, exp: ready.exp, at: now, ordered: ready.ordered, env: ready.text };
    outbox::add(cx.txn, &ready.device, &row, local)?;
    cx.note(Note::Outgoing);
    Ok(())
}

/// Stores news of a task to be sent.
pub(crate) fn queue_update(cx: &mut Ctx<'_, '_>, ready: Option<Ready>) -> Result<(), StoreDown> {
    match ready {
        Some(ready) => queue(cx, ready, Some(What::Task)),
        None => Ok(()),
    }
}
