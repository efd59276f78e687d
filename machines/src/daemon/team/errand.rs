//! The way into a team, step by step, over the errand connection.

use super::calls::{Create, Join};
use super::fetch::Fetch;
use super::pending::Pending;
use super::{Team, invalid_state};
use crate::daemon::ctx::{Answer, Caller, Ctx, Note, Outcome, Refusal, obj};
use crate::daemon::io::{Effect, File, Level, SaveId};
use crate::daemon::ipc::RpcError;
use crate::machine::Label as Draw;
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, HelloClaim, Nonce, RelayInbound, Req, sign_hello};
use messaging_proto::hash::{Hash, hash_value};
use messaging_proto::identity::Identity;
use messaging_proto::json::{Value, canonicalize, parse_wire};
use messaging_proto::key::Sig;
use messaging_proto::limits::ROSTER_ENTRY_BYTES;
use messaging_proto::name::Label;
use messaging_proto::relay_url::RelayUrl;
use messaging_proto::roster::{ApplyOptions, Member, Role, genesis};
use messaging_proto::ticket::{InviteTicket, JoinClaim, TicketError, create_redeem, join_proof};
use messaging_proto::time::Mono;
use std::sync::Arc;

/// How long a caller waits, the relay's silences included.
const PATIENCE_MS: u64 = 60_000;
/// How long the relay may take to answer a frame.
const ANSWER_MS: u64 = 10_000;
/// How often an entry that lost a race is signed anew (`contract ipc §5`).
const RETRIES: u32 = 5;
/// How often a connection may be lost before a caller is told.
const LOSSES: u32 = 3;
/// Frames said on one connection before its `hello`; the relay takes 8 (`contract wire-core §7.3`).
const FRAMES: u32 = 7;

/// Which way.
#[derive(Debug)]
pub(super) enum Kind {
    /// Founding: the genesis is in the row.
    Create,
    /// Joining. Without the ticket only the outcome of an earlier redeem is settled.
    Join { ticket: Option<Box<InviteTicket>>, label: Label },
    /// Looking whether an admin added the pairing keys.
    Claim,
}

/// Where on the way.
#[derive(Debug)]
pub(super) enum Stage {
    /// `pairing.json` is being written.
    SavingKeys(SaveId),
    /// Waiting for a challenged connection.
    Connecting,
    /// The genesis or the redeem is on its way.
    Appending { req: Req, entry: Box<Value>, hash: Hash },
    /// Reading the roster with the invite's proof.
    Paging { req: Req },
    /// `hello` with the new keys is out.
    Greeting,
    /// Welcomed: reading the roster.
    Syncing { req: Req },
    /// `identity.json` is being written.
    SavingIdentity(SaveId),
    /// `config.json` is being written.
    SavingConfig(SaveId),
    /// A file could not be written; again at this time.
    FileAgain(Mono),
}

/// One way into a team.
#[derive(Debug)]
pub(super) struct Errand {
    pub(super) kind: Kind,
    pub(super) stage: Stage,
    pub(super) callers: Vec<Caller>,
    pub(super) fetch: Fetch,
    url: RelayUrl,
    /// The invite's proof for this connection.
    proof: Option<Sig>,
    /// Frames said on this connection.
    frames: u32,
    tries: u32,
    losses: u32,
    requests: u64,
    /// An entry with the new keys was sent, and whether it was accepted is not known.
    pub(super) published: bool,
    give_up: Mono,
    answer_due: Option<Mono>,
}

impl Errand {
    pub(super) fn new(
        cx: &Ctx<'_, '_>,
        kind: Kind,
        stage: Stage,
        url: RelayUrl,
        callers: Vec<Caller>,
    ) -> Self {
        Self {
            kind,
            stage,
            callers,
            fetch: Fetch::default(),
            url,
            proof: None,
            frames: 0,
            tries: 0,
            losses: 0,
            requests: 0,
            published: false,
            give_up: cx.mono().plus(PATIENCE_MS),
            answer_due: None,
        }
    }

    pub(super) fn deadline(&self) -> Option<Mono> {
        let give_up = (!self.callers.is_empty()).then_some(self.give_up);
        let again = match self.stage {
            Stage::FileAgain(at) => Some(at),
            _ => None,
        };
        [give_up, self.answer_due, again].into_iter().flatten().min()
    }

    fn request(&mut self) -> Req {
        self.requests += 1;
        Req::of(self.requests)
    }

    fn say(&mut self, cx: &mut Ctx<'_, '_>, frame: &ClientOutbound) -> bool {
        let Some(link) = cx.facts.link.errand() else { return false };
        cx.effect(Effect::LinkSend { link, text: frame.to_text() });
        self.frames += 1;
        self.answer_due = Some(cx.mono().plus(ANSWER_MS));
        true
    }

    fn append(&mut self, cx: &mut Ctx<'_, '_>, entry: Value) {
        let (Ok(text), Ok(hash)) = (canonicalize(&entry), hash_value(&entry)) else { return };
        let req = self.request();
        if self.say(cx, &ClientOutbound::RosterAppend { req: req.clone(), entry: text.into() }) {
            self.published = true;
            self.stage = Stage::Appending { req, entry: Box::new(entry), hash };
        }
    }

    fn page(&mut self, cx: &mut Ctx<'_, '_>) {
        let (Kind::Join { ticket: Some(ticket), .. }, Some(proof)) = (&self.kind, self.proof) else { return };
        let (team, invite_id) = (ticket.team, ticket.invite_id);
        let req = self.request();
        let after = self.fetch.after();
        if self.say(cx, &ClientOutbound::Join { req: req.clone(), team, invite_id, proof, after }) {
            self.stage = Stage::Paging { req };
        }
    }

    fn sync(&mut self, cx: &mut Ctx<'_, '_>) {
        let req = self.request();
        let after = self.fetch.after();
        if self.say(cx, &ClientOutbound::RosterSync { req: req.clone(), after }) {
            self.stage = Stage::Syncing { req };
        }
    }

    /// Nothing more is asked of the relay.
    pub(super) const fn done_asking(&mut self) {
        self.answer_due = None;
    }

    /// Goes on with a fresh connection, made at once.
    pub(super) fn reconnect(&mut self, cx: &mut Ctx<'_, '_>) {
        self.stage = Stage::Connecting;
        self.answer_due = None;
        cx.note(Note::ErrandAgain);
    }
}

impl Team {
    pub(super) fn create(
        &mut self,
        cx: &mut Ctx<'_, '_>,
        caller: &Caller,
        params: Create,
    ) -> Outcome<Answer> {
        Self::may_enter(cx)?;
        let Create { relay, name, person, label } = params;
        let pending = Pending::load(cx.txn)?;
        if let (Some(errand), Some(Pending::Creating { relay: r, name: n, person: p, label: l, .. })) =
            (&mut self.errand, &pending)
            && (r, n, p, l) == (&relay, &name, &person, &label)
        {
            // The same team as is being founded: its outcome is this call's, too.
            errand.callers.push(caller.clone());
            errand.give_up = cx.mono().plus(PATIENCE_MS);
            return Ok(Answer::Later);
        }
        let prepared = match (&self.errand, pending, cx.facts.keys.pairing()) {
            (None, None, _) => None,
            (None, Some(Pending::Prepared { .. }), Some(keys)) => Some(keys.clone()),
            _ => return Err(invalid_state("this machine is on its way into a team already")),
        };
        let was_prepared = prepared.is_some();
        let identity = prepared.unwrap_or_else(|| draw_keys(cx));
        let founder = Member {
            machine: identity.machine(),
            enc: identity.enc(),
            person: person.clone().into(),
            role: Role::Admin,
            label: label.clone(),
        };
        let entry = genesis(identity.signing(), cx.now(), &name, &founder)?;
        let row = Pending::Creating {
            machine: identity.machine(),
            relay: relay.clone(),
            name,
            person,
            label,
            genesis: canonicalize(&entry)?,
            prepared: was_prepared,
        };
        let save = keep_keys(cx, &row, identity);
        self.errand =
            Some(Errand::new(cx, Kind::Create, Stage::SavingKeys(save), relay, vec![caller.clone()]));
        Ok(Answer::Later)
    }

    pub(super) fn join(&mut self, cx: &mut Ctx<'_, '_>, caller: &Caller, params: Join) -> Outcome<Answer> {
        let ticket = InviteTicket::decode(&params.ticket).map_err(|_| {
            RpcError::new(Code::InvalidRequest, "ticket is not an invite ticket").at("ticket")
        })?;
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

    /// The connection is challenged: say what comes first on it.
    pub(super) fn opened(
        &mut self,
        cx: &mut Ctx<'_, '_>,
        relay: &str,
        nonce: &Nonce,
    ) -> Result<(), StoreDown> {
        let Some(errand) = &mut self.errand else { return Ok(()) };
        errand.frames = 0;
        errand.proof = None;
        if let (Kind::Join { ticket: Some(ticket), .. }, false) = (&errand.kind, errand.published) {
            let claim = JoinClaim { relay, team: &ticket.team, invite_id: &ticket.invite_id, nonce };
            errand.proof = join_proof(&ticket.secret, &claim).ok();
        }
        if !matches!(errand.stage, Stage::Connecting) {
            return Ok(());
        }
        match (&errand.kind, errand.published) {
            (Kind::Create, _) => self.found(cx),
            (Kind::Join { .. }, false) => {
                errand.page(cx);
                Ok(())
            }
            (Kind::Join { .. }, true) | (Kind::Claim, _) => self.greet(cx, relay, nonce),
        }
    }

    /// Sends the genesis: the same bytes every time.
    fn found(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let Some(Pending::Creating { genesis, .. }) = Pending::load(cx.txn)? else { return Ok(()) };
        if let (Ok(entry), Some(errand)) =
            (parse_wire(genesis.as_bytes(), ROSTER_ENTRY_BYTES), &mut self.errand)
        {
            errand.append(cx, entry);
        }
        Ok(())
    }

    /// Says `hello` with the pairing keys: welcomed exactly when the roster names them.
    fn greet(&mut self, cx: &mut Ctx<'_, '_>, relay: &str, nonce: &Nonce) -> Result<(), StoreDown> {
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

    /// A frame of the errand's connection.
    pub(super) fn frame(&mut self, cx: &mut Ctx<'_, '_>, frame: &Arc<RelayInbound>) -> Result<(), StoreDown> {
        let Some(errand) = &mut self.errand else { return Ok(()) };
        match (&errand.stage, &**frame) {
            (Stage::Appending { req, hash, entry }, RelayInbound::RosterOk { req: answered, head })
                if req == answered =>
            {
                if head.hash != *hash {
                    errand.reconnect(cx);
                    return Ok(());
                }
                let entry = entry.clone();
                self.accepted(cx, &entry)
            }
            (Stage::Appending { req, entry, .. }, RelayInbound::Nack { id, code, retry_after_ms })
                if req.as_str() == id =>
            {
                let (entry, code) = (entry.clone(), code.known().unwrap_or(Code::Internal));
                self.append_refused(cx, &entry, code, *retry_after_ms)
            }
            (Stage::Paging { req }, RelayInbound::RosterEntries { req: answered, entries, more })
                if req == answered =>
            {
                self.joined_page(cx, entries, *more)
            }
            (Stage::Paging { req }, RelayInbound::Nack { id, code, .. }) if req.as_str() == id => {
                let code = code.known().unwrap_or(Code::Internal);
                self.fail(cx, RpcError::new(code, "the relay does not take the ticket"))
            }
            (Stage::Greeting, RelayInbound::Welcome { .. }) => {
                errand.sync(cx);
                Ok(())
            }
            (Stage::Greeting, RelayInbound::Error { code }) if code.known() == Some(Code::NotMember) => {
                self.not_member(cx)
            }
            (Stage::Syncing { req }, RelayInbound::RosterEntries { req: answered, entries, more })
                if req == answered =>
            {
                self.synced_page(cx, entries, *more)
            }
            (Stage::Syncing { req }, RelayInbound::Nack { id, .. }) if req.as_str() == id => {
                errand.reconnect(cx);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn append_refused(
        &mut self,
        cx: &mut Ctx<'_, '_>,
        entry: &Value,
        code: Code,
        retry_after_ms: Option<u64>,
    ) -> Result<(), StoreDown> {
        let Some(errand) = &mut self.errand else { return Ok(()) };
        errand.tries += 1;
        match (&errand.kind, code) {
            // §7 "Nacks": the relay has this team. Nobody else can have founded it: its id is this genesis.
            (Kind::Create, Code::RosterConflict) => self.accepted(cx, entry),
            (Kind::Join { .. }, Code::RosterConflict) if errand.tries <= RETRIES => {
                errand.published = false;
                if errand.frames < FRAMES {
                    errand.page(cx)
                } else {
                    errand.reconnect(cx)
                }
                Ok(())
            }
            // The relay's store failed: the entry is there or it is not.
            (_, Code::Internal) if errand.tries <= RETRIES => {
                errand.reconnect(cx);
                Ok(())
            }
            _ => {
                let mut error = RpcError::new(code, "the relay does not take the entry");
                if let Some(ms) = retry_after_ms {
                    error = error.after(ms);
                }
                self.fail(cx, error)
            }
        }
    }

    /// A page of the roster, read with the invite's proof.
    fn joined_page(&mut self, cx: &mut Ctx<'_, '_>, entries: &[Value], more: bool) -> Result<(), StoreDown> {
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

    fn redeem(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
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
    fn not_member(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
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
    fn waiting(&mut self, cx: &mut Ctx<'_, '_>) {
        let Some(errand) = self.errand.take() else { return };
        for caller in &errand.callers {
            cx.reply(caller, Ok(obj([("state", Value::text("waiting"))])));
        }
        cx.note(Note::ErrandDone);
    }

    fn synced_page(&mut self, cx: &mut Ctx<'_, '_>, entries: &[Value], more: bool) -> Result<(), StoreDown> {
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

    /// The relay took the entry: the roster with it is this machine's.
    fn accepted(&mut self, cx: &mut Ctx<'_, '_>, entry: &Value) -> Result<(), StoreDown> {
        let Some(errand) = &mut self.errand else { return Ok(()) };
        let mut roster = errand.fetch.take_roster();
        match roster.apply(entry, ApplyOptions::STORED) {
            Ok(_) => self.enter(cx, roster),
            Err(error) => self.fail(cx, RpcError::new(error.code(), "the entry does not hold")),
        }
    }

    /// The connection could not be made, or is gone.
    pub(super) fn closed(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let Some(errand) = &mut self.errand else { return Ok(()) };
        errand.proof = None;
        errand.answer_due = None;
        let dialling = match errand.stage {
            Stage::Connecting => true,
            Stage::Appending { .. } | Stage::Paging { .. } | Stage::Greeting | Stage::Syncing { .. } => false,
            // Nothing was asked of the connection.
            Stage::SavingKeys(_)
            | Stage::SavingIdentity(_)
            | Stage::SavingConfig(_)
            | Stage::FileAgain(_) => return Ok(()),
        };
        errand.stage = Stage::Connecting;
        errand.losses += 1;
        if !errand.published && (dialling || errand.losses > LOSSES) {
            return self.unreachable(cx);
        }
        Ok(())
    }

    pub(super) fn tick_errand(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let now = cx.mono();
        let Some(errand) = &mut self.errand else { return Ok(()) };
        if errand.answer_due.is_some_and(|due| due <= now) {
            errand.losses += 1;
            errand.reconnect(cx);
        }
        if matches!(errand.stage, Stage::FileAgain(at) if at <= now) {
            return self.save_again(cx);
        }
        if !errand.callers.is_empty() && errand.give_up <= now {
            return self.unreachable(cx);
        }
        Ok(())
    }

    /// The callers are told; what may have been accepted is settled in the background.
    fn unreachable(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let Some(errand) = &mut self.errand else { return Ok(()) };
        let entered =
            matches!(errand.stage, Stage::SavingIdentity(_) | Stage::SavingConfig(_) | Stage::FileAgain(_));
        if !errand.published && !entered {
            return self.fail(cx, RpcError::new(Code::RelayUnavailable, "the relay does not answer"));
        }
        let text = "no answer yet: whether it was taken is being settled";
        for caller in std::mem::take(&mut errand.callers) {
            cx.reply(&caller, Err(RpcError::new(Code::RelayUnavailable, text)));
        }
        Ok(())
    }

    /// It is known that nothing was accepted: everything is as before.
    pub(super) fn fail(&mut self, cx: &mut Ctx<'_, '_>, error: RpcError) -> Result<(), StoreDown> {
        let Some(errand) = self.errand.take() else { return Ok(()) };
        match Pending::load(cx.txn)? {
            Some(Pending::Creating { machine, prepared: true, .. }) => {
                Pending::Prepared { machine }.store(cx.txn);
            }
            Some(Pending::Creating { .. } | Pending::Joining { .. }) => drop_keys(cx),
            _ => {}
        }
        cx.log(Level::Info, "team.failed", vec![("code", error.code().to_string())]);
        for caller in &errand.callers {
            cx.reply(caller, Err(error.clone()));
        }
        cx.note(Note::ErrandDone);
        Ok(())
    }

    /// `pairing.json` is on disk, or could not be written.
    pub(super) fn keys_saved(&mut self, cx: &mut Ctx<'_, '_>, ok: bool) -> Result<(), StoreDown> {
        let Some(errand) = &mut self.errand else { return Ok(()) };
        if !ok {
            return self.fail(cx, RpcError::new(Code::Internal, "pairing.json cannot be written"));
        }
        if matches!(errand.kind, Kind::Join { .. }) {
            return self.redeem(cx);
        }
        errand.stage = Stage::Connecting;
        let url = errand.url.clone();
        cx.note(Note::Errand(url));
        Ok(())
    }

    /// Settles, without a caller, what an earlier run may have been told yes to.
    pub(super) fn resume(&mut self, cx: &mut Ctx<'_, '_>, kind: Kind, url: RelayUrl) {
        let mut errand = Errand::new(cx, kind, Stage::Connecting, url.clone(), Vec::new());
        errand.published = true;
        self.errand = Some(errand);
        cx.note(Note::Errand(url));
    }
}

/// Fresh keys.
pub(super) fn draw_keys(cx: &Ctx<'_, '_>) -> Identity {
    Identity::generate(cx.step.draw(Draw::SigningKey), cx.step.draw(Draw::EncryptionKey))
}

/// Notes what the keys are for, and writes them.
pub(super) fn keep_keys(cx: &mut Ctx<'_, '_>, row: &Pending, identity: Identity) -> SaveId {
    row.store(cx.txn);
    let file = identity.export();
    cx.facts.keys.set_pairing(Some(identity));
    cx.save(File::Pairing(Some(file)))
}

/// Erases the pairing keys and what they were for.
pub(super) fn drop_keys(cx: &mut Ctx<'_, '_>) {
    Pending::clear(cx.txn);
    cx.facts.keys.set_pairing(None);
    cx.save(File::Pairing(None));
}
