//! Conversations between agents, as an agent and as its person read them (contract ipc §3 `conv.read`, §4
//! `agents.*`). Reading changes no stage and sends no receipt.

use super::params::{AgentsRead, ConvRead, Cursor};
use super::thread::{self, Page, With};
use crate::daemon::chats::{self, read::ReadLines};
use crate::daemon::ctx::{Answer, Ctx, Outcome, Refusal, obj};
use crate::daemon::directory;
use crate::daemon::ipc::RpcError;
use crate::daemon::sessions::{self, rows as session_rows};
use messaging_proto::Code;
use messaging_proto::address::{ConvRef, RoomRef};
use messaging_proto::json::{Object, Value};
use std::cmp::Reverse;

/// `conv.read`.
pub(super) fn conv_read(cx: &Ctx<'_, '_>, call: &ConvRead) -> Outcome<Answer> {
    match &call.conversation {
        ConvRef::Room(room) => lines(cx, call, room),
        ConvRef::Agent { person, agent } => {
            entries(cx, call, &With { person: person.clone(), agent: agent.clone() })
        }
    }
}

/// A chat's lines.
fn lines(cx: &Ctx<'_, '_>, call: &ConvRead, room: &RoomRef) -> Outcome<Answer> {
    let seq = |cursor: &Option<Cursor>, field| match cursor {
        None => Ok(None),
        Some(Cursor::Line(seq)) => Ok(Some(*seq)),
        Some(Cursor::Entry(_)) => Err(invalid("a chat is paged by seq", field)),
    };
    let (before, after) = (seq(&call.before, "before")?, seq(&call.after, "after")?);
    chats::read::conv_read(cx, &ReadLines { room, thread: call.thread, before, after, limit: call.limit })
}

fn entries(cx: &Ctx<'_, '_>, call: &ConvRead, with: &With) -> Outcome<Answer> {
    if call.thread.is_some() {
        return Err(invalid("a conversation with an agent has no threads", "thread"));
    }
    let Some(key) = &call.key else { return Err(invalid("a session's conversation needs its key", "key")) };
    let page = match (&call.before, &call.after) {
        (None, None) => Page::Latest,
        (Some(Cursor::Entry(place)), None) => Page::Before(place.clone()),
        (None, Some(Cursor::Entry(place))) => Page::After(place.clone()),
        _ => return Err(invalid("a conversation with an agent is paged by at and id", "before")),
    };
    let session = sessions::of_key(cx, key)?;
    if !thread::exists(cx.txn, session.mailbox, with)? && !directory::knows(cx, with)? {
        return Err(Refusal::code(Code::NoRecipients, "no such agent is known"));
    }
    shown(cx, session.mailbox, with, &page, call.limit.unwrap_or(30))
}

fn shown(cx: &Ctx<'_, '_>, mailbox: u64, with: &With, page: &Page, limit: usize) -> Outcome<Answer> {
    let (entries, more) = thread::read(cx.txn, mailbox, with, page, limit)?;
    Ok(Answer::Now(obj([
        ("kind", Value::text("agent")),
        ("conversation", Value::text(format!("agent:{}/{}", with.person, with.agent))),
        ("entries", Value::Array(entries)),
        ("more", Value::Bool(more)),
    ])))
}

/// `agents.list`: the person's sessions here, the latest traffic first.
pub(super) fn list(cx: &Ctx<'_, '_>) -> Outcome<Answer> {
    let mut agents = Vec::new();
    for session in session_rows::all(cx.txn)? {
        let (conversations, last) = thread::count(cx.txn, session.mailbox)?;
        let unread = session_rows::mailbox(cx.txn, session.mailbox)?.unread;
        let mut agent = Object::new();
        agent.set("agent", Value::text(session.name.as_str()));
        agent.set("conversations", Value::int(conversations));
        agent.set("unread", Value::int(unread));
        if let Some(last) = last {
            agent.set("lastAt", Value::int(last.0));
        }
        agent.set("state", Value::text(if session.kept() { "kept" } else { session.state.as_str() }));
        agents.push((Reverse(last), session.name, agent));
    }
    agents.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
    let agents = agents.into_iter().map(|(_, _, agent)| agent.into()).collect();
    Ok(Answer::Now(obj([("agents", Value::Array(agents))])))
}

/// `agents.read`: what one session exchanged.
pub(super) fn read(cx: &Ctx<'_, '_>, call: &AgentsRead) -> Outcome<Answer> {
    let session = session_rows::by_name(cx.txn, &call.agent)?;
    let session = session.ok_or_else(|| {
        RpcError::new(Code::NotFound, "this machine has no session of this agent").at("agent")
    })?;
    match &call.with {
        None if call.before.is_some() => Err(invalid("before needs a conversation", "before")),
        None => {
            let conversations = thread::conversations(cx.txn, session.mailbox)?;
            Ok(Answer::Now(obj([
                ("kind", Value::text("conversations")),
                (
                    "conversations",
                    Value::Array(conversations.iter().map(thread::Conversation::to_value).collect()),
                ),
            ])))
        }
        Some(with) => {
            let page = call.before.clone().map_or(Page::Latest, Page::Before);
            let Answer::Now(Value::Object(mut answer)) = shown(cx, session.mailbox, with, &page, call.limit)?
            else {
                return Ok(Answer::ok());
            };
            answer.set("kind", Value::text("entries"));
            Ok(Answer::Now(answer.into()))
        }
    }
}

fn invalid(text: &'static str, field: &'static str) -> Refusal {
    RpcError::new(Code::InvalidRequest, text).at(field).into()
}
