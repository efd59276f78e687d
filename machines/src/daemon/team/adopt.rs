//! Entering: from a roster that names this machine to files that say so; and pairing, which waits for it.

use super::calls::Pair;
use super::errand::{Errand, Kind, Stage, draw_keys, keep_keys};
use super::pending::Pending;
use super::{Team, invalid_state};
use crate::daemon::ctx::{Answer, Caller, Ctx, Note, Outcome, Refusal, obj};
use crate::daemon::io::{File, Level, SaveId};
use crate::daemon::ipc::RpcError;
use crate::daemon::schema::{self, META, META_MACHINE, META_ROTATED};
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::identity::Identity;
use messaging_proto::json::Value;
use messaging_proto::key::MachineId;
use messaging_proto::roster::Roster;
use messaging_proto::ticket::AdmitCard;

/// How soon a file that could not be written is tried again.
const FILE_AGAIN_MS: u64 = 10_000;

/// A reply that waits for `pairing.json`.
#[derive(Debug)]
pub(super) struct Waiting {
    save: SaveId,
    caller: Caller,
    reply: Value,
}

impl Team {
    /// `team.prepare`.
    pub(super) fn prepare(&mut self, cx: &mut Ctx<'_, '_>, caller: &Caller) -> Outcome<Answer> {
        Self::may_enter(cx)?;
        let (machine, enc) = match (&self.errand, Pending::load(cx.txn)?, cx.facts.keys.pairing()) {
            (None, None, _) => {
                let identity = draw_keys(cx);
                let names = (identity.machine(), identity.enc());
                let row = Pending::Prepared { machine: names.0 };
                let save = keep_keys(cx, &row, identity);
                self.saving.push(Waiting { save, caller: caller.clone(), reply: founding(&names) });
                return Ok(Answer::Later);
            }
            // §8.2 "Founding keys": the same keys while they are pending.
            (None, Some(Pending::Prepared { .. }), Some(keys)) => (keys.machine(), keys.enc()),
            _ => return Err(invalid_state("this machine is on its way into a team already")),
        };
        Ok(Answer::Now(founding(&(machine, enc))))
    }

    /// `team.pair`.
    pub(super) fn pair(&mut self, cx: &mut Ctx<'_, '_>, caller: &Caller, params: Pair) -> Outcome<Answer> {
        Self::may_enter(cx)?;
        let Pair { relay, team, person, label } = params;
        let pending = Pending::load(cx.txn)?;
        if let (Some(Pending::Pairing { relay: r, team: t, person: p, label: l, .. }), Some(keys)) =
            (&pending, cx.facts.keys.pairing())
            && (r, t, p, l) == (&relay, &team, &person, &label)
        {
            return Ok(Answer::Now(card(keys, person, label)?));
        }
        if self.errand.is_some() || pending.is_some() {
            return Err(invalid_state("this machine is on its way into a team already"));
        }
        let identity = draw_keys(cx);
        let reply = card(&identity, person.clone(), label.clone())?;
        let row = Pending::Pairing { machine: identity.machine(), relay, team, person, label };
        let save = keep_keys(cx, &row, identity);
        self.saving.push(Waiting { save, caller: caller.clone(), reply });
        Ok(Answer::Later)
    }

    /// `team.claim`.
    pub(super) fn claim(&mut self, cx: &mut Ctx<'_, '_>, caller: &Caller) -> Outcome<Answer> {
        Self::may_enter(cx)?;
        if let Some(errand) = &mut self.errand
            && matches!(errand.kind, Kind::Claim)
        {
            errand.callers.push(caller.clone());
            return Ok(Answer::Later);
        }
        let Some(Pending::Pairing { relay, .. }) = Pending::load(cx.txn)? else {
            return Err(invalid_state("no pairing waits"));
        };
        self.errand =
            Some(Errand::new(cx, Kind::Claim, Stage::Connecting, relay.clone(), vec![caller.clone()]));
        cx.note(Note::Errand(relay));
        Ok(Answer::Later)
    }

    /// `team.pairCancel`: deletes pairing or founding keys, and gives up on an outcome that is being settled.
    pub(super) fn pair_cancel(&mut self, cx: &mut Ctx<'_, '_>) -> Outcome<Answer> {
        let pending = Pending::load(cx.txn)?;
        match (&self.errand, &pending) {
            (Some(errand), _) if !errand.callers.is_empty() && !matches!(errand.kind, Kind::Claim) => {
                return Err(invalid_state("a call is under way"));
            }
            (_, Some(Pending::Adopting { .. })) => return Err(invalid_state("this machine is in a team")),
            _ => {}
        }
        if let Some(errand) = self.errand.take() {
            for caller in &errand.callers {
                cx.reply(caller, Err(RpcError::new(Code::InvalidState, "the pairing was cancelled")));
            }
            cx.note(Note::ErrandDone);
        }
        if pending.is_some() {
            self.drop_keys(cx);
        }
        Ok(Answer::Now(obj([("cancelled", Value::Bool(pending.is_some()))])))
    }

    /// The roster names this machine: it is stored, and the files follow.
    pub(super) fn enter(&mut self, cx: &mut Ctx<'_, '_>, roster: Roster) -> Result<(), StoreDown> {
        let row = Pending::load(cx.txn)?;
        let (Some(team), Some(row)) = (roster.team(), row) else { return Ok(()) };
        let row = match row {
            Pending::Creating { machine, relay, person, label, .. }
            | Pending::Joining { machine, relay, person, label, .. }
            | Pending::Pairing { machine, relay, person, label, .. } => {
                Pending::Adopting { machine, relay, team, person, label }
            }
            Pending::Prepared { .. } | Pending::Adopting { .. } => return Ok(()),
        };
        cx.facts.realm.adopt(cx.txn, roster);
        row.store(cx.txn);
        cx.note(Note::ErrandDone);
        self.save_identity(cx);
        Ok(())
    }

    fn save_identity(&mut self, cx: &mut Ctx<'_, '_>) {
        let file = cx.facts.keys.pairing().map(Identity::export);
        let save = cx.save(File::Identity(file));
        if let Some(errand) = &mut self.errand {
            errand.stage = Stage::SavingIdentity(save);
            errand.done_asking();
        }
    }

    /// The keys are in `identity.json`: the store may name this machine (`§8.9`).
    fn identity_saved(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let Some(Pending::Adopting { machine, relay, person, label, .. }) = Pending::load(cx.txn)? else {
            return Ok(());
        };
        let now = cx.now();
        schema::put(cx.txn, META, META_MACHINE, &machine);
        schema::put(cx.txn, META, META_ROTATED, &now);
        cx.facts.keys.adopt();
        cx.facts.config = cx.facts.config.joined(&relay, &person, &label);
        let text = cx.facts.config.to_text();
        let save = cx.save(File::Config(text));
        if let Some(errand) = &mut self.errand {
            errand.stage = Stage::SavingConfig(save);
        }
        Ok(())
    }

    fn config_saved(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let Some(Pending::Adopting { machine, team, person, label, .. }) = Pending::load(cx.txn)? else {
            return Ok(());
        };
        self.drop_keys(cx);
        let reply = obj([
            ("team", Value::text(team.to_string())),
            ("machine", Value::text(machine.to_string())),
            ("person", Value::text(person.as_str())),
            ("label", Value::text(label.as_str())),
        ]);
        if let Some(errand) = self.errand.take() {
            let claimed = matches!(errand.kind, Kind::Claim);
            for caller in &errand.callers {
                let mut reply = reply.clone();
                if let (true, Value::Object(reply)) = (claimed, &mut reply) {
                    reply.set("state", Value::text("done"));
                }
                cx.reply(caller, Ok(reply));
            }
        }
        cx.log(Level::Info, "team.entered", vec![("team", team.to_string())]);
        cx.note(Note::Adopted);
        Ok(())
    }

    /// Erases the pairing keys and what they were for.
    pub(super) fn drop_keys(&mut self, cx: &mut Ctx<'_, '_>) {
        Pending::clear(cx.txn);
        cx.facts.keys.set_pairing(None);
        self.erase_file(cx);
    }

    /// Deletes `pairing.json`, unless other keys wait in it by now.
    pub(super) fn erase_file(&mut self, cx: &mut Ctx<'_, '_>) {
        self.erase_at = None;
        if cx.facts.keys.pairing().is_none() {
            self.erasing = Some(cx.save(File::Pairing(None)));
        }
    }

    /// A file is on disk, or could not be written.
    pub(super) fn saved(&mut self, cx: &mut Ctx<'_, '_>, save: SaveId, ok: bool) -> Result<(), StoreDown> {
        if self.erasing == Some(save) {
            self.erasing = None;
            // Keys of no use must not stay on the disk.
            self.erase_at = (!ok).then(|| cx.mono().plus(FILE_AGAIN_MS));
            return Ok(());
        }
        if let Some(at) = self.saving.iter().position(|waiting| waiting.save == save) {
            let waiting = self.saving.remove(at);
            if ok {
                cx.reply(&waiting.caller, Ok(waiting.reply));
            } else {
                self.drop_keys(cx);
                let error = RpcError::new(Code::Internal, "pairing.json cannot be written");
                cx.reply(&waiting.caller, Err(error));
            }
            return Ok(());
        }
        let again = Stage::FileAgain(cx.mono().plus(FILE_AGAIN_MS));
        let Some(errand) = &mut self.errand else { return Ok(()) };
        match (&errand.stage, ok) {
            (Stage::SavingKeys(this), _) if *this == save => self.keys_saved(cx, ok),
            (Stage::SavingIdentity(this), true) if *this == save => self.identity_saved(cx),
            (Stage::SavingConfig(this), true) if *this == save => self.config_saved(cx),
            (Stage::SavingIdentity(this) | Stage::SavingConfig(this), false) if *this == save => {
                cx.log(Level::Error, "team.not_saved", vec![]);
                errand.stage = again;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A file could not be written a while ago: from the first that is missing.
    pub(super) fn save_again(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let Some(row) = Pending::load(cx.txn)? else { return Ok(()) };
        if holds(cx.facts.keys.current(), row.machine()) {
            self.identity_saved(cx)
        } else {
            self.save_identity(cx);
            Ok(())
        }
    }

    /// What an earlier run left: settled, gone on with, or dropped (see the module documentation).
    pub(super) fn start(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let row = Pending::load(cx.txn)?;
        let paired = row.as_ref().is_some_and(|row| holds(cx.facts.keys.pairing(), row.machine()));
        let current = row.as_ref().is_some_and(|row| holds(cx.facts.keys.current(), row.machine()));
        match row {
            Some(Pending::Prepared { .. } | Pending::Pairing { .. }) if paired => {}
            Some(Pending::Creating { relay, .. }) if paired => self.resume(cx, Kind::Create, relay),
            Some(Pending::Joining { relay, label, .. }) if paired => {
                self.resume(cx, Kind::Join { ticket: None, label }, relay);
            }
            Some(Pending::Adopting { relay, .. }) if current || paired => {
                let stage = Stage::FileAgain(cx.mono());
                self.errand = Some(Errand::new(cx, Kind::Claim, stage, relay, Vec::new()));
                return self.save_again(cx);
            }
            // Keys that never reached the disk: nothing was said with them.
            Some(_) => self.drop_keys(cx),
            None if cx.facts.keys.pairing().is_some() => self.drop_keys(cx),
            None => {}
        }
        // §8.9: a roster without a machine is a create or join that never stored its keys.
        let owner: Option<MachineId> = schema::get(cx.txn, META, META_MACHINE)?;
        if owner.is_none() && self.errand.is_none() && cx.facts.realm.roster().is_some() {
            cx.facts.realm.forget(cx.txn);
        }
        Ok(())
    }
}

fn holds(identity: Option<&Identity>, machine: &MachineId) -> bool {
    identity.is_some_and(|identity| identity.machine() == *machine)
}

fn founding((machine, enc): &(MachineId, messaging_proto::key::EncKey)) -> Value {
    obj([("machine", Value::text(machine.to_string())), ("enc", Value::text(enc.to_string()))])
}

fn card(
    identity: &Identity,
    person: messaging_proto::name::PersonName,
    label: messaging_proto::name::Label,
) -> Result<Value, Refusal> {
    let (machine, enc) = (identity.machine(), identity.enc());
    let text = AdmitCard { machine, enc, person, label }
        .encode()
        .map_err(|_| Refusal::code(Code::Internal, "the admit card cannot be made"))?;
    Ok(obj([
        ("card", Value::text(text)),
        ("machine", Value::text(machine.to_string())),
        ("enc", Value::text(enc.to_string())),
    ]))
}
