//! The sessions of this machine (`messaging/1 §8.2`): who is registered, under which name, and for how long a
//! session stays addressable after its client went.
//!
//! Which connection holds which key is the connection's, and gone with it. Everything else is in the store: after a
//! restart nobody holds anything, so every session but a terminal's is kept.

mod names;
pub mod params;
pub(crate) mod rows;

use super::ctx::{Answer, Caller, Ctx, Note, Outcome, Refusal, Role, obj};
use super::due;
use super::rows::Key;
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::address::SessionAddress;
use messaging_proto::json::Value;
use messaging_proto::name::{AgentKind, SessionName};
use messaging_proto::payload::{SessionState, Tier};
use messaging_proto::time::Wall;
use rows::{Host, Mailbox, Session};

/// How long a session is kept after its last holder went, in milliseconds (`§8.2`: 24 hours).
pub(crate) const KEPT_MS: u64 = 86_400_000;

/// The most sessions of a machine, kept ones included: what shows all of them still fits a line of the local API, so
/// that one client that registers without end takes nothing from the others.
pub(crate) const SESSIONS_MOST: usize = 1_000;
/// How many more may be registered over the admin socket.
const PERSONS_OWN: usize = 24;

/// What the role serves.
#[derive(Clone, Debug)]
pub enum Call {
    /// `session.register`.
    Register(Box<Register>),
    /// `session.update`.
    Update(Update),
    /// `session.unregister`.
    Unregister {
        /// The session.
        key: String,
        /// Whether it is kept for whoever comes back.
        keep: bool,
    },
    /// `events.subscribe`.
    Subscribe {
        /// The session.
        key: String,
    },
}

/// Serves a call.
pub(crate) fn call(cx: &mut Ctx<'_, '_>, from: &Caller, call: Call) -> Outcome<Answer> {
    match call {
        Call::Register(params) => register(cx, from, *params),
        Call::Update(params) => update(cx, params),
        Call::Unregister { key, keep } => unregister(cx, &key, keep),
        Call::Subscribe { key } => {
            cx.facts.conns.subscribe_key(from.conn, &key);
            Ok(Answer::ok())
        }
    }
}

/// `session.register`.
#[derive(Clone, Debug)]
pub struct Register {
    pub(crate) key: String,
    pub(crate) name: SessionName,
    pub(crate) agent: AgentKind,
    pub(crate) tier: Tier,
    pub(crate) state: SessionState,
    pub(crate) doing: Option<String>,
    pub(crate) repo: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) features: Vec<String>,
    /// The host's kind beside where it is.
    pub(crate) host: Option<(String, Host)>,
    /// Whether a session ticket came with it.
    pub(crate) ticket: bool,
}

/// `session.update`. An empty text clears.
#[derive(Clone, Debug)]
pub struct Update {
    pub(crate) key: String,
    pub(crate) state: Option<SessionState>,
    pub(crate) doing: Option<String>,
    pub(crate) repo: Option<String>,
    pub(crate) branch: Option<String>,
}

/// The role. It keeps nothing of its own.
#[derive(Debug, Default)]
pub struct Sessions;

impl Role for Sessions {
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown> {
        match note {
            Note::Start => {
                for session in rows::all(cx.txn)? {
                    if !session.kept() {
                        keep(cx, session);
                    }
                }
            }
            Note::ConnClosed { keys, .. } => {
                for key in keys {
                    if !cx.facts.conns.held(key)
                        && let Some(session) = rows::by_key(cx.txn, key)?
                        && !session.kept()
                    {
                        keep(cx, session);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// `session.register`: names a session and makes the calling connection a holder of its key.
fn register(cx: &mut Ctx<'_, '_>, from: &Caller, params: Register) -> Outcome<Answer> {
    if let Some((kind, _)) = &params.host
        && *kind != params.agent.as_str()
    {
        return Err(invalid("host.kind is not the session's agent", "host.kind"));
    }
    // §8.2: a ticket is a Jelly host's.
    if params.ticket {
        return Err(invalid("ticket is only taken under a Jelly host", "ticket"));
    }
    let now = cx.now();
    let known = rows::by_key(cx.txn, &params.key)?;
    let resumed_own = known.is_some();
    let (name, mailbox, since, resumed) = match known {
        // Registering the same name again changes nothing of the address, whatever suffix it has.
        Some(old) if old.asked == params.name => {
            let since = if old.kept() { now } else { old.since };
            (old.name, old.mailbox, since, true)
        }
        known => {
            let (name, taken) =
                names::choose(cx.txn, &params.key, &params.name, &params.agent, known.is_none())?
                    .ok_or_else(|| Refusal::code(Code::InvalidState, "every suffix of the name is taken"))?;
            let mailbox = match (&known, &taken) {
                (Some(old), _) => {
                    rows::free_name(cx.txn, &old.name);
                    old.mailbox
                }
                (None, Some(taken)) => take_over(cx, taken, &params.key)?,
                (None, None) if rows::count(cx.txn)? >= most(cx, from) => return Err(full()),
                (None, None) => rows::new_mailbox(cx.txn, &params.key)?,
            };
            (name, mailbox, now, resumed_own || taken.is_some())
        }
    };
    let session = Session {
        key: params.key,
        asked: params.name,
        name,
        mailbox,
        agent: params.agent,
        tier: params.tier,
        state: params.state,
        doing: params.doing.filter(|text| !text.is_empty()),
        repo: params.repo.filter(|text| !text.is_empty()),
        branch: params.branch.filter(|text| !text.is_empty()),
        features: params.features,
        host: params.host.map(|(_, host)| host),
        since,
        kept_until: None,
    };
    rows::put(cx.txn, &session);
    cx.facts.conns.hold(from.conn, &session.key);
    cx.note(Note::SessionsChanged);
    let unread = rows::mailbox(cx.txn, mailbox)?.unread;
    Ok(Answer::Now(obj([
        ("name", Value::text(session.name.as_str())),
        ("address", Value::text(address(cx, &session.name)?.to_string())),
        ("resumed", Value::Bool(resumed)),
        ("unread", Value::int(unread)),
    ])))
}

/// `session.update`.
fn update(cx: &mut Ctx<'_, '_>, params: Update) -> Outcome<Answer> {
    let Some(mut session) = rows::by_key(cx.txn, &params.key)? else { return Err(no_session()) };
    let before = session.clone();
    let changed = |text: String| Some(text).filter(|text| !text.is_empty());
    if let Some(state) = params.state {
        session.state = state;
    }
    if let Some(doing) = params.doing {
        session.doing = changed(doing);
    }
    if let Some(repo) = params.repo {
        session.repo = changed(repo);
    }
    if let Some(branch) = params.branch {
        session.branch = changed(branch);
    }
    if session != before {
        rows::put(cx.txn, &session);
        cx.note(Note::SessionsChanged);
    }
    Ok(Answer::ok())
}

/// `session.unregister`: keeps the session for whoever comes back, or forgets it with its unread mail.
fn unregister(cx: &mut Ctx<'_, '_>, key: &str, keep_it: bool) -> Outcome<Answer> {
    let Some(session) = rows::by_key(cx.txn, key)? else { return Err(no_session()) };
    cx.facts.conns.release(key);
    if keep_it && !session.is_cli() {
        keep(cx, session);
    } else {
        let now = cx.now();
        forget(cx, &session, now)?;
        cx.note(Note::SessionsChanged);
    }
    Ok(Answer::ok())
}

/// A kept session's time may be over.
pub(crate) fn expire(cx: &mut Ctx<'_, '_>, key: &[u8]) -> Result<(), StoreDown> {
    let Some((key, _)) = super::rows::text_at(key, 0) else { return Ok(()) };
    let Some(session) = rows::by_key(cx.txn, &key)? else { return Ok(()) };
    if session.kept_until.is_some_and(|until| until <= cx.now()) {
        session_event(cx, &key, "expired");
        // §8.5 retention.orphanedDays: mail of sessions that are gone.
        let after = cx.now().plus(due::days(cx.facts.config.retention().orphaned_days));
        forget(cx, &session, after)?;
        cx.note(Note::SessionsChanged);
    }
    Ok(())
}

/// §8.2 "kept": the session stays addressable without a client for a while. A terminal's stays as it is.
fn keep(cx: &mut Ctx<'_, '_>, mut session: Session) {
    if session.is_cli() {
        return;
    }
    let until = cx.now().plus(KEPT_MS);
    session.kept_until = Some(until);
    session.since = cx.now();
    session.state = SessionState::Idle;
    session.doing = None;
    rows::put(cx.txn, &session);
    due::at(cx.txn, until, due::Kind::Session, &Key::new().text(&session.key));
    cx.note(Note::SessionsChanged);
}

/// §8.2: a new client of the same kind takes over the name and what waits for it.
fn take_over(cx: &mut Ctx<'_, '_>, kept: &Session, key: &str) -> Result<u64, StoreDown> {
    session_event(cx, &kept.key, "taken");
    rows::remove(cx.txn, kept);
    let mut mailbox = rows::mailbox(cx.txn, kept.mailbox)?;
    mailbox.key = Some(key.to_owned());
    mailbox.turn += 1;
    rows::put_mailbox(cx.txn, kept.mailbox, &mailbox);
    Ok(kept.mailbox)
}

/// Removes a session; its mailbox is nobody's, and emptied at `after`.
fn forget(cx: &mut Ctx<'_, '_>, session: &Session, after: Wall) -> Result<(), StoreDown> {
    rows::remove(cx.txn, session);
    let mailbox = rows::mailbox(cx.txn, session.mailbox)?;
    rows::put_mailbox(cx.txn, session.mailbox, &Mailbox { key: None, ..mailbox });
    due::at(cx.txn, after, due::Kind::Mailbox, &Key::new().num(session.mailbox));
    Ok(())
}

fn session_event(cx: &mut Ctx<'_, '_>, key: &str, change: &str) {
    let event =
        obj([("type", Value::text("session")), ("key", Value::text(key)), ("change", Value::text(change))]);
    cx.event_key(key, &event);
}

/// The address of one of this machine's sessions.
///
/// # Errors
/// `no_identity` while this machine is in no team, `not_member` once it was removed.
pub(crate) fn address(cx: &Ctx<'_, '_>, name: &SessionName) -> Outcome<SessionAddress> {
    let own = cx.facts.me().ok_or_else(|| {
        if cx.facts.removed() {
            Refusal::code(Code::NotMember, "this machine was removed from its team")
        } else {
            Refusal::code(Code::NoIdentity, "this machine is in no team")
        }
    })?;
    Ok(SessionAddress { person: own.person.clone(), session: name.clone(), label: own.label.clone() })
}

/// The session of a key that its connection holds.
///
/// # Errors
/// `not_found` when there is none.
pub(crate) fn of_key(cx: &Ctx<'_, '_>, key: &str) -> Outcome<Session> {
    rows::by_key(cx.txn, key)?.ok_or_else(no_session)
}

/// What agents fill leaves room for the person's own.
fn most(cx: &Ctx<'_, '_>, from: &Caller) -> usize {
    if cx.facts.conns.is_agent(from.conn) { SESSIONS_MOST } else { SESSIONS_MOST + PERSONS_OWN }
}

fn full() -> Refusal {
    Refusal::code(Code::RateLimited, "this machine has the most sessions it may have")
}

fn no_session() -> Refusal {
    Refusal::code(Code::NotFound, "the key has no session")
}

fn invalid(text: &'static str, field: &'static str) -> Refusal {
    Refusal::Rpc(super::ipc::RpcError::new(Code::InvalidRequest, text).at(field))
}

#[cfg(test)]
mod tests;
