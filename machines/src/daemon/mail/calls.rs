//! `msg.send`, `inbox.*` and `item.read` (contract ipc §3).

use super::inbox::{self, Item};
use super::params::Call;
use super::receipts::{self, Fate};
use super::send::{self, OnBehalf};
use super::sent::{self, What};
use super::{Mail, agents, idem};
use crate::daemon::chats;
use crate::daemon::ctx::{Answer, Ctx, Outcome, Refusal, obj};
use crate::daemon::ipc::RpcError;
use crate::daemon::secrets;
use crate::daemon::sessions;
use crate::daemon::sessions::rows::Session;
use messaging_proto::Code;
use messaging_proto::address::{Address, RoomRef};
use messaging_proto::json::{Object, Value};
use messaging_proto::name::{ChannelName, PersonId};
use messaging_proto::payload::MessageKind;
use messaging_proto::task::Stage;
use messaging_proto::ulid::Ulid;

/// `msg.send`, whatever it is addressed to.
#[derive(Clone, Debug)]
pub struct SendCall {
    pub(crate) key: String,
    pub(crate) to: String,
    pub(crate) kind: MessageKind,
    pub(crate) parts: Value,
    pub(crate) reply_to: Option<Ulid>,
    pub(crate) context: Option<Ulid>,
    pub(crate) task: Option<Ulid>,
    pub(crate) message: Option<Ulid>,
    pub(crate) metadata: Option<Value>,
    pub(crate) extensions: Option<Value>,
    pub(crate) references: Option<Value>,
    pub(crate) on_behalf_of: Option<OnBehalf>,
    pub(crate) wake: Option<bool>,
    pub(crate) idempotency_key: Option<String>,
    /// Whether `request` came with it.
    pub(crate) request: bool,
    /// The params as they came.
    pub(crate) raw: Value,
}

/// `inbox.list`.
#[derive(Clone, Debug)]
pub struct InboxList {
    pub(crate) key: String,
    pub(crate) unread_only: bool,
    pub(crate) kind: Option<MessageKind>,
    pub(crate) limit: usize,
    pub(crate) cursor: Option<String>,
}

/// `inbox.ack`.
#[derive(Clone, Debug)]
pub struct Ack {
    pub(crate) key: String,
    pub(crate) ids: Vec<Ulid>,
    pub(crate) read: bool,
}

impl Mail {
    /// Serves a call.
    pub(crate) fn call(&mut self, cx: &mut Ctx<'_, '_>, call: Call) -> Outcome<Answer> {
        match call {
            Call::Send(call) => self.send(cx, &call),
            Call::InboxList(call) => Self::inbox_list(cx, &call),
            Call::InboxGet { key, id, message } => Self::inbox_get(cx, &key, &id, message),
            Call::InboxAck(call) => Self::inbox_ack(cx, &call),
            Call::ItemRead { key, id } => Self::item_read(cx, &key, &id),
            Call::ConvRead(call) => agents::conv_read(cx, &call),
            Call::AgentsList => agents::list(cx),
            Call::AgentsRead(call) => agents::read(cx, &call),
        }
    }

    /// `msg.send`. The order of its checks is the contract's (ipc §3.1).
    fn send(&mut self, cx: &mut Ctx<'_, '_>, call: &SendCall) -> Outcome<Answer> {
        let session = sessions::of_key(cx, &call.key)?;
        let to = address(&call.to)?;
        secrets::refuse(cx, "msg.send", &call.raw)?;
        let to = match to {
            To::Session(to) => to,
            To::Line(room) => return chats::agent_send(self, cx, &session, call, &room),
        };
        let params = idem::fingerprint(&call.raw);
        if let Some(key) = &call.idempotency_key {
            match idem::earlier(cx.txn, &call.key, key, params)? {
                Ok(Some(result)) => return Ok(Answer::Now(result)),
                Ok(None) => {}
                Err(code) => {
                    let error = RpcError::new(code, "idempotencyKey was used with other params");
                    return Err(error.at("idempotencyKey").into());
                }
            }
        }
        if call.request {
            return Err(RpcError::new(
                Code::InvalidRequest,
                "request is not for a team: everybody in it may be written to",
            )
            .at("request")
            .into());
        }
        let outgoing = send::send(cx, &session, &to, call)?;
        // §8.2: what is for this machine is delivered before the answer, on the way every envelope goes.
        self.settle(cx)?;
        let result = obj([("results", Value::Array(vec![outgoing.result(cx)?]))]);
        if let Some(key) = &call.idempotency_key {
            let now = cx.now();
            idem::keep(cx.txn, &call.key, key, params, &result, now);
        }
        Ok(Answer::Now(result))
    }

    /// `inbox.list`: newest first.
    fn inbox_list(cx: &Ctx<'_, '_>, call: &InboxList) -> Outcome<Answer> {
        let session = sessions::of_key(cx, &call.key)?;
        let before = match &call.cursor {
            Some(cursor) => Some(cursor.parse::<u64>().map_err(|_| bad_cursor())?),
            None => None,
        };
        let page = inbox::page(cx.txn, session.mailbox, call.unread_only, call.kind, call.limit, before)?;
        let unread = sessions::rows::mailbox(cx.txn, session.mailbox)?.unread;
        let mut result = Object::new();
        result.set("items", Value::Array(page.items.iter().map(|item| item.to_value(&call.key)).collect()));
        result.set("unread", Value::int(unread));
        if let Some(next) = page.next {
            result.set("nextCursor", Value::text(next.to_string()));
        }
        Ok(Answer::Now(result.into()))
    }

    /// `inbox.get`: looks, and changes nothing.
    fn inbox_get(cx: &Ctx<'_, '_>, key: &str, id: &Ulid, message: bool) -> Outcome<Answer> {
        let session = sessions::of_key(cx, key)?;
        let (number, item) = inbox::find(cx.txn, session.mailbox, id)?.ok_or_else(unknown)?;
        let mut result = Object::new();
        result.set("item", item.to_value(key));
        if message {
            result.set("message", inbox::message(cx.txn, session.mailbox, number)?);
        }
        Ok(Answer::Now(result.into()))
    }

    /// `inbox.ack`: all of the ids or none. Those that were there already move nothing and send nothing.
    fn inbox_ack(cx: &mut Ctx<'_, '_>, call: &Ack) -> Outcome<Answer> {
        let session = sessions::of_key(cx, &call.key)?;
        for id in &call.ids {
            inbox::find(cx.txn, session.mailbox, id)?.ok_or_else(unknown)?;
        }
        let (stage, fate) =
            if call.read { (Stage::Read, Fate::Read) } else { (Stage::HandedToAgent, Fate::HandedToAgent) };
        let mut acked = Vec::new();
        for id in &call.ids {
            // Found again each time: an id named twice moves once.
            let Some((number, mut item)) = inbox::find(cx.txn, session.mailbox, id)? else { continue };
            if Self::advance(cx, &session, number, &mut item, stage, fate)? {
                acked.push(Value::text(id.as_str()));
            }
        }
        Ok(Answer::Now(obj([("acked", Value::Array(acked))])))
    }

    /// `item.read`: a received item, which is then read, or how far a sent one came.
    fn item_read(cx: &mut Ctx<'_, '_>, key: &str, id: &Ulid) -> Outcome<Answer> {
        let session = sessions::of_key(cx, key)?;
        if let Some((number, mut item)) = inbox::find(cx.txn, session.mailbox, id)? {
            Self::advance(cx, &session, number, &mut item, Stage::Read, Fate::Read)?;
            return Ok(Answer::Now(obj([
                ("kind", Value::text("received")),
                ("item", item.to_value(key)),
                ("message", inbox::message(cx.txn, session.mailbox, number)?),
            ])));
        }
        match sent::get(cx.txn, id)? {
            Some(sent) => match &sent.what {
                What::Mail { mailbox, to, .. } if *mailbox == session.mailbox => {
                    Ok(Answer::Now(sent::delivery(id, &sent, to)))
                }
                _ => Err(unknown()),
            },
            None => Err(unknown()),
        }
    }

    /// Moves an item and says its receipt.
    fn advance(
        cx: &mut Ctx<'_, '_>,
        session: &Session,
        number: u64,
        item: &mut Item,
        stage: Stage,
        fate: Fate,
    ) -> Outcome<bool> {
        // §6.4: receipts are sent for stages an item reaches, in stage order.
        if !inbox::advance(cx, session.mailbox, number, item, stage)? {
            return Ok(false);
        }
        receipts::say(cx, &item.from.person, item.from.device, &item.id, fate)?;
        Ok(true)
    }
}

/// Whom a send is to (contract ipc §3.1).
enum To {
    /// An agent: mail or a task.
    Session(Address),
    /// A person or a channel: a line.
    Line(RoomRef),
}

fn address(text: &str) -> Outcome<To> {
    if let Some(address) = Address::parse(text) {
        return Ok(To::Session(address));
    }
    let room = match text.strip_prefix('#') {
        Some(name) => ChannelName::parse(name).map(RoomRef::Channel),
        None => PersonId::parse(text).map(RoomRef::Dm),
    };
    if let Some(room) = room {
        return Ok(To::Line(room));
    }
    Err(RpcError::new(Code::InvalidRequest, "to is no address").at("to").into())
}

fn unknown() -> Refusal {
    RpcError::new(Code::NotFound, "the session has no such item").at("id").into()
}

fn bad_cursor() -> Refusal {
    RpcError::new(Code::InvalidRequest, "cursor is not one of this method").at("cursor").into()
}
