//! Filling a store as long use would leave it, for benchmarks alone. Nothing is said to anybody.

use super::Daemon;
use super::chats;
use super::consent::rows as consent;
use super::ctx::Ctx;
use super::mail::inbox::{self, Item};
use super::mail::peer::Peer;
use super::presence::rows::{self as presence, Listed, Seen};
use super::sessions::rows::{self as sessions, Session};
use super::tasks::rows::{self as tasks, Entry, Status, Task, TaskRole};
use super::text::canonical;
use crate::machine::{Label, Out, Step};
use crate::store::{StoreDown, Txn};
use messaging_proto::a2a::TaskState;
use messaging_proto::address::SessionAddress;
use messaging_proto::consent::{Ask, Class, Levels, NewGrant, Subject, sign_consent_grant};
use messaging_proto::delegation::Summary;
use messaging_proto::json::{Object, Value};
use messaging_proto::key::MachineId;
use messaging_proto::limits::TTL_MS;
use messaging_proto::name::{AgentKind, PersonId, SessionName};
use messaging_proto::payload::{MessageKind, SessionState, Tier};
use messaging_proto::realm::RealmView;
use messaging_proto::roster::Roster;
use messaging_proto::task::Stage;
use messaging_proto::ulid::Ulid;
use std::collections::VecDeque;

/// The session of every other machine that a filling speaks of.
const PEER_SESSION: &str = "agent";

impl Daemon {
    fn filling(
        &mut self,
        step: &Step,
        txn: &mut Txn<'_>,
        fill: impl FnOnce(&mut Ctx<'_, '_>) -> Result<(), StoreDown>,
    ) -> Result<(), StoreDown> {
        let (mut out, mut notes) = (Out::new(), VecDeque::new());
        fill(&mut Ctx::new(step, txn, &mut self.facts, &mut out, &mut notes))
    }

    /// Files direct lines of these persons, as if each had arrived.
    ///
    /// # Errors
    /// [`StoreDown`] when the store did not answer.
    pub fn fill_chats(
        &mut self,
        step: &Step,
        txn: &mut Txn<'_>,
        lines: impl IntoIterator<Item = (PersonId, String)>,
    ) -> Result<(), StoreDown> {
        self.filling(step, txn, |cx| {
            for (person, text) in lines {
                chats::fill(cx, person, text)?;
            }
            Ok(())
        })
    }

    /// Takes a roster in place of the held one, as a joiner does.
    ///
    /// # Errors
    /// As [`Daemon::fill_chats`].
    pub fn fill_roster(&mut self, step: &Step, txn: &mut Txn<'_>, roster: Roster) -> Result<(), StoreDown> {
        self.filling(step, txn, |cx| {
            cx.facts.realm.adopt(cx.txn, roster);
            Ok(())
        })
    }

    /// Stores a presence of a member's machine with one session, and does nothing for one that is no member.
    ///
    /// # Errors
    /// As [`Daemon::fill_chats`].
    pub fn fill_presence(
        &mut self,
        step: &Step,
        txn: &mut Txn<'_>,
        from: &MachineId,
    ) -> Result<(), StoreDown> {
        self.filling(step, txn, |cx| {
            let (Some(name), Some(client)) = (SessionName::parse(PEER_SESSION), AgentKind::parse("codex"))
            else {
                return Ok(());
            };
            let at = cx.now();
            let session = Listed {
                name,
                client,
                state: SessionState::Idle,
                tier: Tier::Push,
                since: at,
                kept: false,
                wake: true,
                repo: None,
                branch: None,
                doing: None,
            };
            let (seq, features) = (at.0, vec!["tasks".to_owned()]);
            presence::put(cx.txn, from, &Seen { seq, at, away: false, features, sessions: vec![session] });
            Ok(())
        })
    }

    /// Signs a grant that opens this person's agents to another person.
    ///
    /// # Errors
    /// As [`Daemon::fill_chats`].
    pub fn fill_grant(&mut self, step: &Step, txn: &mut Txn<'_>, person: PersonId) -> Result<(), StoreDown> {
        self.filling(step, txn, |cx| {
            let (Some(own), Some(keys), Some(roster)) =
                (cx.facts.me(), cx.facts.keys.current(), cx.facts.roster())
            else {
                return Ok(());
            };
            let new = NewGrant {
                realm: roster.realm(),
                id: Ulid::new(cx.now(), cx.step.draw(Label::GrantId)),
                person: own.person.clone(),
                ts: cx.now(),
                subject: Subject::Person(person),
                levels: Levels { ask: Some(Ask::Open), ..Levels::default() },
            };
            match sign_consent_grant(keys.signing(), new.to_value()) {
                Ok(grant) => consent::put(cx.txn, &grant),
                Err(_) => Ok(()),
            }
        })
    }

    /// Stores mail of a member's machine, or a task it asks for, in the inbox of a session.
    ///
    /// # Errors
    /// As [`Daemon::fill_chats`].
    pub fn fill_inbox(
        &mut self,
        step: &Step,
        txn: &mut Txn<'_>,
        to: &SessionName,
        from: &MachineId,
        request: (&str, bool),
    ) -> Result<(), StoreDown> {
        self.filling(step, txn, |cx| {
            let (Some(session), Some(agent)) =
                (sessions::by_name(cx.txn, to)?, SessionName::parse(PEER_SESSION))
            else {
                return Ok(());
            };
            let Some(sender) = cx.facts.roster().and_then(|roster| roster.member(from)) else {
                return Ok(());
            };
            let (person, label) = (sender.person.clone(), sender.label.clone());
            let peer = Peer { person, device: *from, label, agent: Some(agent) };
            received(cx, &session, peer, request)
        })
    }
}

/// A guarded message of a peer as the inbound path stores it, with the executor's record when it asks for a task.
fn received(
    cx: &mut Ctx<'_, '_>,
    session: &Session,
    peer: Peer,
    (text, is_task): (&str, bool),
) -> Result<(), StoreDown> {
    let now = cx.now();
    let id = Ulid::new(now, cx.step.draw(Label::EnvelopeId));
    let task = is_task.then(|| Ulid::new(now, cx.step.draw(Label::TaskId)));
    let (Some(own), Some(from)) = (cx.facts.me(), peer.address()) else { return Ok(()) };
    let to = SessionAddress {
        person: own.person.clone(),
        session: session.name.clone(),
        label: own.label.clone(),
    };
    let chain =
        Summary { addresses: vec![from, to], depth: 1, max_depth: 4, scope: None, exp: now.plus(TTL_MS) };
    let chain = is_task.then_some(chain);
    let mut part = Object::new();
    part.set("text", Value::text(text));
    let mut message = Object::new();
    message.set("contextId", Value::text(id.as_str()));
    message.set("messageId", Value::text(id.as_str()));
    message.set("parts", Value::Array(vec![part.into()]));
    message.set("role", Value::text("ROLE_USER"));
    let message = canonical(&message.into());
    if let Some(task) = task {
        let mut record = Task {
            id: task,
            role: TaskRole::Executor,
            mailbox: session.mailbox,
            session: session.name.clone(),
            peer: peer.clone(),
            context: id.to_string(),
            request: id,
            status: Status { state: TaskState::Submitted, parts: None, at: now },
            title: text.to_owned(),
            created: now,
            updated: now,
            order: 0,
            chain: chain.clone(),
            grants: None,
            follow_ups: Vec::new(),
            messages: 0,
            message_bytes: 0,
            artifacts: 0,
            artifact_bytes: 0,
        };
        tasks::add_message(cx.txn, &mut record, &Entry { id, at: now, message: message.clone() });
        tasks::put(cx.txn, &mut record, now, true)?;
    }
    let item = Item {
        id,
        from: peer,
        kind: if is_task { MessageKind::Task } else { MessageKind::Message },
        message: id.to_string(),
        context: id.to_string(),
        task,
        reply_to: None,
        preview: text.to_owned(),
        at: now,
        stage: Stage::Delivered,
        wake: true,
        consent: Class::Guarded,
        chain,
        continuation: false,
        bytes: message.len() as u64,
        read_in: None,
    };
    inbox::add(cx, session.mailbox, &item, &message)
}
