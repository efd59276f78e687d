//! The chats of this machine, each with its read state (`messaging/1 §6.8`, "Order and read state").
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `chat_room` | room | [`Room`] |
//! | `chat_room_of` | `p` ‖ person, or `c` ‖ channel id | room |
//!
//! A room is a number that is never reused, so that a channel of an old name can begin while the lines of the one
//! before it are still being deleted. A line whose room has no row is as good as gone.

use crate::daemon::rows::{self, Key};
use crate::store::{StoreDown, Table, Txn};
use messaging_proto::name::PersonId;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use serde::{Deserialize, Serialize};

pub(crate) const ROOM: Table = Table("chat_room");
pub(crate) const ROOM_OF: Table = Table("chat_room_of");

/// More rooms than a team and its channels make.
const MOST: usize = 100_000;
/// The count of unread lines over every room.
const UNREAD: &str = "chat_unread";

/// Whom a chat is with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum With {
    /// A person; the own one too.
    Person(PersonId),
    /// The members of a channel.
    Channel(Ulid),
}

/// One chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Room {
    /// Whom it is with.
    pub(crate) with: With,
    /// The read cursor: it only rises.
    pub(crate) read_up_to: u64,
    /// How many lines of others are above it.
    pub(crate) unread: u64,
    /// The number of the newest line, and when it was filed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<(u64, Wall)>,
}

/// A room's row; nothing for one that is gone.
pub(crate) fn get(txn: &Txn<'_>, room: u64) -> Result<Option<Room>, StoreDown> {
    rows::get(txn, ROOM, &Key::new().num(room))
}

/// Whether a room is there.
pub(crate) fn exists(txn: &Txn<'_>, room: u64) -> Result<bool, StoreDown> {
    rows::has(txn, ROOM, &Key::new().num(room))
}

/// Every room.
pub(crate) fn all(txn: &Txn<'_>) -> Result<Vec<(u64, Room)>, StoreDown> {
    let rows = rows::list::<Room>(txn, ROOM, &Key::new(), MOST)?;
    Ok(rows.into_iter().map(|(key, room)| (rows::last_num(&key), room)).collect())
}

/// The chat with a person or a channel.
pub(crate) fn of(txn: &Txn<'_>, with: &With) -> Result<Option<u64>, StoreDown> {
    rows::get(txn, ROOM_OF, &of_key(with))
}

/// The same, made when there is none.
pub(crate) fn make(txn: &mut Txn<'_>, with: &With) -> Result<u64, StoreDown> {
    if let Some(room) = of(txn, with)? {
        return Ok(room);
    }
    let room = rows::next(txn, "chat_rooms")?;
    rows::put(txn, ROOM_OF, &of_key(with), &room);
    put(txn, room, &Room { with: with.clone(), read_up_to: 0, unread: 0, last: None })?;
    Ok(room)
}

/// Writes a room's row, and keeps the sum of what is unread.
pub(crate) fn put(txn: &mut Txn<'_>, room: u64, row: &Room) -> Result<(), StoreDown> {
    let before = get(txn, room)?.map_or(0, |before| before.unread);
    if before != row.unread {
        rows::count(txn, UNREAD, signed(row.unread) - signed(before))?;
    }
    rows::put(txn, ROOM, &Key::new().num(room), row);
    Ok(())
}

/// Forgets a room, its cursor and that it was ever there. Its lines are deleted by the purge.
pub(crate) fn remove(txn: &mut Txn<'_>, room: u64, row: &Room) -> Result<(), StoreDown> {
    rows::count(txn, UNREAD, -signed(row.unread))?;
    rows::delete(txn, ROOM, &Key::new().num(room));
    rows::delete(txn, ROOM_OF, &of_key(&row.with));
    Ok(())
}

/// The lines of others that were not marked read, over every chat (`notice.list`, `counts`).
pub(crate) fn unread(txn: &Txn<'_>) -> Result<u64, StoreDown> {
    rows::counted(txn, UNREAD)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn of_key(with: &With) -> Key {
    match with {
        With::Person(person) => Key::new().bytes(b"p").text(person.as_str()),
        With::Channel(id) => Key::new().bytes(b"c").text(id.as_str()),
    }
}
