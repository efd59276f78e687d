//! What a `message` is, from its ends and its `conv` (`messaging/1 §5`, "Meaning").

use crate::a2a::{Message, PartContent};
use crate::envelope::{Class, End, Header};
use crate::json::{Fields, Invalid, Value};
use crate::limits::REQUEST_CHARS;
use crate::payload::{CardWhat, Conv, MessageKind, MessagePayload, Typed};
use crate::ulid::Ulid;
use crate::units::utf16_len;

/// Most grants of one sync.
pub const SYNC_GRANTS: usize = 100;

/// What a payload means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A message to an agent.
    Mail,
    /// A task for an agent.
    Task,
    /// A line between two persons, or to oneself.
    Line,
    /// A channel's change or post.
    Channel,
    /// Grants between two devices of one person.
    Sync,
    /// A request to be let through.
    Request,
    /// A contact card, or a wish for one.
    Card,
    /// Not a `message`: its type says it all.
    Other,
}

/// Finds the meaning of a payload that matches its schema, in `raw` and as `typed`.
///
/// # Errors
/// [`Invalid`] for a `message` that has none.
pub fn check(header: &Header, raw: &Value, typed: &Typed) -> Result<Meaning, Invalid> {
    let Typed::Message(payload) = typed else { return Ok(Meaning::Other) };
    let Some(to) = header.to.end() else { return Err(Invalid::new()) };
    if to.agent.is_some() {
        return to_agent(&header.from, payload);
    }
    line(payload)?;
    let asks = matches!(payload.conv, Some(Conv::Request));
    // A header says "request" exactly when its payload does.
    if asks != (header.class == Some(Class::Request)) {
        return Err(Invalid::at("conv"));
    }
    let message = raw.get("message").ok_or_else(|| Invalid::at("message"))?;
    match &payload.conv {
        None => Ok(Meaning::Line),
        Some(Conv::Channel(channel)) => {
            // A person changes a channel; an agent may only speak in it.
            let post = matches!(channel.op, crate::payload::ChannelOp::Post);
            if post || header.from.agent.is_none() { Ok(Meaning::Channel) } else { Err(Invalid::at("conv")) }
        }
        Some(Conv::Sync(_)) => {
            require(header.class == Some(Class::Own), "conv")?;
            sync(&payload.message).map(|()| Meaning::Sync)
        }
        Some(Conv::Request) => request(message, &payload.message).map(|()| Meaning::Request),
        Some(Conv::Card(what)) => {
            require(header.class == Some(Class::Contact) && header.from.agent.is_none(), "conv")?;
            card(*what, message, &payload.message).map(|()| Meaning::Card)
        }
    }
}

/// Mail and task requests go from an agent to an agent.
fn to_agent(from: &End, payload: &MessagePayload) -> Result<Meaning, Invalid> {
    require(payload.conv.is_none(), "conv")?;
    // The payload's own path: what lacks is in the header.
    if from.agent.is_none() {
        return Err(Invalid::new());
    }
    match payload.kind {
        MessageKind::Message => Ok(Meaning::Mail),
        MessageKind::Task => {
            let set = payload.message.task_id.is_some() && payload.message.context_id.is_some();
            in_message(set, "contextId").map(|()| Meaning::Task)
        }
    }
}

/// A message without an addressed agent is outside any task, and its ids are ULIDs.
fn line(payload: &MessagePayload) -> Result<(), Invalid> {
    let message = &payload.message;
    require(payload.kind == MessageKind::Message, "kind")?;
    in_message(message.task_id.is_none(), "taskId")?;
    in_message(Ulid::parse(message.message_id.as_str()).is_some(), "messageId")?;
    let context = message.context_id.as_ref();
    in_message(context.is_none_or(|id| Ulid::parse(id.as_str()).is_some()), "contextId")
}

/// One data part, `{grants}`, with 1 … [`SYNC_GRANTS`] objects. Each is judged for itself when it is applied.
fn sync(message: &Message) -> Result<(), Invalid> {
    let grants = match message.parts.as_slice() {
        [part] => match &part.content {
            PartContent::Data(data) => data.get("grants").and_then(Value::as_array),
            _ => None,
        },
        _ => None,
    };
    let fits = grants.is_some_and(|grants| {
        (1..=SYNC_GRANTS).contains(&grants.len()) && grants.iter().all(|grant| grant.as_object().is_some())
    });
    in_message(fits, "parts")
}

/// Exactly one text of 1 … `requestChars` units, and no member that could carry more.
fn request(raw: &Value, message: &Message) -> Result<(), Invalid> {
    only_part(raw, "text")?;
    let text = message.parts.first().and_then(|part| part.text()).unwrap_or_default();
    in_message((1..=REQUEST_CHARS).contains(&utf16_len(text)), "parts")
}

/// Exactly one data part that is `{card}` or `{get: true}`.
fn card(what: CardWhat, raw: &Value, message: &Message) -> Result<(), Invalid> {
    only_part(raw, "data")?;
    let data = match message.parts.first().map(|part| &part.content) {
        Some(PartContent::Data(data)) => data,
        _ => return Err(Invalid::at("parts").within("message")),
    };
    let fits = match what {
        CardWhat::Card => {
            is_only(data, "card") && data.get("card").is_some_and(|card| card.as_object().is_some())
        }
        CardWhat::Get => is_only(data, "get") && data.get("get") == Some(&Value::Bool(true)),
    };
    in_message(fits, "parts")
}

/// The message is exactly `{messageId, role, parts}`, and its one part exactly `{content}`.
fn only_part(message: &Value, content: &'static str) -> Result<(), Invalid> {
    Fields::of(message)
        .and_then(|fields| fields.closed(&["messageId", "role", "parts"]))
        .map_err(|invalid| invalid.within("message"))?;
    let fits = match message.get("parts").and_then(Value::as_array) {
        Some([part]) => is_only(part, content),
        _ => false,
    };
    in_message(fits, "parts")
}

/// Whether `value` is an object whose only member is `name`.
fn is_only(value: &Value, name: &str) -> bool {
    value.as_object().is_some_and(|object| object.len() == 1 && object.get(name).is_some())
}

fn require(holds: bool, name: &'static str) -> Result<(), Invalid> {
    if holds { Ok(()) } else { Err(Invalid::at(name)) }
}

fn in_message(holds: bool, name: &'static str) -> Result<(), Invalid> {
    require(holds, name).map_err(|invalid| invalid.within("message"))
}
