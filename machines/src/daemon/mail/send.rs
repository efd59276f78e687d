//! `msg.send` to an agent: mail, tasks and follow-ups (`messaging/1 §6.1`, `§8.2`; contract ipc §3.1).
//!
//! Everything is checked and sealed before anything is written, so a refusal leaves nothing. What a chain's
//! recipient would refuse is no refusal here: its result says `rejected`, and nothing is sent.

use super::calls::SendCall;
use super::peer::{Peer, set};
use super::post::{self, Draft, Ready};
use super::sent::{self, What};
use crate::daemon::ctx::{Ctx, Outcome, Refusal};
use crate::daemon::directory::{self, Target};
use crate::daemon::ipc::RpcError;
use crate::daemon::sessions::{self, rows::Session};
use crate::daemon::tasks::{self, NewTask, TaskRole, rows::FollowUp, rows::Task, view::Origin};
use crate::daemon::text::{AROUND_HISTORY, AROUND_MAIL, canonical, fits_a_line, parsed, preview_of};
use crate::machine::Label;
use messaging_proto::Code;
use messaging_proto::a2a::{Role, TaskState};
use messaging_proto::address::{Address, SessionAddress};
use messaging_proto::delegation::{Hop, NewGrant, Summary, create_grant, verify_chain};
use messaging_proto::envelope::{End, Kind};
use messaging_proto::json::{Object, Value};
use messaging_proto::name::ScopeLabel;
use messaging_proto::payload::{CodeText, MessageKind};
use messaging_proto::realm::RealmView;
use messaging_proto::task::{Ending, Stage, delivery_rejected};
use messaging_proto::ulid::Ulid;

/// On behalf of which task a request is made.
#[derive(Clone, Debug)]
pub(crate) struct OnBehalf {
    pub(crate) task: Ulid,
    pub(crate) scope: Option<Vec<ScopeLabel>>,
    pub(crate) max_depth: Option<u64>,
}

/// What was sent, before its result is shown: its stage is read last.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    to: SessionAddress,
    envelope: Ulid,
    message: Ulid,
    context: String,
    task: Option<Ulid>,
    expect: Option<&'static str>,
    /// The refusal a chain's recipient would give.
    refused: Option<Code>,
}

/// A chain for a task request: what is sent, and what it says.
struct Chain {
    grants: Value,
    summary: Summary,
}

/// Checks, seals and stores one send of a session.
pub(crate) fn send(
    cx: &mut Ctx<'_, '_>,
    session: &Session,
    to: &Address,
    send: &SendCall,
) -> Outcome<Outgoing> {
    if send.task.is_some() && send.kind == MessageKind::Task {
        return Err(invalid("taskId continues a task; a new one gets its own", "taskId"));
    }
    if send.on_behalf_of.is_some() && send.kind == MessageKind::Message {
        return Err(invalid("onBehalfOf is for tasks", "onBehalfOf"));
    }
    let continued = own_task(cx, session, send.task.as_ref(), TaskRole::Requester, "taskId")?;
    let behalf = send.on_behalf_of.as_ref().map(|behalf| &behalf.task);
    let behalf = own_task(cx, session, behalf, TaskRole::Executor, "onBehalfOf.taskId")?;
    let target = directory::resolve(cx, to)?;

    let now = cx.now();
    let wake = send.wake.unwrap_or(true);
    let message_id = send.message.unwrap_or_else(|| Ulid::new(now, cx.step.draw(Label::MessageId)));
    let context = match (&send.context, &continued) {
        (Some(context), _) => context.to_string(),
        (None, Some(task)) => task.context.clone(),
        (None, None) => message_id.to_string(),
    };
    let asks = (send.kind == MessageKind::Task).then(|| Ulid::new(now, cx.step.draw(Label::TaskId)));
    let task = asks.or(send.task);
    let message = message(send, message_id, &context, task);
    let around = if task.is_some() { AROUND_HISTORY } else { AROUND_MAIL };
    if !fits_a_line(&message, around) {
        return Err(Refusal::code(Code::TooLarge, "the message nests deeper than it could be read"));
    }
    let address = target.address();
    let from = sessions::address(cx, &session.name)?;
    let chain = match asks {
        Some(task) => Some(grant(cx, &from, &address, task, behalf.as_ref(), send.on_behalf_of.as_ref())?),
        None => None,
    };
    let mut outgoing = Outgoing {
        to: address,
        envelope: Ulid::new(now, [0; 10]),
        message: message_id,
        context,
        task,
        expect: directory::expect(cx, &target, wake)?,
        refused: None,
    };
    let chain = match chain {
        Some(Err(code)) => {
            // §8.2: a chain its recipient would refuse is not sent, and its task ends here.
            outgoing.envelope = Ulid::new(now, cx.step.draw(Label::EnvelopeId));
            outgoing.refused = Some(code);
            outgoing.expect = None;
            refused(cx, session, &target, &outgoing, &message, code)?;
            return Ok(outgoing);
        }
        Some(Ok(chain)) => Some(chain),
        None => None,
    };
    let reply_to = send.reply_to.or_else(|| continued.as_ref().map(|task| task.request));
    let draft = Draft {
        kind: Kind::Message,
        from_agent: Some(session.name.clone()),
        to: End { person: target.person.clone(), device: target.device, agent: Some(target.session.clone()) },
        reply_to,
        payload: payload(send, message.clone(), chain.as_ref().map(|chain| &chain.grants)),
    };
    let ready = post::seal(cx, &draft).map_err(|error| match error.code() {
        Code::TooLarge => Refusal::code(Code::TooLarge, "the sealed message is over its limit"),
        Code::NotMember => Refusal::code(Code::NoRecipients, "the recipient left the team"),
        code => Refusal::code(code, "the message breaks a rule of its shape"),
    })?;
    outgoing.envelope = ready.id;
    store(cx, session, &target, &outgoing, ready, asks, &message, chain)?;
    Ok(outgoing)
}

/// A task of this session, which must still be open. `field` names it in a refusal.
fn own_task(
    cx: &Ctx<'_, '_>,
    session: &Session,
    id: Option<&Ulid>,
    role: TaskRole,
    field: &'static str,
) -> Outcome<Option<Task>> {
    let Some(id) = id else { return Ok(None) };
    let task = tasks::rows::get(cx.txn, id, role)?.filter(|task| task.mailbox == session.mailbox);
    let Some(task) = task else {
        return Err(RpcError::new(Code::NotFound, "the session has no such task").at(field).into());
    };
    if task.status.state.is_terminal() {
        return Err(RpcError::new(Code::InvalidState, "the task has ended").at(field).into());
    }
    Ok(Some(task))
}

fn message(send: &SendCall, id: Ulid, context: &str, task: Option<Ulid>) -> Value {
    let mut message = Object::new();
    message.set("messageId", Value::text(id.as_str()));
    message.set("contextId", Value::text(context));
    set(&mut message, "taskId", task.map(|task| Value::text(task.as_str())));
    message.set("role", Value::text(Role::User.as_str()));
    message.set("parts", send.parts.clone());
    set(&mut message, "metadata", send.metadata.clone());
    set(&mut message, "extensions", send.extensions.clone());
    set(&mut message, "referenceTaskIds", send.references.clone());
    message.into()
}

fn payload(send: &SendCall, message: Value, grants: Option<&Value>) -> Value {
    let mut payload = Object::new();
    payload.set("kind", Value::text(send.kind.as_str()));
    payload.set("message", message);
    set(&mut payload, "delegation", grants.cloned());
    if send.wake == Some(false) {
        payload.set("wake", Value::Bool(false));
    }
    payload.into()
}

/// Signs the next grant of the chain (`§6.7`, "Delegating") and checks the whole as its recipient will.
///
/// # Errors
/// The code its recipient would refuse it with, inside.
fn grant(
    cx: &Ctx<'_, '_>,
    from: &SessionAddress,
    to: &SessionAddress,
    task: Ulid,
    behalf: Option<&Task>,
    narrowed: Option<&OnBehalf>,
) -> Outcome<Result<Chain, Code>> {
    let (Some(identity), Some(realm)) = (cx.facts.keys.current(), cx.facts.roster()) else {
        return Err(Refusal::code(Code::NoIdentity, "this machine is in no team"));
    };
    let now = cx.now();
    let mut grants = match behalf.and_then(|task| task.grants.as_deref()).map(parsed) {
        Some(Value::Array(grants)) => grants,
        _ => Vec::new(),
    };
    let new = NewGrant {
        realm: realm.realm(),
        task,
        from: from.clone(),
        to: to.clone(),
        ts: now,
        exp: None,
        max_depth: narrowed.and_then(|narrowed| narrowed.max_depth),
        scope: narrowed.and_then(|narrowed| narrowed.scope.clone()),
    };
    let next = match create_grant(identity.signing(), &new, grants.last()) {
        Ok(next) => next,
        Err(error) => return Ok(Err(error.code())),
    };
    grants.push(next);
    let grants = Value::Array(grants);
    let hop = Hop { by: identity.machine(), from: from.clone(), to: to.clone(), task };
    Ok(match verify_chain(&grants, realm, &hop, now) {
        Ok(summary) => Ok(Chain { grants, summary }),
        Err(error) => Err(error.code()),
    })
}

fn peer(target: &Target) -> Peer {
    Peer {
        person: target.person.clone(),
        device: target.device,
        label: target.label.clone(),
        agent: Some(target.session.clone()),
    }
}

fn record(
    session: &Session,
    target: &Target,
    outgoing: &Outgoing,
    task: Ulid,
    message: &Value,
    chain: Option<Summary>,
    ended: Option<Ending>,
) -> NewTask {
    NewTask {
        id: task,
        role: TaskRole::Requester,
        mailbox: session.mailbox,
        session: session.name.clone(),
        peer: peer(target),
        context: outgoing.context.clone(),
        request: outgoing.envelope,
        title: message.get("parts").map(preview_of).unwrap_or_default(),
        chain,
        grants: None,
        message: canonical(message),
        ended,
    }
}

/// The requester's record of a request that is not sent: rejected, without grants.
fn refused(
    cx: &mut Ctx<'_, '_>,
    session: &Session,
    target: &Target,
    outgoing: &Outgoing,
    message: &Value,
    code: Code,
) -> Outcome<()> {
    let Some(task) = outgoing.task else { return Ok(()) };
    let ended = delivery_rejected(TaskState::Submitted, &code.into());
    let new = record(session, target, outgoing, task, message, None, ended);
    Ok(tasks::create(cx, new, Origin::Local)?)
}

#[allow(clippy::too_many_arguments)]
fn store(
    cx: &mut Ctx<'_, '_>,
    session: &Session,
    target: &Target,
    outgoing: &Outgoing,
    ready: Ready,
    asks: Option<Ulid>,
    message: &Value,
    chain: Option<Chain>,
) -> Outcome<()> {
    let what = What::Mail { mailbox: session.mailbox, to: outgoing.to.clone(), asks };
    post::queue(cx, ready, Some(what))?;
    if let Some(task) = asks {
        let new = record(session, target, outgoing, task, message, chain.map(|chain| chain.summary), None);
        tasks::create(cx, new, Origin::Local)?;
    } else if let Some(task) = outgoing.task {
        let follow_up =
            FollowUp { envelope: outgoing.envelope, message: outgoing.message.to_string(), at: cx.now() };
        tasks::followed_up(cx, &task, follow_up, &canonical(message))?;
    }
    Ok(())
}

impl Outgoing {
    /// `SendResult`, with the stage the send has by now.
    pub(crate) fn result(&self, cx: &Ctx<'_, '_>) -> Outcome<Value> {
        let (stage, code) = match self.refused {
            Some(code) => (Stage::Rejected, Some(CodeText::from(code))),
            None => sent::get(cx.txn, &self.envelope)?
                .and_then(|sent| sent.last().map(|last| (last.stage, last.code.clone())))
                .unwrap_or((Stage::Accepted, None)),
        };
        let mut result = Object::new();
        result.set("to", Value::text(self.to.to_string()));
        result.set("envelopeId", Value::text(self.envelope.as_str()));
        result.set("messageId", Value::text(self.message.as_str()));
        result.set("contextId", Value::text(self.context.as_str()));
        set(&mut result, "taskId", self.task.map(|task| Value::text(task.as_str())));
        // What was held or handed on by now is delivered, as far as a send says (contract ipc §2).
        let shown = match stage {
            Stage::Held | Stage::HandedToAgent | Stage::Read | Stage::Replied => Stage::Delivered,
            stage => stage,
        };
        result.set("stage", Value::text(shown.as_str()));
        set(&mut result, "code", code.map(|code| Value::text(code.as_str())));
        // §8.2: no hint for what does not arrive.
        let arrives = !matches!(shown, Stage::Rejected | Stage::Expired);
        set(&mut result, "expect", self.expect.filter(|_| arrives).map(Value::text));
        Ok(result.into())
    }
}

fn invalid(text: &'static str, field: &'static str) -> Refusal {
    RpcError::new(Code::InvalidRequest, text).at(field).into()
}
