//! Joining by an invite, and reading the roster that names the new machine.

use super::calls::Join;
use super::errand::{Errand, FRAMES, Kind, RETRIES, Stage, draw_keys, keep_keys};
use super::pending::Pending;
use super::{Team, invalid_state};
use crate::daemon::config::is_short;
use crate::daemon::ctx::{Answer, Caller, Ctx, Note, Outcome, Refusal, obj};
use crate::daemon::io::Level;
use crate::daemon::ipc::RpcError;
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, HelloClaim, Nonce, sign_hello};
use messaging_proto::identity::Identity;
use messaging_proto::json::Value;
use messaging_proto::ticket::{InviteTicket, TicketError, create_redeem};

impl Team {
    pub(super) fn join(&mut self, cx: &mut Ctx<'_, '_>, caller: &Caller, params: Join) -> Outcome<Answer> {
        let ticket = InviteTicket::decode(&params.ticket).map_err(|_| {
            RpcError::new(Code::InvalidRequest, "ticket is not an invite ticket").at("ticket")
        })?;
        if !is_short(&ticket.relay) {
            return Err(RpcError::new(Code::InvalidRequest, "the ticket's relay URL is too long")
                .at("ticket")
                .into());
        }
        Self::may_enter(cx)?;
        if self.errand.is_some() || Pending::load(cx.txn)?.is_some() {
            return Err(invalid_state("this machine is on its way into a team already"));
        }
        if ticket.expires <= cx.now() {
            return Err(Refusal::code(Code::InviteInvalid, "the invite is expired"));
        }
        let url = ticket.relay.clone();
        let kind = Kind::Join { ticket: Some(Box::new(ticket)), label: params.label };
        self.errand = Some(Errand::new(cx, kind, Stage::Connecting, url.clone(), vec![caller.clone()]));
        cx.note(Note::Errand(url));
        Ok(Answer::Later)
    }

    /// Says `hello` with the pairing keys: welcomed exactly when the roster names them.
    pub(super) fn greet(
        &mut self,
        cx: &mut Ctx<'_, '_>,
        relay: &str,
        nonce: &Nonce,
    ) -> Result<(), StoreDown> {
        let Some(errand) = &mut self.errand else { return Ok(()) };
        let team = match Pending::load(cx.txn)? {
            Some(Pending::Pairing { team, .. } | Pending::Joining { team, .. }) => team,
            _ => return Ok(()),
        };
        let claim = HelloClaim { relay, nonce, team: &team, ts: cx.now() };
        let hello = cx.facts.keys.pairing().and_then(|keys| sign_hello(keys.signing(), &claim).ok());
        if let Some(hello) = hello
            && errand.say(cx, &ClientOutbound::Hello(hello))
        {
            errand.stage = Stage::Greeting;
        }
        Ok(())
    }

    /// A page of the roster, read with the invite's proof.
    pub(super) fn joined_page(
        &mut self,
        cx: &mut Ctx<'_, '_>,
        entries: &[Value],
        more: bool,
    ) -> Result<(), StoreDown> {
        let Some(errand) = &mut self.errand else { return Ok(()) };
        let Kind::Join { ticket: Some(ticket), label } = &errand.kind else { return Ok(()) };
        if errand.fetch.take(entries, &ticket.team).is_err() {
            let text = "the relay serves another roster than the ticket's";
            return self.fail(cx, RpcError::new(Code::InviteInvalid, text));
        }
        // A page is progress: what was lost before it does not count.
        errand.losses = 0;
        if more && !entries.is_empty() {
            if errand.frames < FRAMES - 1 {
                errand.page(cx)
            } else {
                errand.reconnect(cx)
            }
            return Ok(());
        }
        if let Err(error) = errand.fetch.may_redeem(ticket, label, cx.now()) {
            return self.fail(cx, error);
        }
        if cx.facts.keys.pairing().is_some() {
            return self.redeem(cx);
        }
        // §4 "Invites", step 4: fresh keys, on disk before the redeem names them.
        let person = ticket.person.clone();
        let (relay, team, label) = (ticket.relay.clone(), ticket.team, label.clone());
        let identity = draw_keys(cx);
        let row = Pending::Joining { machine: identity.machine(), relay, team, person, label };
        let save = keep_keys(cx, &row, identity);
        errand.stage = Stage::SavingKeys(save);
        errand.answer_due = None;
        Ok(())
    }

    pub(super) fn redeem(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let Some(errand) = &mut self.errand else { return Ok(()) };
        if cx.facts.link.errand().is_none() || errand.proof.is_none() || errand.frames >= FRAMES {
            errand.reconnect(cx);
            return Ok(());
        }
        let entry = match (&errand.kind, cx.facts.keys.pairing()) {
            (Kind::Join { ticket: Some(ticket), label }, Some(keys)) => {
                let roster = errand.fetch.roster();
                create_redeem(ticket, roster, keys.signing(), &keys.enc(), label, cx.now())
                    .map_err(|error: TicketError| error.code())
                    .and_then(|entry| match roster.check_at(&entry) {
                        Ok(_) => Ok(entry),
                        Err(error) => Err(error.code()),
                    })
            }
            _ => Err(Code::Internal),
        };
        match entry {
            Ok(entry) => {
                errand.append(cx, entry);
                Ok(())
            }
            Err(code) => self.fail(cx, RpcError::new(code, "the invite does not admit this machine")),
        }
    }

    /// `hello` was refused: the roster at the relay does not name the new keys.
    pub(super) fn not_member(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let Some(errand) = &mut self.errand else { return Ok(()) };
        match &errand.kind {
            Kind::Claim => {
                self.waiting(cx);
                Ok(())
            }
            Kind::Join { ticket: Some(_), .. } if errand.tries < RETRIES => {
                // The redeem that was under way is not in the roster: again, with the same keys.
                errand.tries += 1;
                errand.published = false;
                errand.reconnect(cx);
                Ok(())
            }
            _ => self.fail(cx, RpcError::new(Code::InviteInvalid, "the redeem was not taken")),
        }
    }

    /// `team.claim`: not yet.
    pub(super) fn waiting(&mut self, cx: &mut Ctx<'_, '_>) {
        let Some(errand) = self.errand.take() else { return };
        for caller in &errand.callers {
            cx.reply(caller, Ok(obj([("state", Value::text("waiting"))])));
        }
        cx.note(Note::ErrandDone);
    }

    pub(super) fn synced_page(
        &mut self,
        cx: &mut Ctx<'_, '_>,
        entries: &[Value],
        more: bool,
    ) -> Result<(), StoreDown> {
        let Some(errand) = &mut self.errand else { return Ok(()) };
        let (machine, team, person, label) = match Pending::load(cx.txn)? {
            Some(
                Pending::Pairing { machine, team, person, label, .. }
                | Pending::Joining { machine, team, person, label, .. },
            ) => (machine, team, person, label),
            _ => return Ok(()),
        };
        if errand.fetch.take(entries, &team).is_err() {
            cx.log(Level::Warn, "team.roster_refused", vec![]);
            return self.unreachable(cx);
        }
        if more && !entries.is_empty() {
            errand.sync(cx);
            return Ok(());
        }
        let member = errand.fetch.roster().member(&machine);
        // §8.2 `team.claim`: until the roster names those keys, that person and that label.
        let enc = cx.facts.keys.pairing().map(Identity::enc);
        let named = member.is_some_and(|member| {
            (member.person.as_str(), &member.label, Some(member.enc)) == (person.as_str(), &label, enc)
        });
        if named {
            let roster = errand.fetch.take_roster();
            return self.enter(cx, roster);
        }
        match errand.kind {
            Kind::Claim => {
                self.waiting(cx);
                Ok(())
            }
            _ => self.fail(cx, RpcError::new(Code::InviteInvalid, "the roster names this machine otherwise")),
        }
    }
}
