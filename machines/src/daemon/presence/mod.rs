//! Presence (`messaging/1 §6.5`): which sessions this machine says it has, and what the others said.
//!
//! Durable: every machine's last presence, and this machine's `seq`. Volatile: when the last one went out.

pub(crate) mod rows;

use super::ctx::{Ctx, Note, Role};
use super::io::Level;
use super::mail::budget::{Budgets, Class};
use super::sessions::rows::{self as sessions, Session};
use crate::machine::Label;
use crate::store::StoreDown;
use messaging_proto::envelope::{
    End, EnvelopeError, HeaderParts, Inspected, Kind, To, open_envelope, seal_presence, verify_envelope,
};
use messaging_proto::frame::ClientOutbound;
use messaging_proto::limits::{PRESENCE_INTERVAL_MS, TTL_MS};
use messaging_proto::payload::presence::{SESSIONS, trim};
use messaging_proto::payload::{PresencePayload, PresenceSession, SessionState, Tier, Typed};
use messaging_proto::realm::{RealmView, Relation};
use messaging_proto::roster::Roster;
use messaging_proto::time::Mono;
use messaging_proto::ulid::Ulid;
use rows::Seen;
use std::sync::Arc;

/// What this machine can do beyond the minimum (`§6.5`).
pub(crate) const FEATURES: [&str; 1] = ["tasks"];

/// The longest time between two presences, in milliseconds (`§6.5`).
const HEARTBEAT_MS: u64 = 60_000;

/// The role.
#[derive(Debug, Default)]
pub struct Presence {
    /// When the last one went out on this link; nothing while there is no link.
    said: Option<Mono>,
    /// Whether there is news since.
    news: bool,
    budgets: Budgets,
}

impl Role for Presence {
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown> {
        match note {
            // §11.4: the first one after the welcome.
            Note::LinkUp => self.say(cx)?,
            Note::LinkDown => self.said = None,
            Note::Stopping if self.said.is_some() => self.say(cx)?,
            Note::SessionsChanged => {
                self.news = true;
                if self.deadline().is_some_and(|at| at <= cx.mono()) {
                    self.say(cx)?;
                }
            }
            Note::Woke if self.said.is_some() => self.say(cx)?,
            Note::Deliver(env) => self.heard(cx, env)?,
            Note::RosterChanged { .. } => {
                let gone: Vec<_> = cx.facts.roster().into_iter().flat_map(Roster::removed).copied().collect();
                for device in gone {
                    rows::forget(cx.txn, &device);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Mono> {
        let wait = if self.news { PRESENCE_INTERVAL_MS } else { HEARTBEAT_MS };
        self.said.map(|said| said.plus(wait))
    }

    fn tick(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        if self.deadline().is_some_and(|at| at <= cx.mono()) {
            self.say(cx)?;
        }
        Ok(())
    }
}

impl Presence {
    /// Broadcasts this machine's sessions.
    fn say(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        if !cx.facts.link.up() {
            self.said = None;
            return Ok(());
        }
        self.said = Some(cx.mono());
        self.news = false;
        let now = cx.now();
        let Some(own) = cx.facts.me().cloned() else { return Ok(()) };
        let payload = PresencePayload {
            seq: rows::next_seq(cx.txn, now)?,
            label: own.label.clone(),
            sessions: listed(cx)?,
            features: FEATURES.iter().map(|feature| (*feature).to_owned()).collect(),
            away: false,
        };
        let (Some(identity), Some(realm)) = (cx.facts.keys.current(), cx.facts.roster()) else {
            return Ok(());
        };
        let parts = HeaderParts {
            id: Ulid::new(now, cx.step.draw(Label::EnvelopeId)),
            kind: Kind::Presence,
            realm: realm.realm(),
            anchor: realm.anchor(),
            from: End { person: own.person.clone(), device: own.machine, agent: None },
            to: To::Team,
            ts: now,
            exp: now.plus(TTL_MS),
            reply_to: None,
        };
        let sealed = trim(payload.to_value())
            .map_err(EnvelopeError::from)
            .and_then(|payload| seal_presence(identity.signing(), &parts, payload));
        match sealed {
            Ok(sealed) => {
                cx.send(&ClientOutbound::Presence { env: Arc::from(sealed.text) });
            }
            Err(error) => cx.log(Level::Warn, "presence.unsaid", vec![("code", error.code().to_string())]),
        }
        Ok(())
    }

    /// Another machine's presence. It is never answered and never acked; the latest `seq` counts.
    fn heard(&mut self, cx: &mut Ctx<'_, '_>, env: &Arc<Inspected>) -> Result<(), StoreDown> {
        let Ok(envelope) = env.envelope() else { return Ok(()) };
        let header = &envelope.header;
        if header.kind != Kind::Presence {
            return Ok(());
        }
        let (now, mono) = (cx.now(), cx.mono());
        let device = header.from.device;
        let Some(realm) = cx.facts.roster() else { return Ok(()) };
        if verify_envelope(env, realm, now, None).is_err() {
            return Ok(());
        }
        match realm.relate(&header.anchor) {
            Relation::Consistent => {}
            Relation::Ahead => return Ok(()),
            Relation::Diverged { .. } => {
                cx.note(Note::Diverged(Arc::clone(env)));
                return Ok(());
            }
        }
        // §6.5: a presence whose label is not the roster's is ignored.
        let Some(label) = realm.member(&device).map(|member| member.label.clone()) else { return Ok(()) };
        // §8.3: over its budget it is dropped, since the next one supersedes it.
        if self.budgets.take(device, Class::Presence, mono).is_err() {
            return Ok(());
        }
        let Ok(payload) = open_envelope(env, &[]) else { return Ok(()) };
        let Typed::Presence(payload) = payload.typed() else { return Ok(()) };
        if payload.label != label {
            return Ok(());
        }
        let before = rows::get(cx.txn, &device)?;
        if before.as_ref().is_some_and(|before| before.seq >= payload.seq) {
            return Ok(());
        }
        let seen = Seen::of(payload, now);
        let news = before.is_none_or(|before| before.sessions != seen.sessions || before.away != seen.away);
        rows::put(cx.txn, &device, &seen);
        if news {
            cx.note(Note::ContactsChanged(header.from.person.clone()));
        }
        Ok(())
    }
}

/// This machine's sessions as a presence lists them: live ones first, then kept ones, each by name.
fn listed(cx: &Ctx<'_, '_>) -> Result<Vec<PresenceSession>, StoreDown> {
    let mut own = sessions::all(cx.txn)?;
    own.sort_by(|one, other| (one.kept(), &one.name).cmp(&(other.kept(), &other.name)));
    own.truncate(SESSIONS);
    Ok(own.iter().map(|session| presence_of(cx, session)).collect())
}

/// One session, with only what this machine shares (`§6.5`, "Redaction").
fn presence_of(cx: &Ctx<'_, '_>, session: &Session) -> PresenceSession {
    let share = cx.facts.config.share();
    let kept = session.kept();
    let shared = |on: bool, text: &Option<String>| text.clone().filter(|_| on);
    PresenceSession {
        name: session.name.clone(),
        client: session.agent.clone(),
        state: if kept { SessionState::Idle } else { session.state },
        tier: session.tier,
        since: session.since,
        kept,
        wake: wakes(cx, session),
        repo: shared(share.repo, &session.repo),
        branch: shared(share.branch, &session.branch),
        doing: shared(share.doing && !kept, &session.doing),
    }
}

/// Whether this machine would act on a wake hint for the session now (`§6.5`, `wake`).
pub(crate) fn wakes(cx: &Ctx<'_, '_>, session: &Session) -> bool {
    session.tier == Tier::Push
        && (!session.kept() || (session.host.is_some() && cx.facts.config.wake_bridge()))
}

#[cfg(test)]
mod tests;
