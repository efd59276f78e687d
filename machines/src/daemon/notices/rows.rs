//! The rows of notices.
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `notice` | number | [`Notice`] |
//! | `notice_id` | id | its number |
//! | `notice_open` | number | nothing: what the person has not seen |
//!
//! Numbers rise in the order of filing. An id follows from what the notice is about, so that a source that is heard of
//! twice is told once.

use crate::daemon::devices::Change;
use crate::daemon::rows::{self, Key};
use crate::store::{Range, StoreDown, Table, Txn};
use messaging_proto::address::RoomRef;
use messaging_proto::hash::Hash;
use messaging_proto::name::{PersonId, SessionName};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use serde::{Deserialize, Serialize};
use std::ops::Bound;

pub(crate) const NOTICE: Table = Table("notice");
pub(crate) const BY_ID: Table = Table("notice_id");
pub(crate) const OPEN: Table = Table("notice_open");

/// What a notice is about. It copies no text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum About {
    /// A line in a chat.
    Line {
        /// The chat.
        conversation: RoomRef,
        /// Its sender.
        person: PersonId,
        /// The line.
        line: Ulid,
    },
    /// A request that is held.
    Request {
        /// Who asks.
        person: PersonId,
        /// The session that asks.
        agent: SessionName,
    },
    /// An alarm about this machine's keys, by its name in the API.
    Alarm(String),
    /// A member was shown another history of the team.
    Divergence {
        /// The position.
        seq: u64,
        /// What was signed there.
        theirs: Hash,
    },
    /// Another machine of the person came or went.
    Device(Change),
    /// Trust the person gave ends soon.
    Trust {
        /// Whom it trusts.
        person: PersonId,
        /// When it ends.
        until: Wall,
    },
}

/// One notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Notice {
    /// Its id.
    pub(crate) id: String,
    /// What it is about.
    pub(crate) about: About,
    /// When it was filed.
    pub(crate) at: Wall,
    /// When the person saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) acked: Option<Wall>,
}

/// The notice of a number.
pub(crate) fn get(txn: &Txn<'_>, number: u64) -> Result<Option<Notice>, StoreDown> {
    rows::get(txn, NOTICE, &Key::new().num(number))
}

/// The number of the notice with this id.
pub(crate) fn number(txn: &Txn<'_>, id: &str) -> Result<Option<u64>, StoreDown> {
    rows::get(txn, BY_ID, &Key::new().text(id))
}

/// Files a notice. Its number.
pub(crate) fn add(txn: &mut Txn<'_>, notice: &Notice) -> Result<u64, StoreDown> {
    let number = rows::next(txn, "notice")?;
    let key = Key::new().num(number);
    rows::put(txn, NOTICE, &key, notice);
    rows::put(txn, BY_ID, &Key::new().text(&notice.id), &number);
    rows::mark(txn, OPEN, &key);
    Ok(number)
}

/// Notes that the person saw a notice.
pub(crate) fn ack(txn: &mut Txn<'_>, number: u64, notice: &Notice, at: Wall) {
    let key = Key::new().num(number);
    rows::put(txn, NOTICE, &key, &Notice { acked: Some(at), ..notice.clone() });
    rows::delete(txn, OPEN, &key);
}

/// Removes a notice.
pub(crate) fn remove(txn: &mut Txn<'_>, number: u64, notice: &Notice) {
    let key = Key::new().num(number);
    rows::delete(txn, NOTICE, &key);
    rows::delete(txn, OPEN, &key);
    rows::delete(txn, BY_ID, &Key::new().text(&notice.id));
}

/// What the person has not seen of what was filed after `after`, newest first, at most `limit`.
pub(crate) fn open(txn: &Txn<'_>, after: u64, limit: usize) -> Result<Vec<Notice>, StoreDown> {
    let from = Key::new().num(after);
    let range = Range { from: Bound::Excluded(from.as_slice()), to: Bound::Unbounded, reverse: true, limit };
    let mut found = Vec::new();
    for (key, _) in txn.range(OPEN, range)? {
        found.extend(get(txn, rows::last_num(&key))?);
    }
    Ok(found)
}
