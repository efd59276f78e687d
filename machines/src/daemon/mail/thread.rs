//! What a session exchanged with one other, in time order (`messaging/1 §8.2`, `conv.read` of an agent,
//! `agents.*`).
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `thread` | mailbox ‖ person ‖ agent ‖ at (ms) ‖ id | [`Kind`] |
//!
//! An index: what an entry shows is read from the item, the sent record or the task when it is shown, so that it is
//! never older than they are. A task's request is its task, not mail too.

use super::peer::set;
use super::{inbox, sent};
use crate::daemon::ctx::obj;
use crate::daemon::rows::{self, Key};
use crate::daemon::tasks::{TaskRole, rows as tasks};
use crate::store::{Range, StoreDown, Table, Txn, prefix_end};
use messaging_proto::json::{Object, Value};
use messaging_proto::name::{PersonId, SessionName};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Bound;

pub(crate) const THREAD: Table = Table("thread");

/// The most other sessions one session is shown with.
const MOST: usize = 5_000;
/// The most conversations with agents of one person it lists.
const PER_PERSON: usize = 500;

/// What an entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Kind {
    /// An inbox item, by its number.
    In(u64),
    /// A sent envelope.
    Out,
    /// A task, by this side of it.
    Task(TaskRole),
}

/// The other session of a conversation, on whichever machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct With {
    /// Its person.
    pub(crate) person: PersonId,
    /// Its name.
    pub(crate) agent: SessionName,
}

impl With {
    fn key(&self, mailbox: u64) -> Key {
        Key::new().num(mailbox).text(self.person.as_str()).text(self.agent.as_str())
    }
}

/// A place in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// When.
    pub(crate) at: Wall,
    /// Which of that millisecond.
    pub(crate) id: Ulid,
}

fn place_key(mailbox: u64, with: &With, place: &Place) -> Key {
    with.key(mailbox).num(place.at.0).text(place.id.as_str())
}

/// Adds an entry.
pub(crate) fn add(txn: &mut Txn<'_>, mailbox: u64, with: &With, place: &Place, kind: Kind) {
    rows::put(txn, THREAD, &place_key(mailbox, with, place), &kind);
}

/// Removes an entry.
pub(crate) fn remove(txn: &mut Txn<'_>, mailbox: u64, with: &With, place: &Place) {
    rows::delete(txn, THREAD, &place_key(mailbox, with, place));
}

/// Which page is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Page {
    /// The newest.
    Latest,
    /// The newest before a place.
    Before(Place),
    /// The oldest after a place.
    After(Place),
}

/// A page of a conversation, oldest first, and whether there is more in the direction read.
pub(crate) fn read(
    txn: &Txn<'_>,
    mailbox: u64,
    with: &With,
    page: &Page,
    limit: usize,
) -> Result<(Vec<Value>, bool), StoreDown> {
    let prefix = with.key(mailbox);
    let end = prefix_end(prefix.as_slice());
    let mut to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let mut from = Bound::Included(prefix.as_slice());
    let key;
    match page {
        Page::Latest => {}
        Page::Before(place) => {
            key = place_key(mailbox, with, place);
            to = Bound::Excluded(key.as_slice());
        }
        Page::After(place) => {
            key = place_key(mailbox, with, place);
            from = Bound::Excluded(key.as_slice());
        }
    }
    let reverse = !matches!(page, Page::After(_));
    let found = txn.range(THREAD, Range { from, to, reverse, limit: limit + 1 })?;
    let more = found.len() > limit;
    let mut entries = Vec::new();
    for (key, value) in found.iter().take(limit) {
        if let (Some(place), Some(kind)) =
            (place_of(key, prefix.as_slice().len()), rows::decode::<Kind>(value))
        {
            entries.extend(entry(txn, mailbox, &place, kind)?);
        }
    }
    if reverse {
        entries.reverse();
    }
    Ok((entries, more))
}

fn place_of(key: &[u8], from: usize) -> Option<Place> {
    let at = u64::from_be_bytes(*key.get(from..)?.first_chunk()?);
    let (id, _) = rows::text_at(key, from + 8)?;
    Some(Place { at: Wall(at), id: Ulid::parse(&id)? })
}

/// `ConvEntry` (contract ipc §2); nothing for what is gone.
fn entry(txn: &Txn<'_>, mailbox: u64, place: &Place, kind: Kind) -> Result<Option<Value>, StoreDown> {
    let mut entry = Object::new();
    entry.set("id", Value::text(place.id.as_str()));
    entry.set("at", Value::int(place.at.0));
    match kind {
        Kind::In(number) => {
            let Some(item) = inbox::get(txn, mailbox, number)? else { return Ok(None) };
            entry.set("type", Value::text("mail"));
            entry.set("direction", Value::text("in"));
            entry.set("preview", Value::text(item.preview));
            entry.set("stage", Value::text(item.stage.as_str()));
            set(&mut entry, "taskId", item.task.map(|task| Value::text(task.as_str())));
            set(&mut entry, "replyTo", item.reply_to.map(|id| Value::text(id.as_str())));
        }
        Kind::Out => {
            let Some(sent) = sent::get(txn, &place.id)? else { return Ok(None) };
            entry.set("type", Value::text("mail"));
            entry.set("direction", Value::text("out"));
            entry.set("stage", Value::text(sent.stage().as_str()));
        }
        Kind::Task(role) => {
            let Some(task) = tasks::get(txn, &place.id, role)? else { return Ok(None) };
            let direction = if role == TaskRole::Requester { "out" } else { "in" };
            entry.set("type", Value::text("task"));
            entry.set("direction", Value::text(direction));
            entry.set("preview", Value::text(task.title));
            entry.set("role", Value::text(role.as_str()));
            entry.set("state", Value::text(task.status.state.as_str()));
            entry.set("taskId", Value::text(task.id.as_str()));
        }
    }
    Ok(Some(entry.into()))
}

/// Whether a session exchanged anything with another.
pub(crate) fn exists(txn: &Txn<'_>, mailbox: u64, with: &With) -> Result<bool, StoreDown> {
    Ok(!txn.prefix(THREAD, with.key(mailbox).as_slice(), 1)?.is_empty())
}

/// One of a session's conversations.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    /// With whom.
    pub(crate) with: With,
    /// When it last moved.
    pub(crate) last: Wall,
    /// Its mail that was not read.
    pub(crate) unread: u64,
}

/// A session's conversations, the latest first, with what is unread in each: every unread item is looked at.
pub(crate) fn conversations(txn: &Txn<'_>, mailbox: u64) -> Result<Vec<Conversation>, StoreDown> {
    let mut found = places(txn, mailbox)?;
    let mut unread: BTreeMap<(PersonId, SessionName), u64> = BTreeMap::new();
    for item in inbox::unread(txn, mailbox)? {
        if let Some(agent) = item.from.agent {
            *unread.entry((item.from.person, agent)).or_default() += 1;
        }
    }
    for one in &mut found {
        let with = (one.with.person.clone(), one.with.agent.clone());
        one.unread = unread.get(&with).copied().unwrap_or_default();
    }
    Ok(found)
}

/// How many conversations a session has, and when one last moved: no item is looked at.
pub(crate) fn count(txn: &Txn<'_>, mailbox: u64) -> Result<(u64, Option<Wall>), StoreDown> {
    let found = places(txn, mailbox)?;
    Ok((found.len() as u64, found.first().map(|conversation| conversation.last)))
}

/// A session's conversations, the latest first, with nothing counted.
fn places(txn: &Txn<'_>, mailbox: u64) -> Result<Vec<Conversation>, StoreDown> {
    let own = Key::new().num(mailbox);
    let end = prefix_end(own.as_slice());
    let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let mut from = own.as_slice().to_vec();
    let mut found: Vec<Conversation> = Vec::new();
    let mut of_person = 0;
    while found.len() < MOST {
        let range = Range { from: Bound::Included(&from), to, reverse: false, limit: 1 };
        let Some((key, _)) = txn.range(THREAD, range)?.into_iter().next() else { break };
        let Some((with, prefix)) = with_of(&key) else { break };
        let last = txn.prefix_rev(THREAD, &prefix, 1)?;
        let last =
            last.first().and_then(|(key, _)| place_of(key, prefix.len())).map_or(Wall(0), |place| place.at);
        let same = found.last().is_some_and(|before| before.with.person == with.person);
        of_person = if same { of_person + 1 } else { 1 };
        // A member names its agents as it likes: a thousand of them leave room for the others'.
        let skip = (of_person == PER_PERSON).then(|| own.clone().text(with.person.as_str()));
        found.push(Conversation { with, last, unread: 0 });
        match prefix_end(skip.as_ref().map_or(prefix.as_slice(), Key::as_slice)) {
            Some(next) => from = next,
            None => break,
        }
    }
    found.sort_by_key(|conversation| std::cmp::Reverse(conversation.last));
    Ok(found)
}

fn with_of(key: &[u8]) -> Option<(With, Vec<u8>)> {
    let (person, at) = rows::text_at(key, 8)?;
    let (agent, at) = rows::text_at(key, at)?;
    let with = With { person: PersonId::parse(&person)?, agent: SessionName::parse(&agent)? };
    Some((with, key.get(..at)?.to_vec()))
}

impl Conversation {
    /// As `agents.read` lists it.
    pub(crate) fn to_value(&self) -> Value {
        obj([
            ("conversation", Value::text(format!("agent:{}/{}", self.with.person, self.with.agent))),
            ("unread", Value::int(self.unread)),
            ("lastAt", Value::int(self.last.0)),
        ])
    }
}
