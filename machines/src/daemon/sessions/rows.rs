//! The rows of sessions and their mailboxes.
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `session` | session key | [`Session`] |
//! | `session_name` | session name | its session key |
//! | `mailbox` | mailbox number | [`Mailbox`] |
//!
//! A mailbox is what belongs to a session whatever key holds it: its inbox, its tasks and what it sent. Whoever
//! takes over a kept session's name takes over its mailbox, which moves no row.

use crate::daemon::rows::{self, Key};
use crate::store::{StoreDown, Table, Txn};
use messaging_proto::name::{AgentKind, SessionName};
use messaging_proto::payload::{SessionState, Tier};
use messaging_proto::time::Wall;
use serde::{Deserialize, Serialize};

pub(crate) const SESSION: Table = Table("session");
pub(crate) const NAME: Table = Table("session_name");
pub(crate) const MAILBOX: Table = Table("mailbox");

/// More sessions than a machine ever has: the bound of a listing.
const MOST: usize = 10_000;

/// Where the daemon can wake a session's client (`messaging/1 §8.6`). Stays on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Host {
    /// An absolute directory.
    pub(crate) location: String,
    /// The host's own session.
    pub(crate) session_id: String,
    /// The host's process.
    pub(crate) pid: u64,
}

/// A session as its client registered it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Session {
    /// The bearer key.
    pub(crate) key: String,
    /// Its name, perhaps with a suffix.
    pub(crate) name: SessionName,
    /// The name it asked for.
    pub(crate) asked: SessionName,
    /// Its mailbox.
    pub(crate) mailbox: u64,
    /// The client's kind.
    pub(crate) agent: AgentKind,
    /// How it takes mail.
    pub(crate) tier: Tier,
    /// What it does; idle while kept.
    pub(crate) state: SessionState,
    /// What it does, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) doing: Option<String>,
    /// The repository it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) repo: Option<String>,
    /// The branch it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
    /// What its client can do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) features: Vec<String>,
    /// Where to wake it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<Host>,
    /// Since when it is live, or kept.
    pub(crate) since: Wall,
    /// Until when it is kept; absent while live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kept_until: Option<Wall>,
}

impl Session {
    /// Whether it waits for its client to come back.
    pub(crate) const fn kept(&self) -> bool {
        self.kept_until.is_some()
    }

    /// A terminal's mailbox (`§8.2`): never kept or expired, runs no task, no party to a loop.
    pub(crate) fn is_cli(&self) -> bool {
        self.agent.as_str() == CLI
    }
}

/// The agent kind of a terminal.
pub(crate) const CLI: &str = "cli";

/// A mailbox's owner and counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Mailbox {
    /// The session key it belongs to; nobody's once the session is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// Items whose stage is not `read`.
    pub(crate) unread: u64,
    /// How often it was taken over: what was read before the last time is not shown again.
    pub(crate) turn: u32,
}

/// The session of a key.
pub(crate) fn by_key(txn: &Txn<'_>, key: &str) -> Result<Option<Session>, StoreDown> {
    rows::get(txn, SESSION, &Key::new().text(key))
}

/// The session of a name.
pub(crate) fn by_name(txn: &Txn<'_>, name: &SessionName) -> Result<Option<Session>, StoreDown> {
    match rows::get::<String>(txn, NAME, &Key::new().text(name.as_str()))? {
        Some(key) => by_key(txn, &key),
        None => Ok(None),
    }
}

/// Every session, live and kept, by key.
pub(crate) fn all(txn: &Txn<'_>) -> Result<Vec<Session>, StoreDown> {
    Ok(rows::list(txn, SESSION, &Key::new(), MOST)?.into_iter().map(|(_, session)| session).collect())
}

/// How many there are.
pub(crate) fn count(txn: &Txn<'_>) -> Result<usize, StoreDown> {
    Ok(txn.prefix(SESSION, Key::new().as_slice(), MOST)?.len())
}

/// Writes a session under its key and its name.
pub(crate) fn put(txn: &mut Txn<'_>, session: &Session) {
    rows::put(txn, SESSION, &Key::new().text(&session.key), session);
    rows::put(txn, NAME, &Key::new().text(session.name.as_str()), &session.key);
}

/// Removes a session and frees its name.
pub(crate) fn remove(txn: &mut Txn<'_>, session: &Session) {
    rows::delete(txn, SESSION, &Key::new().text(&session.key));
    free_name(txn, &session.name);
}

/// Frees a name.
pub(crate) fn free_name(txn: &mut Txn<'_>, name: &SessionName) {
    rows::delete(txn, NAME, &Key::new().text(name.as_str()));
}

/// A mailbox; an empty one when it does not exist.
pub(crate) fn mailbox(txn: &Txn<'_>, number: u64) -> Result<Mailbox, StoreDown> {
    Ok(rows::get(txn, MAILBOX, &Key::new().num(number))?.unwrap_or_default())
}

/// Writes a mailbox.
pub(crate) fn put_mailbox(txn: &mut Txn<'_>, number: u64, mailbox: &Mailbox) {
    rows::put(txn, MAILBOX, &Key::new().num(number), mailbox);
}

/// Removes a mailbox.
pub(crate) fn remove_mailbox(txn: &mut Txn<'_>, number: u64) {
    rows::delete(txn, MAILBOX, &Key::new().num(number));
}

/// A fresh mailbox of a session key.
pub(crate) fn new_mailbox(txn: &mut Txn<'_>, key: &str) -> Result<u64, StoreDown> {
    let number = rows::next(txn, "mailbox")?;
    put_mailbox(txn, number, &Mailbox { key: Some(key.to_owned()), ..Mailbox::default() });
    Ok(number)
}
