//! Teams (`messaging/1 §4`, `§8.2`): founding, inviting, joining, pairing, and changing who is a member.
//!
//! # What is durable when
//!
//! Keys are on disk before anything that names them is said. On the way to a team, one row ([`Pending`]) says
//! what `pairing.json` is for:
//!
//! 1. The row is committed, then `pairing.json` is written with the new keys. A crash before the file: the row
//!    has no keys, and is dropped at the next start. Nothing was said yet.
//! 2. The genesis or the redeem is sent, with keys that are on disk. A crash, or a lost connection: whether it
//!    was accepted is not known. At the next start (or connection) it is settled: a genesis is sent again, byte
//!    for byte, and a relay that has it says `roster_conflict`; for a redeem the new machine says `hello`, which
//!    is welcomed or refused with `not_member`. A refused one is dropped with its keys.
//! 3. Accepted: the roster is stored and the row becomes [`Pending::Adopting`] in one commit. Then
//!    `identity.json` is written, then `identity.machine` names it and `config.json` is written, then the row
//!    and `pairing.json` go. Each step is done again after a crash until the row is gone.
//!
//! Changes of an existing team are [`admin`]: nothing of theirs is durable but the entry itself.

mod admin;
mod adopt;
mod calls;
mod errand;
mod fetch;
mod found;
mod info;
mod join;
mod pending;

pub use calls::{Call, reads};
pub use pending::Pending;

use super::author::Job;
use super::ctx::{Answer, Caller, Ctx, Note, Outcome, Refusal, Role};
use super::io::SaveId;
use super::ipc::RpcError;
use crate::store::StoreDown;
use admin::Admin;
use adopt::Waiting;
use errand::Errand;
use messaging_proto::Code;
use messaging_proto::time::Mono;

/// The team role.
#[derive(Debug, Default)]
pub struct Team {
    /// What is under way towards a team.
    errand: Option<Errand>,
    /// Entries being written for callers.
    admin: Admin,
    /// Replies that wait for `pairing.json`.
    saving: Vec<Waiting>,
    /// The deletion of `pairing.json` that is under way.
    erasing: Option<SaveId>,
    /// When it is tried again.
    erase_at: Option<Mono>,
}

impl Team {
    /// Serves a call.
    ///
    /// # Errors
    /// The refusals of `contract ipc §5`.
    pub fn call(&mut self, cx: &mut Ctx<'_, '_>, caller: &Caller, call: Call) -> Outcome<Answer> {
        match call {
            Call::Prepare => self.prepare(cx, caller),
            Call::Create(params) => self.create(cx, caller, params),
            Call::Join(params) => self.join(cx, caller, params),
            Call::Pair(params) => self.pair(cx, caller, params),
            Call::Claim => self.claim(cx, caller),
            Call::PairCancel => self.pair_cancel(cx),
            Call::Info => info::info(cx),
            Call::Admin(change) => self.admin.call(cx, caller, change),
        }
    }

    /// What refuses every way into a team (`§8.2`, "Founding keys"; `§8.9`).
    fn may_enter(cx: &Ctx<'_, '_>) -> Result<(), RpcError> {
        let refuse = |text| Err(RpcError::new(Code::InvalidState, text));
        if cx.facts.keys.alarm().is_some() {
            return refuse("the keys of this machine are missing");
        }
        if cx.facts.has_identity() {
            return refuse("this machine is in a team");
        }
        if cx.facts.keys.file_taken() {
            return refuse("identity.json belongs to a team that the store does not hold");
        }
        Ok(())
    }
}

/// A refusal because of the state of things.
fn invalid_state(text: &'static str) -> Refusal {
    Refusal::code(Code::InvalidState, text)
}

impl Role for Team {
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown> {
        match note {
            Note::Start => self.start(cx)?,
            Note::Saved { save, ok } => self.saved(cx, *save, *ok)?,
            Note::ErrandOpen { relay, nonce } => self.opened(cx, relay, nonce)?,
            Note::ErrandFrame(frame) => self.frame(cx, frame)?,
            Note::ErrandClosed => self.closed(cx)?,
            Note::Written { job: Job::Team(job), result } => self.admin.written(cx, *job, *result),
            _ => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Mono> {
        self.errand.as_ref().and_then(Errand::deadline).into_iter().chain(self.erase_at).min()
    }

    fn tick(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        if self.erase_at.is_some_and(|at| at <= cx.mono()) {
            self.erase_file(cx);
        }
        self.tick_errand(cx)
    }
}
