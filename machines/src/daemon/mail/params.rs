//! The params of `msg.send`, `inbox.*` and `item.read` (contract ipc §3).

use super::calls::{Ack, InboxList, SendCall};
use super::send::OnBehalf;
use super::thread::{Place, With};
use crate::daemon::ipc::params::{Int, List, SessionKey, Text, only};
use crate::daemon::text::canonical;
use messaging_proto::a2a::Part;
use messaging_proto::address::ConvRef;
use messaging_proto::json::{Fields, FromValue, Invalid, Object, Value};
use messaging_proto::name::{ScopeLabel, SessionName};
use messaging_proto::payload::MessageKind;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;

/// The most bytes of `metadata` as canonical text.
const METADATA_BYTES: usize = 16_384;

/// What the role serves.
#[derive(Clone, Debug)]
pub enum Call {
    /// `msg.send`.
    Send(Box<SendCall>),
    /// `inbox.list`.
    InboxList(InboxList),
    /// `inbox.get`.
    InboxGet {
        /// The session.
        key: String,
        /// The item.
        id: Ulid,
        /// Whether the message comes with it.
        message: bool,
    },
    /// `inbox.ack`.
    InboxAck(Ack),
    /// `item.read`.
    ItemRead {
        /// The session.
        key: String,
        /// The item, or a sent envelope.
        id: Ulid,
    },
    /// `conv.read`.
    ConvRead(Box<ConvRead>),
    /// `agents.list`.
    AgentsList,
    /// `agents.read`.
    AgentsRead(Box<AgentsRead>),
}

/// A place in a conversation, in either form.
#[derive(Clone, Debug)]
pub(crate) enum Cursor {
    /// A line's `seq`.
    Line(u64),
    /// An entry's `{at, id}`.
    Entry(Place),
}

impl FromValue for Cursor {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        if let Ok(seq) = u64::from_value(value) {
            return Ok(Self::Line(seq));
        }
        Place::from_value(value).map(Self::Entry)
    }
}

impl FromValue for Place {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        only(&fields, &["at", "id"])?;
        Ok(Self { at: Wall(fields.req("at")?), id: fields.req("id")? })
    }
}

/// `conv.read`.
#[derive(Clone, Debug)]
pub struct ConvRead {
    pub(crate) key: Option<String>,
    pub(crate) conversation: ConvRef,
    pub(crate) thread: Option<Ulid>,
    pub(crate) before: Option<Cursor>,
    pub(crate) after: Option<Cursor>,
    pub(crate) limit: Option<usize>,
}

/// `agents.read`.
#[derive(Clone, Debug)]
pub struct AgentsRead {
    pub(crate) agent: SessionName,
    pub(crate) with: Option<With>,
    pub(crate) before: Option<Place>,
    pub(crate) limit: usize,
}

/// Reads `conv.read`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn conv_read(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["key", "conversation", "thread", "before", "after", "limit"])?;
    let read = ConvRead {
        key: params.opt::<SessionKey>("key")?.map(|key| key.as_str().to_owned()),
        conversation: params.req("conversation")?,
        thread: params.opt("thread")?,
        before: params.opt("before")?,
        after: params.opt("after")?,
        limit: params.opt::<Int<1, 100>>("limit")?.and_then(|limit| usize::try_from(limit.0).ok()),
    };
    if read.before.is_some() && read.after.is_some() {
        return Err(Invalid::at("after"));
    }
    Ok(Call::ConvRead(Box::new(read)))
}

/// Reads `agents.list`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn agents_list(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &[])?;
    Ok(Call::AgentsList)
}

/// Reads `agents.read`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn agents_read(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["agent", "conversation", "before", "limit"])?;
    let with = match params.opt::<ConvRef>("conversation")? {
        None => None,
        Some(ConvRef::Agent { person, agent }) => Some(With { person, agent }),
        Some(ConvRef::Room(_)) => return Err(Invalid::at("conversation")),
    };
    Ok(Call::AgentsRead(Box::new(AgentsRead {
        agent: params.req("agent")?,
        with,
        before: params.opt("before")?,
        limit: limit::<100>(params, 30)?,
    })))
}

/// `Part[1..32]`, as it came.
pub(crate) struct Parts(pub(crate) Value);

impl FromValue for Parts {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        List::<Part, 1, 32>::from_value(value)?;
        Ok(Self(value.clone()))
    }
}

/// A list of texts or ids, as it came.
struct Strings<const MIN: usize, const MAX: usize>(Value);

impl<const MIN: usize, const MAX: usize> FromValue for Strings<MIN, MAX> {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        List::<Text<MIN, MAX>, 0, 16>::from_value(value)?;
        Ok(Self(value.clone()))
    }
}

struct Behalf(OnBehalf);

impl FromValue for Behalf {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        only(&fields, &["taskId", "scope", "maxDepth"])?;
        Ok(Self(OnBehalf {
            task: fields.req("taskId")?,
            scope: fields.opt::<List<ScopeLabel, 0, 16>>("scope")?.map(|list| list.0),
            max_depth: fields.opt::<Int<1, 4>>("maxDepth")?.map(|depth| depth.0),
        }))
    }
}

struct Contact;

impl FromValue for Contact {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        only(&fields, &["contact"])?;
        fields.req::<Text<3, 254>>("contact")?;
        Ok(Self)
    }
}

struct Metadata(Value);

impl FromValue for Metadata {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        Object::from_value(value)?;
        if canonical(value).len() > METADATA_BYTES { Err(Invalid::new()) } else { Ok(Self(value.clone())) }
    }
}

fn key(params: &Fields<'_>) -> Result<String, Invalid> {
    Ok(params.req::<SessionKey>("key")?.as_str().to_owned())
}

/// Reads `msg.send`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn send(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(
        params,
        &[
            "key",
            "to",
            "kind",
            "parts",
            "replyTo",
            "contextId",
            "taskId",
            "messageId",
            "metadata",
            "extensions",
            "referenceTaskIds",
            "onBehalfOf",
            "wake",
            "idempotencyKey",
            "request",
        ],
    )?;
    let references = params.opt::<List<Ulid, 0, 32>>("referenceTaskIds")?;
    Ok(Call::Send(Box::new(SendCall {
        key: key(params)?,
        to: params.req::<Text<1, 256>>("to")?.0,
        kind: params.opt("kind")?.unwrap_or(MessageKind::Message),
        parts: params.req::<Parts>("parts")?.0,
        reply_to: params.opt("replyTo")?,
        context: params.opt("contextId")?,
        task: params.opt("taskId")?,
        message: params.opt("messageId")?,
        metadata: params.opt::<Metadata>("metadata")?.map(|metadata| metadata.0),
        extensions: params.opt::<Strings<1, 256>>("extensions")?.map(|list| list.0),
        references: references.and_then(|_| params.raw("referenceTaskIds").cloned()),
        on_behalf_of: params.opt::<Behalf>("onBehalfOf")?.map(|behalf| behalf.0),
        wake: params.opt("wake")?,
        idempotency_key: params.opt::<Text<1, 128>>("idempotencyKey")?.map(|text| text.0),
        request: params.opt::<Contact>("request")?.is_some(),
        raw: Value::Object(params.object().clone()),
    })))
}

/// Reads `inbox.list`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn inbox_list(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["key", "unreadOnly", "kind", "limit", "cursor"])?;
    Ok(Call::InboxList(InboxList {
        key: key(params)?,
        unread_only: params.opt("unreadOnly")?.unwrap_or(false),
        kind: params.opt("kind")?,
        limit: limit::<200>(params, 50)?,
        cursor: params.opt::<Text<1, 512>>("cursor")?.map(|text| text.0),
    }))
}

/// The param `limit`, from 1 to `MAX`.
pub(crate) fn limit<const MAX: u64>(params: &Fields<'_>, default: usize) -> Result<usize, Invalid> {
    let limit = params.opt::<Int<1, MAX>>("limit")?;
    Ok(limit.and_then(|limit| usize::try_from(limit.0).ok()).unwrap_or(default))
}

/// Reads `inbox.get`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn inbox_get(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["key", "id", "message"])?;
    Ok(Call::InboxGet {
        key: key(params)?,
        id: params.req("id")?,
        message: params.opt("message")?.unwrap_or(false),
    })
}

/// Reads `inbox.ack`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn inbox_ack(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["key", "ids", "stage"])?;
    let read = match params.raw("stage").and_then(Value::as_str) {
        Some("handed_to_agent") => false,
        Some("read") => true,
        _ => return Err(Invalid::at("stage")),
    };
    Ok(Call::InboxAck(Ack { key: key(params)?, ids: params.req::<List<Ulid, 1, 100>>("ids")?.0, read }))
}

/// Reads `item.read`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn item_read(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["key", "id"])?;
    Ok(Call::ItemRead { key: key(params)?, id: params.req("id")? })
}
