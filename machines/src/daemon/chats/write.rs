//! Lines written here: `person.send`, and `msg.send` to a person or a channel (`messaging/1 §6.8`, `§8.2`; contract
//! ipc §3.1, §4).
//!
//! Everything is checked and sealed before anything is written, so a refusal leaves nothing.

use super::delivery::first_state;
use super::lines::Row;
use super::out::{self, Said, To};
use super::receive::carry_out;
use super::{channels, read, view};
use crate::daemon::ctx::{Answer, Ctx, Outcome, Refusal, obj};
use crate::daemon::ipc::RpcError;
use crate::daemon::mail::calls::SendCall;
use crate::daemon::mail::{Mail, idem};
use crate::daemon::secrets;
use crate::daemon::sessions::rows::Session;
use crate::machine::Label;
use messaging_proto::Code;
use messaging_proto::a2a::{Part, PartContent};
use messaging_proto::address::RoomRef;
use messaging_proto::channel::{Arrival, Channel, Effect, Line, fan_out, fan_out_direct};
use messaging_proto::envelope::End;
use messaging_proto::hash::Hash;
use messaging_proto::json::Value;
use messaging_proto::limits::CHAT_CHARS;
use messaging_proto::name::{PersonId, SessionName};
use messaging_proto::payload::{ChannelOp, MessageKind};
use messaging_proto::ulid::Ulid;
use messaging_proto::units::utf16_len;

/// `person.send`.
#[derive(Clone, Debug)]
pub struct PersonSend {
    pub(crate) room: RoomRef,
    pub(crate) text: String,
    pub(crate) thread: Option<Ulid>,
    pub(crate) client_id: Option<String>,
    /// The params as they came.
    pub(crate) raw: Value,
}

/// A line to be written.
struct NewLine<'a> {
    room: &'a RoomRef,
    text: &'a str,
    /// Any line of the thread.
    thread: Option<Ulid>,
    /// The session that writes it.
    agent: Option<&'a SessionName>,
    fields: Fields,
}

/// The params of a call, by what they say.
#[derive(Clone, Copy)]
struct Fields {
    room: &'static str,
    text: &'static str,
    thread: &'static str,
    key: &'static str,
}

const PERSON_FIELDS: Fields =
    Fields { room: "conversation", text: "text", thread: "thread", key: "clientId" };
const AGENT_FIELDS: Fields =
    Fields { room: "to", text: "parts[0].text", thread: "replyTo", key: "idempotencyKey" };

/// The person's own place among the idempotency keys: no session key is this short.
const PERSON: &str = "";

/// Serves `person.send`.
pub(super) fn person_send(mail: &mut Mail, cx: &mut Ctx<'_, '_>, call: &PersonSend) -> Outcome<Answer> {
    secrets::refuse(cx, "person.send", &call.raw)?;
    let line = NewLine {
        room: &call.room,
        text: &call.text,
        thread: call.thread,
        agent: None,
        fields: PERSON_FIELDS,
    };
    let key = call.client_id.as_deref().map(|id| Key::new(cx, &line, PERSON, id)).transpose()?;
    if let Some(earlier) = repeated(cx, key.as_ref(), &line)? {
        return Ok(Answer::Now(earlier));
    }
    fits(&line)?;
    let (seq, row) = write(mail, cx, &line)?;
    let result = obj([("line", view::line(seq, &row).into())]);
    keep(cx, key, &result);
    Ok(Answer::Now(result))
}

/// Serves `msg.send` to a person or a channel. Its address and its credentials were checked.
pub(crate) fn agent_send(
    mail: &mut Mail,
    cx: &mut Ctx<'_, '_>,
    session: &Session,
    call: &SendCall,
    room: &RoomRef,
) -> Outcome<Answer> {
    let text = only_text(&call.parts);
    let line = NewLine {
        room,
        text: text.as_deref().unwrap_or_default(),
        thread: call.reply_to,
        agent: Some(&session.name),
        fields: AGENT_FIELDS,
    };
    let key = call.idempotency_key.as_deref().map(|id| Key::new(cx, &line, &session.key, id)).transpose()?;
    if let Some(earlier) = repeated(cx, key.as_ref(), &line)? {
        return Ok(Answer::Now(earlier));
    }
    form(call, text.is_some())?;
    fits(&line)?;
    if call.request {
        return Err(invalid("a team has no message requests", "request"));
    }
    let (_, row) = write(mail, cx, &line)?;
    let id = row.line.id.as_str();
    let context = row.line.thread.unwrap_or(row.line.id);
    let result = obj([
        ("to", Value::text(call.to.as_str())),
        ("envelopeId", Value::text(id)),
        ("messageId", Value::text(id)),
        ("contextId", Value::text(context.as_str())),
        ("stage", Value::text("accepted")),
    ]);
    let result = obj([("results", Value::Array(vec![result]))]);
    keep(cx, key, &result);
    Ok(Answer::Now(result))
}

/// The text of parts that are exactly one `{text}` of at least one character.
fn only_text(parts: &Value) -> Option<String> {
    match parts.as_array()? {
        [part] if part.as_object()?.len() == 1 => {
            part.get("text")?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
        }
        _ => None,
    }
}

/// What a line has of an A2A message (contract ipc §3.1, first row).
fn form(call: &SendCall, has_text: bool) -> Outcome<()> {
    let more = [
        (call.kind != MessageKind::Message, "kind"),
        (!has_text, "parts"),
        (call.context.is_some(), "contextId"),
        (call.task.is_some(), "taskId"),
        (call.message.is_some(), "messageId"),
        (call.metadata.is_some(), "metadata"),
        (call.extensions.is_some(), "extensions"),
        (call.references.is_some(), "referenceTaskIds"),
        (call.on_behalf_of.is_some(), "onBehalfOf"),
        (call.wake.is_some(), "wake"),
    ];
    match more.into_iter().find(|(breaks, _)| *breaks) {
        Some((_, field)) => Err(invalid("a line is one text, with replyTo as its thread", field)),
        None => Ok(()),
    }
}

/// A call's idempotency key, with what the call says.
struct Key {
    sender: String,
    id: String,
    says: Hash,
}

impl Key {
    fn new(cx: &Ctx<'_, '_>, line: &NewLine<'_>, sender: &str, id: &str) -> Outcome<Self> {
        let thread = match line.thread {
            Some(thread) => Some(read::thread_of(cx, line.room, &thread)?.unwrap_or(thread)),
            None => None,
        };
        // §8.2 a repeat is the same room, thread and text, whatever else it says.
        let says = obj([
            ("room", Value::text(line.room.to_string())),
            ("thread", thread.map_or(Value::Null, |thread| Value::text(thread.as_str()))),
            ("text", Value::text(line.text)),
        ]);
        Ok(Self { sender: sender.to_owned(), id: id.to_owned(), says: idem::fingerprint(&says) })
    }
}

/// The result of the first call with this key.
fn repeated(cx: &Ctx<'_, '_>, key: Option<&Key>, line: &NewLine<'_>) -> Outcome<Option<Value>> {
    let Some(key) = key else { return Ok(None) };
    idem::earlier(cx.txn, &key.sender, &key.id, key.says)?
        .map_err(|code| RpcError::new(code, "the key was used for another line").at(line.fields.key).into())
}

fn keep(cx: &mut Ctx<'_, '_>, key: Option<Key>, result: &Value) {
    if let Some(Key { sender, id, says }) = key {
        let now = cx.now();
        idem::keep(cx.txn, &sender, &id, says, result, now);
    }
}

fn fits(line: &NewLine<'_>) -> Outcome<()> {
    if utf16_len(line.text) <= CHAT_CHARS {
        return Ok(());
    }
    Err(RpcError::new(Code::TooLarge, "the line is longer than a line may be").at(line.fields.text).into())
}

/// Where a line goes.
enum Target {
    Person(PersonId),
    Channel(Channel),
}

fn target(cx: &Ctx<'_, '_>, line: &NewLine<'_>) -> Outcome<Target> {
    let unknown = |text| Err(RpcError::new(Code::NotFound, text).at(line.fields.room).into());
    match line.room {
        RoomRef::Dm(person) if read::is_on_team(cx, person) => Ok(Target::Person(person.clone())),
        RoomRef::Dm(_) => unknown("the team has no such person"),
        RoomRef::Channel(local) => match channels::by_local(cx.txn, local)? {
            Some(channel) => Ok(Target::Channel(channel)),
            None => unknown("this person is in no such channel"),
        },
    }
}

/// Writes a line: filed here and on its way, in one transaction.
fn write(mail: &mut Mail, cx: &mut Ctx<'_, '_>, new: &NewLine<'_>) -> Outcome<(u64, Row)> {
    let (Some(me), Some(roster)) = (cx.facts.me(), cx.facts.roster()) else {
        return Err(Refusal::code(Code::NoIdentity, "this machine is in no team"));
    };
    let from = End { person: me.person.clone(), device: me.machine, agent: new.agent.cloned() };
    let target = target(cx, new)?;
    let thread = match new.thread {
        None => None,
        Some(id) => Some(read::thread_of(cx, new.room, &id)?.ok_or_else(|| {
            Refusal::Rpc(RpcError::new(Code::NotFound, "no such thread").at(new.fields.thread))
        })?),
    };
    let to: Vec<To> = match &target {
        Target::Person(person) => fan_out_direct(roster, &from.device, person)
            .into_iter()
            .map(|machine| To { person: person.clone(), machine, conv: None })
            .collect(),
        Target::Channel(channel) => fan_out(roster, &from.device, channel, &ChannelOp::Post)
            .into_iter()
            .map(|copy| To { person: copy.person, machine: copy.machine, conv: Some(copy.conv) })
            .collect(),
    };
    let mut others: Vec<PersonId> =
        to.iter().map(|to| &to.person).filter(|person| **person != from.person).cloned().collect();
    others.dedup();
    let paced = if from.agent.is_some() { others.as_slice() } else { &[] };
    let mono = cx.mono();
    if let Err(wait) = mail.pace.check(to.iter().map(|to| &to.machine), paced, mono) {
        return Err(too_fast(wait));
    }
    let said = Said {
        id: Ulid::new(cx.now(), cx.step.draw(Label::MessageId)),
        thread,
        agent: from.agent.clone(),
        text: new.text.to_owned(),
        change: None,
    };
    let sealed = out::seal(cx, &said, to)?;
    let line = line(&from, &target, &said);
    mail.pace.sent_by_agent(paced, mono);
    let filed = carry_out(cx, Effect::Filed(line), &from.person, first_state(&others), false)?;
    out::queue(mail, cx, &said, &from.person, sealed)?;
    filed.ok_or_else(|| Refusal::code(Code::Internal, "the line was not filed"))
}

/// The line as every machine files it, of the text that was sealed.
fn line(from: &End, target: &Target, said: &Said) -> Line {
    let part = Part {
        content: PartContent::Text(said.text.clone()),
        metadata: None,
        filename: None,
        media_type: None,
    };
    let arrival = Arrival { from, message: said.id, context: said.thread, conv: None, parts: &[part] };
    match target {
        Target::Person(person) => Line::direct(&from.person, person, &arrival),
        Target::Channel(channel) => Line::post(&from.person, channel, &arrival),
    }
}

/// §8.2, §6.9 "Pacing": when to try again.
fn too_fast(wait: u64) -> Refusal {
    let seconds = wait.div_ceil(1_000);
    let error = RpcError::new(Code::RateLimited, "too many lines");
    error.saying(format!("too many lines to one recipient; try again in {seconds} s")).after(wait).into()
}

fn invalid(text: &'static str, field: &'static str) -> Refusal {
    RpcError::new(Code::InvalidRequest, text).at(field).into()
}
