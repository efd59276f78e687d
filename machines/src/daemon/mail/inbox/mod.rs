//! What waits for this machine's agents (`messaging/1 §8.2`, `inbox.*`, `item.read`).
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `inbox` | mailbox ‖ number | [`Item`] |
//! | `inbox_unread` | mailbox ‖ number | nothing: items whose stage is not `read` |
//! | `inbox_id` | mailbox ‖ envelope id | number |
//! | `inbox_message` | mailbox ‖ number | the message's canonical text, provenance written |
//! | `quota` | device | [`Held`]: what is held from a machine |
//!
//! Numbers rise with arrival and are never reused, so they order items even when the clock steps back. The message
//! is apart from the item, so that a list reads no message.

use super::peer::{Peer, set};
use super::thread::{self, Place, With};
use crate::daemon::ctx::{Ctx, obj};
use crate::daemon::due::{self, days};
use crate::daemon::rows::{self, Key};
use crate::daemon::sessions::rows as sessions;
use crate::daemon::tasks::view;
use crate::store::{Range, StoreDown, Table, Txn};
use messaging_proto::consent::Class;
use messaging_proto::delegation::Summary;
use messaging_proto::json::{Object, Value};
use messaging_proto::key::MachineId;
use messaging_proto::payload::MessageKind;
use messaging_proto::task::Stage;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use serde::{Deserialize, Serialize};
use std::ops::Bound;

pub(crate) const INBOX: Table = Table("inbox");
pub(crate) const UNREAD: Table = Table("inbox_unread");
pub(crate) const BY_ID: Table = Table("inbox_id");
pub(crate) const MESSAGE: Table = Table("inbox_message");
pub(crate) const QUOTA: Table = Table("quota");

/// The most unread items that are counted one by one.
const UNREAD_MOST: usize = 10_000;

/// One received item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Item {
    /// The envelope.
    pub(crate) id: Ulid,
    /// Who wrote it.
    pub(crate) from: Peer,
    /// Whether it asks for a task.
    pub(crate) kind: MessageKind,
    /// Its message.
    pub(crate) message: String,
    /// Its context.
    pub(crate) context: String,
    /// The task it asks for or continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<Ulid>,
    /// What it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reply_to: Option<Ulid>,
    /// Its text in short.
    pub(crate) preview: String,
    /// When it arrived.
    pub(crate) at: Wall,
    /// How far it came here: `delivered`, `handed_to_agent` or `read`.
    pub(crate) stage: Stage,
    /// Whether its session's client may be woken for it.
    pub(crate) wake: bool,
    /// With whose permissions it is handled.
    pub(crate) consent: Class,
    /// Its verified chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chain: Option<Summary>,
    /// Whether it continues a task.
    pub(crate) continuation: bool,
    /// Bytes it counts for in the quota.
    pub(crate) bytes: u64,
    /// The mailbox's turn when it was read: what an earlier holder read is not shown again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) read_in: Option<u32>,
}

impl Item {
    /// `InboxItem` (contract ipc §2).
    pub(crate) fn to_value(&self, key: &str) -> Value {
        let kind = match self.kind {
            MessageKind::Message => "message",
            MessageKind::Task => "task",
        };
        let mut view = Object::new();
        view.set("id", Value::text(self.id.as_str()));
        view.set("key", Value::text(key));
        view.set("kind", Value::text(kind));
        view.set("from", self.from.to_value());
        view.set("messageId", Value::text(self.message.as_str()));
        view.set("contextId", Value::text(self.context.as_str()));
        set(&mut view, "taskId", self.task.map(|id| Value::text(id.as_str())));
        set(&mut view, "replyTo", self.reply_to.map(|id| Value::text(id.as_str())));
        view.set("preview", Value::text(self.preview.as_str()));
        view.set("at", Value::int(self.at.0));
        view.set("stage", Value::text(self.stage.as_str()));
        view.set("wake", Value::Bool(self.wake));
        let class = match self.consent {
            Class::Own => "self",
            Class::Guarded => "guarded",
            Class::Trusted => "trusted",
        };
        view.set("consent", Value::text(class));
        set(&mut view, "chain", self.chain.as_ref().map(view::chain));
        view.set("continuation", Value::Bool(self.continuation));
        view.into()
    }

    fn hidden(&self, turn: u32) -> bool {
        self.read_in.is_some_and(|read_in| read_in < turn)
    }
}

/// What is held from one machine (`§8.3`, quota).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    /// Items.
    pub(crate) items: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
}

/// What is held from a machine.
pub(crate) fn held_from(txn: &Txn<'_>, device: &MachineId) -> Result<Held, StoreDown> {
    Ok(rows::get(txn, QUOTA, &Key::new().bytes(&device.0))?.unwrap_or_default())
}

/// Whether a mailbox has an item with this id.
pub(crate) fn has(txn: &Txn<'_>, mailbox: u64, id: &Ulid) -> Result<bool, StoreDown> {
    rows::has(txn, BY_ID, &Key::new().num(mailbox).text(id.as_str()))
}

/// Stores an item and its message, and tells the session.
pub(crate) fn add(cx: &mut Ctx<'_, '_>, mailbox: u64, item: &Item, message: &str) -> Result<(), StoreDown> {
    let number = rows::next(cx.txn, "inbox")?;
    let key = Key::new().num(mailbox).num(number);
    rows::put(cx.txn, INBOX, &key, item);
    rows::mark(cx.txn, UNREAD, &key);
    rows::put(cx.txn, BY_ID, &Key::new().num(mailbox).text(item.id.as_str()), &number);
    rows::put(cx.txn, MESSAGE, &key, &message);
    if let Some((with, place)) = in_thread(item) {
        thread::add(cx.txn, mailbox, &with, &place, thread::Kind::In(number));
    }
    let mut held = held_from(cx.txn, &item.from.device)?;
    held.items += 1;
    held.bytes += item.bytes;
    rows::put(cx.txn, QUOTA, &Key::new().bytes(&item.from.device.0), &held);
    rows::count(cx.txn, "inbox_waiting", 1)?;
    let mut owner = sessions::mailbox(cx.txn, mailbox)?;
    owner.unread += 1;
    sessions::put_mailbox(cx.txn, mailbox, &owner);
    if let Some(session_key) = &owner.key {
        let event = obj([
            ("type", Value::text("inbox")),
            ("key", Value::text(session_key.as_str())),
            ("item", item.to_value(session_key)),
        ]);
        cx.event_key(session_key, &event);
    }
    Ok(())
}

/// Where an item stands in the conversation with its author. A task's request stands there as its task.
fn in_thread(item: &Item) -> Option<(With, Place)> {
    let agent = item.from.agent.clone().filter(|_| item.kind == MessageKind::Message)?;
    Some((With { person: item.from.person.clone(), agent }, Place { at: item.at, id: item.id }))
}

/// Whether an item waits that no client was handed (`daemon.health`, `busy`).
pub(crate) fn any_waiting(txn: &Txn<'_>) -> Result<bool, StoreDown> {
    Ok(rows::counted(txn, "inbox_waiting")? > 0)
}

/// An item of a mailbox by its envelope's id, with its number.
pub(crate) fn find(txn: &Txn<'_>, mailbox: u64, id: &Ulid) -> Result<Option<(u64, Item)>, StoreDown> {
    let by_id = Key::new().num(mailbox).text(id.as_str());
    let Some(number) = rows::get::<u64>(txn, BY_ID, &by_id)? else { return Ok(None) };
    let turn = sessions::mailbox(txn, mailbox)?.turn;
    let item = rows::get::<Item>(txn, INBOX, &Key::new().num(mailbox).num(number))?;
    Ok(item.filter(|item| !item.hidden(turn)).map(|item| (number, item)))
}

/// An item of a mailbox by its number, hidden or not.
pub(crate) fn get(txn: &Txn<'_>, mailbox: u64, number: u64) -> Result<Option<Item>, StoreDown> {
    rows::get(txn, INBOX, &Key::new().num(mailbox).num(number))
}

/// The items of a mailbox that were not read.
pub(crate) fn unread(txn: &Txn<'_>, mailbox: u64) -> Result<Vec<Item>, StoreDown> {
    let mut items = Vec::new();
    for (key, _) in txn.prefix(UNREAD, Key::new().num(mailbox).as_slice(), UNREAD_MOST)? {
        items.extend(get(txn, mailbox, rows::last_num(&key))?);
    }
    Ok(items)
}

/// An item's message.
pub(crate) fn message(txn: &Txn<'_>, mailbox: u64, number: u64) -> Result<Value, StoreDown> {
    let text = rows::get::<String>(txn, MESSAGE, &Key::new().num(mailbox).num(number))?;
    Ok(text.map_or(Value::Null, |text| crate::daemon::text::parsed(&text)))
}

/// Moves an item to a later stage. Whether it moved.
pub(crate) fn advance(
    cx: &mut Ctx<'_, '_>,
    mailbox: u64,
    number: u64,
    item: &mut Item,
    stage: Stage,
) -> Result<bool, StoreDown> {
    if item.stage == stage || item.stage.advance(stage) != stage {
        return Ok(false);
    }
    let key = Key::new().num(mailbox).num(number);
    if item.stage == Stage::Delivered {
        rows::count(cx.txn, "inbox_waiting", -1)?;
    }
    item.stage = stage;
    if stage == Stage::Read {
        rows::delete(cx.txn, UNREAD, &key);
        let mut owner = sessions::mailbox(cx.txn, mailbox)?;
        owner.unread = owner.unread.saturating_sub(1);
        item.read_in = Some(owner.turn);
        sessions::put_mailbox(cx.txn, mailbox, &owner);
        let after = cx.now().plus(days(cx.facts.config.retention().read_days));
        due::at(cx.txn, after, due::Kind::Inbox, &key);
    }
    rows::put(cx.txn, INBOX, &key, item);
    Ok(true)
}

/// A page of a mailbox.
#[derive(Debug)]
pub(crate) struct Page {
    /// The items, newest first.
    pub(crate) items: Vec<Item>,
    /// Where the next page starts, when there is one.
    pub(crate) next: Option<u64>,
}

/// Items of a mailbox, newest first, from before `before`.
pub(crate) fn page(
    txn: &Txn<'_>,
    mailbox: u64,
    unread_only: bool,
    kind: Option<MessageKind>,
    limit: usize,
    before: Option<u64>,
) -> Result<Page, StoreDown> {
    let turn = sessions::mailbox(txn, mailbox)?.turn;
    let from = Key::new().num(mailbox);
    let mut scan = before.unwrap_or(u64::MAX);
    let mut shown = scan;
    let mut page = Page { items: Vec::new(), next: None };
    loop {
        let to = Key::new().num(mailbox).num(scan);
        let range = Range {
            from: Bound::Included(from.as_slice()),
            to: Bound::Excluded(to.as_slice()),
            reverse: true,
            limit: limit + 1,
        };
        let table = if unread_only { UNREAD } else { INBOX };
        let found = txn.range(table, range)?;
        let all = found.len() <= limit;
        for (key, value) in found {
            scan = rows::last_num(&key);
            let item = if unread_only {
                rows::get::<Item>(txn, INBOX, &Key::new().num(mailbox).num(scan))?
            } else {
                rows::decode::<Item>(&value)
            };
            let Some(item) = item else { continue };
            if item.hidden(turn) || kind.is_some_and(|kind| kind != item.kind) {
                continue;
            }
            if page.items.len() == limit {
                page.next = Some(shown);
                return Ok(page);
            }
            page.items.push(item);
            shown = scan;
        }
        if all {
            return Ok(page);
        }
    }
}

/// Removes an item. It no longer counts for its sender's quota.
pub(crate) fn remove(txn: &mut Txn<'_>, mailbox: u64, number: u64) -> Result<(), StoreDown> {
    let key = Key::new().num(mailbox).num(number);
    let Some(item) = rows::get::<Item>(txn, INBOX, &key)? else { return Ok(()) };
    for table in [INBOX, UNREAD, MESSAGE] {
        rows::delete(txn, table, &key);
    }
    rows::delete(txn, BY_ID, &Key::new().num(mailbox).text(item.id.as_str()));
    if let Some((with, place)) = in_thread(&item) {
        thread::remove(txn, mailbox, &with, &place);
    }
    let mut held = held_from(txn, &item.from.device)?;
    held.items = held.items.saturating_sub(1);
    held.bytes = held.bytes.saturating_sub(item.bytes);
    rows::put(txn, QUOTA, &Key::new().bytes(&item.from.device.0), &held);
    if item.stage == Stage::Delivered {
        rows::count(txn, "inbox_waiting", -1)?;
    }
    if item.stage != Stage::Read {
        let mut owner = sessions::mailbox(txn, mailbox)?;
        owner.unread = owner.unread.saturating_sub(1);
        sessions::put_mailbox(txn, mailbox, &owner);
    }
    Ok(())
}

/// Removes up to `limit` items of a mailbox nobody owns. Whether more are left.
pub(crate) fn empty(txn: &mut Txn<'_>, mailbox: u64, limit: usize) -> Result<bool, StoreDown> {
    let rows = txn.prefix(INBOX, Key::new().num(mailbox).as_slice(), limit + 1)?;
    let more = rows.len() > limit;
    for (key, _) in rows.iter().take(limit) {
        remove(txn, mailbox, rows::last_num(key))?;
    }
    Ok(more)
}

/// A read item's retention is over.
pub(crate) fn retention_over(txn: &mut Txn<'_>, key: &[u8]) -> Result<(), StoreDown> {
    let Some(mailbox) = key.first_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes)) else { return Ok(()) };
    remove(txn, mailbox, rows::last_num(key))
}

/// A mailbox that lost its session is emptied, a bounded number of items at a time.
pub(crate) fn orphaned(cx: &mut Ctx<'_, '_>, key: &[u8]) -> Result<(), StoreDown> {
    let mailbox = rows::last_num(key);
    if sessions::mailbox(cx.txn, mailbox)?.key.is_some() {
        return Ok(());
    }
    if empty(cx.txn, mailbox, due::STEP)? {
        let now = cx.now();
        due::at(cx.txn, now, due::Kind::Mailbox, &Key::new().num(mailbox));
    } else {
        sessions::remove_mailbox(cx.txn, mailbox);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
