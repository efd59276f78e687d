//! The channels this machine's person is in (`messaging/1 §6.8`).
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `channel` | channel id | [`Channel`] |
//! | `channel_local` | local name | channel id |
//! | `channel_ended` | channel id | when it ended here; kept `ttlMs + clockSkewMs` |

use super::lines;
use super::rooms::{self, With};
use crate::daemon::due;
use crate::daemon::rows::{self, Key};
use crate::store::{StoreDown, Table, Txn};
use messaging_proto::address::RoomRef;
use messaging_proto::channel::{CHANNELS_HELD, Channel, Chats};
use messaging_proto::limits::{CLOCK_SKEW_MS, TTL_MS};
use messaging_proto::name::ChannelName;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;

pub(crate) const CHANNEL: Table = Table("channel");
pub(crate) const LOCAL: Table = Table("channel_local");
pub(crate) const ENDED: Table = Table("channel_ended");

/// The channel with this id.
pub(crate) fn get(txn: &Txn<'_>, id: &Ulid) -> Result<Option<Channel>, StoreDown> {
    rows::get(txn, CHANNEL, &id_key(id))
}

/// The channel that has this name here.
pub(crate) fn by_local(txn: &Txn<'_>, local: &ChannelName) -> Result<Option<Channel>, StoreDown> {
    match rows::get::<Ulid>(txn, LOCAL, &Key::new().text(local.as_str()))? {
        Some(id) => get(txn, &id),
        None => Ok(None),
    }
}

/// Every channel.
pub(crate) fn all(txn: &Txn<'_>) -> Result<Vec<Channel>, StoreDown> {
    let rows = rows::list::<Channel>(txn, CHANNEL, &Key::new(), CHANNELS_HELD)?;
    Ok(rows.into_iter().map(|(_, channel)| channel).collect())
}

/// Writes a new or changed record. Its room.
pub(super) fn put(txn: &mut Txn<'_>, channel: &Channel) -> Result<u64, StoreDown> {
    rows::put(txn, CHANNEL, &id_key(&channel.id), channel);
    rows::put(txn, LOCAL, &Key::new().text(channel.local.as_str()), &channel.id);
    rooms::make(txn, &With::Channel(channel.id))
}

/// Forgets a channel, but for when it ended.
pub(super) fn end(txn: &mut Txn<'_>, channel: &Channel, now: Wall) {
    rows::delete(txn, CHANNEL, &id_key(&channel.id));
    rows::delete(txn, LOCAL, &Key::new().text(channel.local.as_str()));
    rows::put(txn, ENDED, &id_key(&channel.id), &now);
    due::at(txn, now.plus(TTL_MS + CLOCK_SKEW_MS + 1), due::Kind::ChannelEnded, &id_key(&channel.id));
}

/// A record of an end may go, unless the channel ended again since.
pub(crate) fn forget_ended(txn: &mut Txn<'_>, key: &[u8], now: Wall) -> Result<(), StoreDown> {
    let Some(at) = crate::daemon::schema::get::<Wall>(txn, ENDED, key)? else { return Ok(()) };
    if !messaging_proto::channel::is_kept(at, now) {
        txn.delete(ENDED, key);
    }
    Ok(())
}

/// The room a reference names; nothing for a chat this machine does not hold.
pub(crate) fn room(txn: &Txn<'_>, room: &RoomRef) -> Result<Option<u64>, StoreDown> {
    match room {
        RoomRef::Dm(person) => rooms::of(txn, &With::Person(person.clone())),
        RoomRef::Channel(local) => match by_local(txn, local)? {
            Some(channel) => rooms::of(txn, &With::Channel(channel.id)),
            None => Ok(None),
        },
    }
}

/// What is held, for the rules of `proto::channel`.
pub(super) struct Held<'a, 't>(pub(super) &'a Txn<'t>);

impl Chats for Held<'_, '_> {
    type Down = StoreDown;

    fn channel(&self, id: &Ulid) -> Result<Option<Channel>, StoreDown> {
        get(self.0, id)
    }

    fn is_taken(&self, local: &ChannelName) -> Result<bool, StoreDown> {
        rows::has(self.0, LOCAL, &Key::new().text(local.as_str()))
    }

    fn held(&self) -> Result<usize, StoreDown> {
        Ok(all(self.0)?.len())
    }

    fn ended(&self, id: &Ulid) -> Result<Option<Wall>, StoreDown> {
        rows::get(self.0, ENDED, &id_key(id))
    }

    fn has_line(&self, message: &Ulid) -> Result<bool, StoreDown> {
        Ok(lines::by_id(self.0, message)?.is_some())
    }
}

fn id_key(id: &Ulid) -> Key {
    Key::new().text(id.as_str())
}
