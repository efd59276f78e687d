//! Mail and tasks between agents: the role that sends, receives and keeps them.
//!
//! * Out: [`send`] builds and stores, [`outbox`] carries to the relay, [`sent`] knows how far it came.
//! * In: [`inbound`] verifies, opens and applies the policy, [`inbox`] keeps, [`receipts`] proves.
//! * What is for a session of this machine goes the same way without the relay: it is sealed, stored, and delivered
//!   before the call that caused it is answered.
//!
//! Durable: every row the modules name. Volatile: what is in flight, budgets, the loop guard.

mod agents;
pub(crate) mod arrival;
pub(crate) mod budget;
pub(crate) mod calls;
pub(crate) mod idem;
pub(crate) mod inbound;
pub(crate) mod inbox;
mod loop_guard;
pub(crate) mod outbox;
pub mod params;
pub(crate) mod peer;
pub(crate) mod post;
pub(crate) mod receipts;
pub(crate) mod records;
pub(crate) mod send;
pub(crate) mod sent;
pub(crate) mod thread;

use super::chats::pace::Pace;
use super::ctx::{Ctx, Note, Role};
use super::due::{self, Kind};
use super::{chats, notices, sessions, tasks};
use crate::store::StoreDown;
use budget::Budgets;
use inbound::{Deferred, Verdict};
use loop_guard::LoopGuard;
use messaging_proto::Code;
use messaging_proto::envelope::{self, Inspected};
use messaging_proto::frame::ClientOutbound;
use messaging_proto::json::parse_wire;
use messaging_proto::limits::FRAME_BYTES;
use messaging_proto::payload::CodeText;
use messaging_proto::task::Stage;
use messaging_proto::time::Mono;
use messaging_proto::ulid::Ulid;
use outbox::Outbox;
use std::sync::Arc;

/// How long a deferred envelope for this machine itself waits, in milliseconds.
const LOCAL_RETRY_MS: u64 = 1_000;

/// The role.
#[derive(Debug, Default)]
pub struct Mail {
    outbox: Outbox,
    budgets: Budgets,
    deferred: Deferred,
    guard: LoopGuard,
    /// How fast chats go, out and in.
    pub(crate) pace: Pace,
    /// When the calendar is looked at again.
    sweep: Option<Mono>,
    /// When deferred envelopes for this machine itself are tried again.
    local: Option<Mono>,
}

impl Role for Mail {
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown> {
        match note {
            Note::Start => self.plan(cx)?,
            Note::LinkUp => {
                self.outbox.restart();
                self.outbox.pump(cx)?;
            }
            Note::LinkDown => self.deferred.clear(),
            // §8.2 `daemon.woke`: what came due while the host slept.
            Note::Woke => self.sweep(cx)?,
            Note::Deliver(env) => self.delivered(cx, env)?,
            Note::Relayed(id) => self.relayed(cx, id)?,
            Note::Nacked { id, code, retry_after_ms } => self.nacked(cx, id, *code, *retry_after_ms)?,
            Note::Outgoing => {
                self.settle(cx)?;
                self.plan(cx)?;
            }
            Note::RosterChanged { .. } => {
                if let Some(roster) = cx.facts.roster() {
                    let member = |machine: &_| roster.member(machine).is_some();
                    self.budgets.retain(member);
                    self.pace.retain(member, |person| roster.machines_of(person).next().is_some());
                }
                self.outbox.pump(cx)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Mono> {
        [self.sweep, self.local, self.outbox.deadline()].into_iter().flatten().min()
    }

    fn tick(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let now = cx.mono();
        if self.local.is_some_and(|at| at <= now) {
            self.settle(cx)?;
        }
        if self.sweep.is_some_and(|at| at <= now) {
            self.sweep(cx)?;
        }
        self.outbox.pump(cx)
    }
}

impl Mail {
    /// A delivery of the link. Presence is another role's.
    fn delivered(&mut self, cx: &mut Ctx<'_, '_>, env: &Arc<Inspected>) -> Result<(), StoreDown> {
        if env.envelope().is_ok_and(|envelope| envelope.header.kind == envelope::Kind::Presence) {
            return Ok(());
        }
        if inbound::deliver(self, cx, env)? == Verdict::Done
            && let (Some(from), Some(id)) = (env.loose().from_device, env.loose().id)
        {
            // Said once everything above is durable: an envelope is the relay's until then.
            cx.send(&ClientOutbound::RecvAck { from, id });
        }
        self.settle(cx)
    }

    /// The relay has an envelope: it is the relay's now. A resend may be answered twice.
    fn relayed(&mut self, cx: &mut Ctx<'_, '_>, id: &Ulid) -> Result<(), StoreDown> {
        if !self.outbox.relayed(cx, id)? {
            return Ok(());
        }
        sent::reach(cx, id, Stage::Relayed, None)?;
        self.outbox.pump(cx)
    }

    /// §11.3: a refusal is final, but for those that say "later".
    fn nacked(
        &mut self,
        cx: &mut Ctx<'_, '_>,
        id: &Ulid,
        code: Option<Code>,
        retry_after_ms: Option<u64>,
    ) -> Result<(), StoreDown> {
        if matches!(code, Some(Code::RateLimited | Code::Internal)) {
            return self.outbox.try_again(cx, id, retry_after_ms);
        }
        let Some((device, number)) = outbox::drop_envelope(cx.txn, id)? else { return Ok(()) };
        self.outbox.forget(&device, number);
        let code = CodeText::from(code.unwrap_or(Code::Internal));
        let moved = sent::reach(cx, id, Stage::Rejected, Some(code.clone()))?;
        if let Some(task) = moved.and_then(|moved| moved.asked) {
            tasks::delivery_rejected(cx, &task, &code)?;
        }
        self.outbox.pump(cx)
    }

    /// Delivers what is for this machine itself, with everything that follows from it, and sends the rest.
    pub(crate) fn settle(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let (mut after, mut later) = (0, false);
        loop {
            let rows = outbox::local_after(cx.txn, after)?;
            if rows.is_empty() {
                break;
            }
            for (number, row) in rows {
                after = number;
                // It was sealed here, so it reads; one that does not is no use to anybody.
                let Ok(value) = parse_wire(row.env.as_bytes(), FRAME_BYTES) else {
                    outbox::drop_local(cx.txn, number);
                    continue;
                };
                let env = Arc::new(Inspected::with_text(value, row.env.as_str()));
                if row.exp <= cx.now() || inbound::deliver(self, cx, &env)? == Verdict::Done {
                    outbox::drop_local(cx.txn, number);
                } else {
                    later = true;
                }
            }
        }
        self.local = later.then(|| cx.mono().plus(LOCAL_RETRY_MS));
        self.outbox.pump(cx)
    }

    /// Notes when the calendar is due.
    fn plan(&mut self, cx: &Ctx<'_, '_>) -> Result<(), StoreDown> {
        self.sweep = Some(due::deadline(due::next(cx.txn)?, cx.now(), cx.mono()));
        Ok(())
    }

    /// Does what is due, a bounded number of rows.
    fn sweep(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        for (kind, key) in due::take(cx.txn, cx.now())? {
            match kind {
                Kind::Envelope => {
                    if let Some(id) = id_of(&key) {
                        self.lifetime_over(cx, &id)?;
                    }
                }
                Kind::Seen => inbound::forget_seen(cx, &key),
                Kind::Idempotency => idem::forget(cx.txn, &key),
                Kind::Held => super::consent::holds::expired(cx, &key)?,
                Kind::Sent => {
                    if let Some(id) = id_of(&key) {
                        sent::forget(cx.txn, &id)?;
                    }
                }
                Kind::Inbox => inbox::retention_over(cx.txn, &key)?,
                Kind::TaskIdle => tasks::idle(cx, &key)?,
                Kind::Task => tasks::retention_over(cx, &key)?,
                Kind::Session => sessions::expire(cx, &key)?,
                Kind::Mailbox => inbox::orphaned(cx, &key)?,
                Kind::Line => chats::lines::retention_over(cx, &key)?,
                Kind::ChannelEnded => {
                    let now = cx.now();
                    chats::channels::forget_ended(cx.txn, &key, now)?;
                }
                Kind::Notice => notices::retention_over(cx, &key)?,
                Kind::Trust => notices::trust_ends(cx, &key)?,
            }
        }
        self.plan(cx)
    }

    /// An envelope's lifetime is over: it is not sent any more, and its sender learns so.
    fn lifetime_over(&mut self, cx: &mut Ctx<'_, '_>, id: &Ulid) -> Result<(), StoreDown> {
        if let Some((device, number)) = outbox::drop_envelope(cx.txn, id)? {
            self.outbox.forget(&device, number);
        }
        let moved = sent::lifetime_over(cx, id)?;
        if let Some(task) = moved.and_then(|moved| moved.asked) {
            tasks::delivery_expired(cx, &task)?;
        }
        Ok(())
    }
}

fn id_of(key: &[u8]) -> Option<Ulid> {
    super::rows::text_at(key, 0).and_then(|(text, _)| Ulid::parse(&text))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod retention_tests;
#[cfg(test)]
mod thread_tests;
