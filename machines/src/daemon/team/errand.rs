//! The way into a team, step by step, over the errand connection.

use super::Team;
use super::fetch::Fetch;
use super::pending::Pending;
use crate::daemon::ctx::{Caller, Ctx, Note};
use crate::daemon::io::{Effect, File, Level, SaveId};
use crate::daemon::ipc::RpcError;
use crate::daemon::link::Report;
use crate::machine::Label as Draw;
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, Nonce, RelayInbound, Req};
use messaging_proto::hash::{Hash, hash_value};
use messaging_proto::identity::Identity;
use messaging_proto::json::{Value, canonicalize};
use messaging_proto::key::Sig;
use messaging_proto::name::Label;
use messaging_proto::relay_url::RelayUrl;
use messaging_proto::roster::ApplyOptions;
use messaging_proto::ticket::{InviteTicket, JoinClaim, join_proof};
use messaging_proto::time::Mono;
use std::sync::Arc;

/// How long a caller waits, the relay's silences included.
pub(super) const PATIENCE_MS: u64 = 60_000;
/// How long the relay may take to answer a frame.
const ANSWER_MS: u64 = 10_000;
/// How often an entry that lost a race is signed anew (`contract ipc §5`).
pub(super) const RETRIES: u32 = 5;
/// How often a connection may be lost before a caller is told.
const LOSSES: u32 = 3;
/// Frames said on one connection before its `hello`; the relay takes 8 (`contract wire-core §7.3`).
pub(super) const FRAMES: u32 = 7;

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
    pub(super) proof: Option<Sig>,
    /// Frames said on this connection.
    pub(super) frames: u32,
    pub(super) tries: u32,
    pub(super) losses: u32,
    requests: u64,
    /// An entry with the new keys was sent, and whether it was accepted is not known.
    pub(super) published: bool,
    pub(super) give_up: Mono,
    pub(super) answer_due: Option<Mono>,
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

    pub(super) fn request(&mut self) -> Req {
        self.requests += 1;
        Req::of(self.requests)
    }

    pub(super) fn say(&mut self, cx: &mut Ctx<'_, '_>, frame: &ClientOutbound) -> bool {
        let Some(link) = cx.facts.link.errand() else { return false };
        cx.effect(Effect::LinkSend { link, text: frame.to_text() });
        self.frames += 1;
        self.answer_due = Some(cx.mono().plus(ANSWER_MS));
        true
    }

    pub(super) fn append(&mut self, cx: &mut Ctx<'_, '_>, entry: Value) {
        let (Ok(text), Ok(hash)) = (canonicalize(&entry), hash_value(&entry)) else { return };
        let req = self.request();
        if self.say(cx, &ClientOutbound::RosterAppend { req: req.clone(), entry: text.into() }) {
            self.published = true;
            self.stage = Stage::Appending { req, entry: Box::new(entry), hash };
        }
    }

    pub(super) fn page(&mut self, cx: &mut Ctx<'_, '_>) {
        let (Kind::Join { ticket: Some(ticket), .. }, Some(proof)) = (&self.kind, self.proof) else { return };
        let (team, invite_id) = (ticket.team, ticket.invite_id);
        let req = self.request();
        let after = self.fetch.after();
        if self.say(cx, &ClientOutbound::Join { req: req.clone(), team, invite_id, proof, after }) {
            self.stage = Stage::Paging { req };
        }
    }

    pub(super) fn sync(&mut self, cx: &mut Ctx<'_, '_>) {
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

    pub(super) fn append_refused(
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

    /// The relay took the entry: the roster with it is this machine's.
    pub(super) fn accepted(&mut self, cx: &mut Ctx<'_, '_>, entry: &Value) -> Result<(), StoreDown> {
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
    pub(super) fn unreachable(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let Some(errand) = &mut self.errand else { return Ok(()) };
        let entered =
            matches!(errand.stage, Stage::SavingIdentity(_) | Stage::SavingConfig(_) | Stage::FileAgain(_));
        if !errand.published && !entered {
            let why = cx.facts.link.passing().map(Report::sentence);
            let why = why.unwrap_or_else(|| "the relay does not answer".to_owned());
            return self.fail(cx, RpcError::new(Code::RelayUnavailable, "").saying(why));
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
            Some(Pending::Creating { .. } | Pending::Joining { .. }) => self.drop_keys(cx),
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
