//! Chats: direct lines and channels (`messaging/1 §6.8`, `§8.2` "Chats").
//!
//! The rules are `proto::channel`; here is the transcript they read and change, and what clients make of it.
//!
//! * Kept: [`rooms`] with their read state, [`channels`], [`lines`], the numbers of [`changes`].
//! * In: [`receive`], called by the mail role once an envelope is verified, opened and within its budget.
//! * Out: [`write`] and [`author`] check, [`out`] seals and queues, [`delivery`] knows how far each copy came.
//! * Read: [`read`], [`search`], [`view`].
//!
//! Durable: every row the modules name. Volatile: searches under way, and the counts of [`pace`], which the mail role
//! holds because what arrives comes through it.

mod author;
pub(crate) mod changes;
pub(crate) mod channels;
pub(crate) mod delivery;
pub(crate) mod lines;
mod out;
pub(crate) mod pace;
pub mod params;
pub(crate) mod purge;
pub(crate) mod read;
mod receive;
pub(crate) mod rooms;
mod search;
pub(crate) mod texts;
mod view;
mod write;

pub(crate) use receive::arrived;
pub(crate) use view::conversations;
pub use write::PersonSend;
pub(crate) use write::agent_send;

use super::ctx::{Answer, Caller, Ctx, Note, Outcome, Role};
use super::mail::Mail;
use crate::store::StoreDown;
use messaging_proto::time::Mono;
use params::Call;
use search::Searches;

/// The role.
#[derive(Debug, Default)]
pub struct Chats {
    searches: Searches,
    /// When rows that are no longer wanted are looked at again: lines of channels that ended, and envelopes to
    /// machines that left.
    tidy: Option<Mono>,
}

impl Role for Chats {
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown> {
        match note {
            Note::Start | Note::RosterChanged { .. } => {
                receive::drop_lost(cx)?;
                self.tidy(cx)?;
            }
            Note::ChannelEnded(_) if purge::is_due(cx.txn)? => self.tidy = Some(cx.mono().plus(1)),
            Note::ConnClosed { conn, .. } => self.searches.closed(*conn),
            _ => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Mono> {
        [self.searches.deadline(), self.tidy].into_iter().flatten().min()
    }

    fn tick(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let now = cx.mono();
        if self.searches.deadline().is_some_and(|at| at <= now) {
            self.searches.tick(cx)?;
        }
        if self.tidy.is_some_and(|at| at <= now) {
            self.tidy(cx)?;
        }
        Ok(())
    }
}

impl Chats {
    /// Does a bounded piece of what is left to tidy.
    fn tidy(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        purge::step(cx)?;
        let more = delivery::settle_lost(cx)? || purge::is_due(cx.txn)?;
        self.tidy = more.then(|| cx.mono().plus(1));
        Ok(())
    }

    /// Serves a call.
    pub(crate) fn call(
        &mut self,
        mail: &mut Mail,
        cx: &mut Ctx<'_, '_>,
        from: &Caller,
        call: Call,
    ) -> Outcome<Answer> {
        match call {
            Call::List { limit } => read::conv_list(cx, limit),
            Call::MarkRead { room, up_to } => read::conv_mark_read(cx, &room, up_to),
            Call::Subscribe { since } => Ok(Answer::Now(changes::subscribe(cx, from.conn, since)?)),
            Call::Send(call) => write::person_send(mail, cx, &call),
            Call::Search { query, room, limit } => self.searches.call(cx, from, &query, room.as_ref(), limit),
            Call::Create { name, persons } => author::create(mail, cx, &name, &persons),
            Call::Invite { name, persons } => author::invite(mail, cx, &name, &persons),
            Call::Leave { name } => author::leave(mail, cx, &name),
            Call::Remove { name, persons } => author::remove(mail, cx, &name, &persons),
        }
    }
}

/// Files a direct line of a person, as if it had arrived from this machine.
#[cfg(any(test, feature = "fill"))]
pub(crate) fn fill(
    cx: &mut Ctx<'_, '_>,
    person: messaging_proto::name::PersonId,
    text: String,
) -> Result<(), StoreDown> {
    use crate::machine::Label;
    use messaging_proto::{address::RoomRef, channel::Line, ulid::Ulid};
    let Some(device) = cx.facts.me().map(|own| own.machine) else { return Ok(()) };
    let room = rooms::make(cx.txn, &rooms::With::Person(person.clone()))?;
    let id = Ulid::new(cx.now(), cx.step.draw(Label::MessageId));
    let at = RoomRef::Dm(person.clone());
    let line =
        Line { id, room: at, person, device, agent: None, text, thread: None, out: false, notice: false };
    lines::file(cx, lines::New { line, room, state: None, silent: false })?;
    Ok(())
}

#[cfg(test)]
mod tests;
