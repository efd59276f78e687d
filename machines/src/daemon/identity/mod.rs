//! This machine's keys over time (`messaging/1 §4`, "Encryption-key rotation"; `§8.9`).
//!
//! # What is durable when
//!
//! A rotation is in `identity.json` alone. The new key is saved as `pending` before its `member.rekey` is
//! written; it becomes the current one when the roster names it, and then the file is saved again with the old
//! key retained. A crash anywhere leaves a pending key, which the next connection settles: the roster names it
//! already, or the entry is written again. So does the connection that stands, when the relay did not answer on it
//! in time. Only a refusal undoes it.

mod keys;

pub use keys::{Alarm, Keys};

use super::author::{Draft, Job, Unwritten};
use super::ctx::{Answer, Caller, Ctx, Note, Outcome, Refusal, Role, obj};
use super::io::{File, Level, SaveId};
use super::ipc::{self, RpcError, params::only};
use super::schema::{self, META, META_MACHINE, META_ROTATED};
use crate::machine::Label;
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::hash::sha256;
use messaging_proto::identity::IdentityError;
use messaging_proto::json::{Fields, Invalid, Value};
use messaging_proto::key::{EncKey, MachineId};
use messaging_proto::time::{Mono, Wall};
use std::sync::Arc;

/// How often retired keys are erased and the schedule is looked at.
const HOUR_MS: u64 = 3_600_000;
/// How soon a connection that stands is used again to settle what the relay did not answer.
const UNSETTLED_MS: u64 = 60_000;
/// How soon `identity.json` is written again after it could not be.
const FILE_AGAIN_MS: u64 = 10_000;
/// A day.
const DAY_MS: u64 = 86_400_000;
/// Machines of one team rotate up to this much apart.
const SPREAD_MS: u64 = 21_600_000;

/// The calls this role serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `identity.rotateEnc`.
    RotateEnc,
}

/// Reads `identity.rotateEnc`.
///
/// # Errors
/// [`Invalid`] for any member.
pub fn read_rotate(params: &Fields<'_>) -> Result<ipc::methods::Call, Invalid> {
    only(params, &[])?;
    Ok(ipc::methods::Call::Identity(Call::RotateEnc))
}

/// Where the rotation under way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The pending key is being saved.
    Saving(SaveId),
    /// Its `member.rekey` is being written.
    Writing,
    /// It applied; the file with the retained key is being saved.
    Settling(SaveId),
}

#[derive(Debug)]
struct Rotation {
    stage: Stage,
    callers: Vec<Caller>,
}

/// The identity role.
#[derive(Debug, Default)]
pub struct Keeper {
    rotation: Option<Rotation>,
    check_at: Option<Mono>,
    /// The newest write of `identity.json`: the file holds these keys once it is done.
    newest: Option<SaveId>,
    /// When it is tried again.
    save_at: Option<Mono>,
}

impl Keeper {
    /// Serves a call.
    ///
    /// # Errors
    /// The refusals of `contract ipc §5`.
    pub fn call(&mut self, cx: &mut Ctx<'_, '_>, caller: &Caller, call: Call) -> Outcome<Answer> {
        let Call::RotateEnc = call;
        if cx.facts.me().is_none() {
            return Err(Refusal::code(Code::InvalidState, "this machine is not a member"));
        }
        if cx.facts.keys.alarm().is_some() {
            return Err(Refusal::code(Code::InvalidState, "an alarm about the keys stands"));
        }
        if let Some(rotation) = &mut self.rotation {
            rotation.callers.push(caller.clone());
            return Ok(Answer::Later);
        }
        if !cx.facts.link.up() {
            return Err(Refusal::code(Code::RelayUnavailable, "no relay connection"));
        }
        self.begin(cx, vec![caller.clone()])?;
        Ok(Answer::Later)
    }

    fn begin(&mut self, cx: &mut Ctx<'_, '_>, callers: Vec<Caller>) -> Result<(), RpcError> {
        let now = cx.now();
        let pending = cx.facts.keys.current().is_some_and(|identity| identity.pending().is_some());
        if !pending {
            cx.facts.keys.begin(cx.step.draw(Label::EncryptionKey), now).map_err(|error| match error {
                IdentityError::TooManyRetained => {
                    RpcError::new(Code::InvalidState, "as many earlier keys are retained as may be")
                }
                error => RpcError::new(error.code(), "the keys cannot be rotated now"),
            })?;
        }
        let save = self.save(cx);
        self.rotation = Some(Rotation { stage: Stage::Saving(save), callers });
        Ok(())
    }

    /// The pending key is on disk: publish it.
    fn publish(&mut self, cx: &mut Ctx<'_, '_>) {
        let Some(identity) = cx.facts.keys.current() else { return };
        let Some((enc, _)) = identity.pending() else { return };
        let draft = Arc::new(Draft::MemberRekey(identity.machine(), enc));
        if let Some(rotation) = &mut self.rotation {
            rotation.stage = Stage::Writing;
        }
        cx.note(Note::Write { job: Job::Rotation, draft });
    }

    /// The roster changed: the pending key may be the published one now.
    fn settle(&mut self, cx: &mut Ctx<'_, '_>) {
        let published = cx.facts.me().map(|me| me.enc);
        let pending = cx.facts.keys.current().and_then(|identity| identity.pending()).map(|(enc, _)| enc);
        if pending.is_some() && pending == published {
            self.promote(cx);
        }
    }

    /// The pending key was published: it is the current one from here on.
    fn promote(&mut self, cx: &mut Ctx<'_, '_>) {
        let now = cx.now();
        let Some(identity) = cx.facts.keys.current_mut() else { return };
        if identity.retain(now).is_err() {
            return;
        }
        schema::put(cx.txn, META, META_ROTATED, &now);
        let save = self.save(cx);
        let callers = self.rotation.take().map_or_else(Vec::new, |rotation| rotation.callers);
        self.rotation = Some(Rotation { stage: Stage::Settling(save), callers });
        cx.log(Level::Info, "identity.rotated", vec![]);
        cx.note(Note::KeyChanged);
        self.plan(cx);
    }

    /// Undoes a rotation that was refused, or whose key could not be saved.
    fn abandon(&mut self, cx: &mut Ctx<'_, '_>, error: &RpcError) {
        let undone = cx.facts.keys.current_mut().is_some_and(|identity| identity.abandon_rotation());
        if undone {
            self.save(cx);
        }
        self.fail(cx, error);
    }

    fn fail(&mut self, cx: &mut Ctx<'_, '_>, error: &RpcError) {
        cx.log(Level::Warn, "identity.not_rotated", vec![("code", error.code().to_string())]);
        for caller in self.rotation.take().map_or_else(Vec::new, |rotation| rotation.callers) {
            cx.reply(&caller, Err(error.clone()));
        }
    }

    fn saved(&mut self, cx: &mut Ctx<'_, '_>, save: SaveId, ok: bool) {
        if !ok && self.newest == Some(save) {
            // Keys in memory that the file does not hold, or keys in it that should be gone: until it is written.
            self.save_at = Some(cx.mono().plus(FILE_AGAIN_MS));
            cx.log(Level::Error, "identity.not_saved", vec![]);
        }
        match self.rotation.as_ref().map(|rotation| rotation.stage) {
            Some(Stage::Saving(this)) if this == save => {
                if ok {
                    self.publish(cx);
                } else {
                    self.abandon(cx, &RpcError::new(Code::Internal, "identity.json cannot be written"));
                }
            }
            Some(Stage::Settling(this)) if this == save => {
                // Also when it could not be written: the file still holds the key, as pending.
                let callers = self.rotation.take().map_or_else(Vec::new, |rotation| rotation.callers);
                let result = cx.facts.keys.current().and_then(|identity| {
                    let (_, until) = identity.retained().next()?;
                    let enc = Value::text(identity.enc().to_string());
                    Some(obj([("enc", enc), ("until", Value::int(until.0))]))
                });
                for caller in callers {
                    let none = RpcError::new(Code::Internal, "the earlier key is gone");
                    cx.reply(&caller, result.clone().ok_or(none));
                }
            }
            _ => {}
        }
    }

    fn written(&mut self, cx: &mut Ctx<'_, '_>, result: Result<u64, Unwritten>) {
        match result {
            Ok(_) => {
                // `settle` did this when the roster changed, unless somebody set another key since.
                if self.rotation.as_ref().is_some_and(|rotation| rotation.stage == Stage::Writing) {
                    self.promote(cx);
                }
            }
            // §4: only an append the relay refused is undone.
            Err(Unwritten::Refused(code)) => {
                self.abandon(cx, &RpcError::new(code, "the new key was refused"));
            }
            Err(Unwritten::NoLink | Unwritten::Unknown) => {
                // A computer that slept finds its patience over and the connection still there.
                self.check_at = Some(cx.mono().plus(UNSETTLED_MS));
                let text = "it is not known whether the new key was taken; that settles itself once the relay answers";
                self.fail(cx, &RpcError::new(Code::RelayUnavailable, text));
            }
        }
    }

    /// Connected and synced: settle what is pending, or rotate when it is time.
    fn connected(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        self.settle(cx);
        let pending = cx.facts.keys.current().is_some_and(|identity| identity.pending().is_some());
        // §8.9: with an alarm nothing is published, not even a pending key.
        let may = self.rotation.is_none() && cx.facts.keys.alarm().is_none() && cx.facts.me().is_some();
        if may
            && (pending || self.due(cx)?.is_some_and(|due| due <= cx.now()))
            && let Err(error) = self.begin(cx, Vec::new())
        {
            cx.log(Level::Info, "identity.not_rotated", vec![("code", error.code().to_string())]);
        }
        self.plan(cx);
        Ok(())
    }

    /// When the schedule wants the next rotation; nothing while it is off or must wait (`§4`).
    fn due(&self, cx: &mut Ctx<'_, '_>) -> Result<Option<Wall>, StoreDown> {
        let days = cx.facts.config.rotate_enc_days();
        let now = cx.now();
        let Some(identity) = cx.facts.keys.current() else { return Ok(None) };
        // Never while the roster holds a key this machine did not publish.
        let own = cx.facts.me().is_some_and(|me| me.enc == identity.enc());
        if days == 0 || !own || cx.facts.keys.alarm().is_some() {
            return Ok(None);
        }
        let spread = spread(&identity.machine());
        let rotated = match schema::get::<Wall>(cx.txn, META, META_ROTATED)? {
            Some(at) => at,
            None => {
                schema::put(cx.txn, META, META_ROTATED, &now);
                now
            }
        };
        Ok(Some(rotated.plus(days.saturating_mul(DAY_MS)).plus(spread)))
    }

    fn plan(&mut self, cx: &Ctx<'_, '_>) {
        self.check_at = cx.facts.keys.current().map(|_| cx.mono().plus(HOUR_MS));
    }

    fn judge(cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let owner: Option<MachineId> = schema::get(cx.txn, META, META_MACHINE)?;
        let alarm = cx.facts.keys.judge(cx.facts.realm.roster(), owner.as_ref());
        if alarm != cx.facts.keys.alarm() {
            if let Some(alarm) = alarm {
                cx.log(Level::Error, "identity.alarm", vec![("alarm", alarm.as_str().to_owned())]);
            }
            cx.facts.keys.set_alarm(alarm);
            cx.note(Note::AlarmChanged);
        }
        Ok(())
    }

    fn start(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let owner: Option<MachineId> = schema::get(cx.txn, META, META_MACHINE)?;
        let machine = cx.facts.keys.current().map(messaging_proto::identity::Identity::machine);
        if let (Some(owner), Some(machine)) = (owner, machine)
            && owner != machine
        {
            // Keys of another machine: publishing anything with them would be acting as somebody else.
            cx.log(Level::Error, "identity.foreign", vec![]);
            cx.facts.keys.disown();
        }
        Self::judge(cx)?;
        self.expire(cx);
        self.settle(cx);
        self.plan(cx);
        Ok(())
    }

    /// Erases the retired keys whose time is over.
    fn expire(&mut self, cx: &mut Ctx<'_, '_>) {
        let now = cx.now();
        if cx.facts.keys.current_mut().is_some_and(|identity| identity.expire(now)) {
            self.save(cx);
        }
    }

    fn save(&mut self, cx: &mut Ctx<'_, '_>) -> SaveId {
        let file = cx.facts.keys.current().map(messaging_proto::identity::Identity::export);
        let save = cx.save(File::Identity(file));
        self.newest = Some(save);
        self.save_at = None;
        save
    }
}

/// A machine's own offset in the schedule: below [`SPREAD_MS`], the same for ever.
fn spread(machine: &MachineId) -> u64 {
    let hash = sha256(machine.to_string().as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.0[..8]);
    u64::from_be_bytes(bytes) % SPREAD_MS
}

/// Whether the roster's key for this machine is one an admin set (`§8.9`, "Not an alarm").
#[must_use]
pub fn admin_rekeyed(cx: &Ctx<'_, '_>) -> Option<EncKey> {
    let identity = cx.facts.keys.current()?;
    let roster = cx.facts.roster()?;
    let machine = identity.machine();
    let published = roster.member(&machine)?.enc;
    let by_other = roster.rekey_by(&machine).is_some_and(|by| by != machine);
    (by_other && published != identity.enc()).then_some(published)
}

impl Role for Keeper {
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown> {
        match note {
            Note::Start => self.start(cx)?,
            Note::Adopted => {
                Self::judge(cx)?;
                self.plan(cx);
            }
            Note::RosterChanged { .. } => {
                self.settle(cx);
                Self::judge(cx)?;
            }
            Note::LinkUp => self.connected(cx)?,
            Note::Saved { save, ok } => self.saved(cx, *save, *ok),
            Note::Written { job: Job::Rotation, result } => self.written(cx, *result),
            _ => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Mono> {
        [self.check_at, self.save_at].into_iter().flatten().min()
    }

    fn tick(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        if self.save_at.is_some_and(|at| at <= cx.mono()) {
            self.save(cx);
        }
        if self.check_at.is_none_or(|at| at > cx.mono()) {
            return Ok(());
        }
        self.expire(cx);
        if cx.facts.link.up() {
            self.connected(cx)?;
        }
        self.plan(cx);
        Ok(())
    }
}
