//! What this machine sent, and how far it came (`messaging/1 §8.4`).
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `sent` | envelope id | [`Sent`] |
//!
//! Every sealed envelope but a receipt has a row, since it is what binds an answer to this machine's own traffic
//! (`§5`, "Counterpart binding"). Mail keeps its history for `retention.sentDays` past its end.

use super::peer::set;
use super::thread::{self, Place, With};
use crate::daemon::chats::delivery::{self, CopyOf};
use crate::daemon::ctx::{Ctx, obj};
use crate::daemon::due::{self, days};
use crate::daemon::rows::{self, Key};
use crate::daemon::sessions::rows as sessions;
use crate::store::{StoreDown, Table, Txn};
use messaging_proto::address::SessionAddress;
use messaging_proto::json::{Object, Value};
use messaging_proto::key::MachineId;
use messaging_proto::limits::CLOCK_SKEW_MS;
use messaging_proto::payload::CodeText;
use messaging_proto::task::Stage;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use serde::{Deserialize, Serialize};

pub(crate) const SENT: Table = Table("sent");

/// What was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "camelCase")]
pub(crate) enum What {
    /// Mail, a task request or a follow-up, from a session to an agent.
    #[serde(rename_all = "camelCase")]
    Mail {
        /// The sending session's mailbox.
        mailbox: u64,
        /// Whom it is to.
        to: SessionAddress,
        /// The task it asks for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asks: Option<Ulid>,
    },
    /// A line or a channel's change, to a machine of a person.
    Chat(CopyOf),
    /// News of a task, or its cancel; grants between own devices.
    Task,
}

/// One stage a delivery reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reached {
    /// The stage.
    pub(crate) stage: Stage,
    /// When this machine learned of it.
    pub(crate) at: Wall,
    /// Why, of a rejection. A peer's newer code is kept as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<CodeText>,
}

impl Reached {
    fn to_value(&self) -> Value {
        let mut reached = Object::new();
        reached.set("stage", Value::text(self.stage.as_str()));
        reached.set("at", Value::int(self.at.0));
        set(&mut reached, "code", self.code.as_ref().map(|code| Value::text(code.as_str())));
        reached.into()
    }
}

/// A sent envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// The machine it was sealed to.
    pub(crate) device: MachineId,
    /// When it ends.
    pub(crate) exp: Wall,
    /// What it is.
    #[serde(flatten)]
    pub(crate) what: What,
    /// The stages it reached, oldest first; never empty.
    pub(crate) history: Vec<Reached>,
}

impl Sent {
    /// The stage it is at.
    pub(crate) fn stage(&self) -> Stage {
        self.history.last().map_or(Stage::Accepted, |last| last.stage)
    }

    /// The last stage with its time and code.
    pub(crate) fn last(&self) -> Option<&Reached> {
        self.history.last()
    }
}

/// The row of an envelope.
pub(crate) fn get(txn: &Txn<'_>, id: &Ulid) -> Result<Option<Sent>, StoreDown> {
    rows::get(txn, SENT, &key(id))
}

/// Notes an envelope as accepted.
pub(crate) fn accept(txn: &mut Txn<'_>, id: &Ulid, device: MachineId, exp: Wall, what: What, now: Wall) {
    let history = vec![Reached { stage: Stage::Accepted, at: now, code: None }];
    if let Some((mailbox, with)) = in_thread(&what) {
        thread::add(txn, mailbox, &with, &Place { at: now, id: *id }, thread::Kind::Out);
    }
    rows::put(txn, SENT, &key(id), &Sent { device, exp, what, history });
    due::at(txn, exp, due::Kind::Envelope, &key(id));
}

/// What a stage means beyond the record it moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    /// The task that was asked for, when a request ended.
    pub(crate) asked: Option<Ulid>,
}

/// Moves a delivery forward, tells its session, and says what follows. Nothing when the stage is not news.
pub(crate) fn reach(
    cx: &mut Ctx<'_, '_>,
    id: &Ulid,
    stage: Stage,
    code: Option<CodeText>,
) -> Result<Option<Moved>, StoreDown> {
    let Some(mut sent) = get(cx.txn, id)? else { return Ok(None) };
    // §8.4 stages never move backwards.
    if sent.stage().advance(stage) != stage || sent.stage() == stage {
        return Ok(None);
    }
    let reached = Reached { stage, at: cx.now(), code };
    sent.history.push(reached.clone());
    rows::put(cx.txn, SENT, &key(id), &sent);
    let (mailbox, to, asks) = match &sent.what {
        What::Mail { mailbox, to, asks } => (mailbox, to, asks),
        What::Chat(of) => {
            delivery::reached(cx, id, &sent.device, of, stage, reached.code.as_ref())?;
            return Ok(None);
        }
        What::Task => return Ok(None),
    };
    if let Some(session_key) = sessions::mailbox(cx.txn, *mailbox)?.key {
        let Value::Object(mut event) = reached.to_value() else { return Ok(None) };
        event.set("type", Value::text("sent"));
        event.set("key", Value::text(session_key.as_str()));
        event.set("envelopeId", Value::text(id.as_str()));
        event.set("to", Value::text(to.to_string()));
        cx.event_key(&session_key, &event.into());
    }
    Ok(Some(Moved { asked: *asks }))
}

/// An envelope's lifetime is over. One the relay took may have arrived all the same, and its receipt be under way:
/// it is given the clock skew.
pub(crate) fn lifetime_over(cx: &mut Ctx<'_, '_>, id: &Ulid) -> Result<Option<Moved>, StoreDown> {
    let Some(sent) = get(cx.txn, id)? else { return Ok(None) };
    let now = cx.now();
    let moved = match sent.stage() {
        Stage::Relayed | Stage::Held if now < sent.exp.plus(CLOCK_SKEW_MS) => {
            due::at(cx.txn, sent.exp.plus(CLOCK_SKEW_MS), due::Kind::Envelope, &key(id));
            return Ok(None);
        }
        Stage::Accepted | Stage::Relayed | Stage::Held => reach(cx, id, Stage::Expired, None)?,
        _ => None,
    };
    let keep = match sent.what {
        What::Mail { .. } => days(cx.facts.config.retention().sent_days),
        What::Chat(_) | What::Task => CLOCK_SKEW_MS,
    };
    due::at(cx.txn, now.plus(keep), due::Kind::Sent, &key(id));
    Ok(moved)
}

/// A record's retention is over.
pub(crate) fn forget(txn: &mut Txn<'_>, id: &Ulid) -> Result<(), StoreDown> {
    let Some(sent) = get(txn, id)? else { return Ok(()) };
    if let (Some((mailbox, with)), Some(first)) = (in_thread(&sent.what), sent.history.first()) {
        thread::remove(txn, mailbox, &with, &Place { at: first.at, id: *id });
    }
    rows::delete(txn, SENT, &key(id));
    Ok(())
}

/// The conversation a sent envelope stands in. A task's request stands there as its task.
fn in_thread(what: &What) -> Option<(u64, With)> {
    match what {
        What::Mail { mailbox, to, asks: None } => {
            Some((*mailbox, With { person: to.person.clone(), agent: to.session.clone() }))
        }
        _ => None,
    }
}

/// `item.read` of a sent envelope (contract ipc §3).
pub(crate) fn delivery(id: &Ulid, sent: &Sent, to: &SessionAddress) -> Value {
    obj([
        ("kind", Value::text("sent")),
        ("envelopeId", Value::text(id.as_str())),
        ("to", Value::text(to.to_string())),
        ("stage", Value::text(sent.stage().as_str())),
        ("history", Value::Array(sent.history.iter().map(Reached::to_value).collect())),
    ])
}

fn key(id: &Ulid) -> Key {
    Key::new().text(id.as_str())
}
