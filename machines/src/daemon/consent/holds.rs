//! What waits for the person to answer it (`messaging/1 §6.9`, "Holds").
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `held` | number | [`Ask`] |
//! | `held_id` | envelope id | its number |
//! | `held_body` | number | the opened payload's canonical text |
//!
//! Numbers rise with arrival. At most `heldTotal` rows, so every one may be looked at.

use crate::daemon::ctx::{Ctx, Note, obj};
use crate::daemon::due;
use crate::daemon::mail::arrival::Arrival;
use crate::daemon::mail::peer::{Peer, set};
use crate::daemon::rows::{self, Key};
use crate::daemon::tasks::view;
use crate::daemon::text::{canonical, parsed};
use crate::store::{StoreDown, Table, Txn};
use messaging_proto::delegation::Summary;
use messaging_proto::json::Value;
use messaging_proto::limits::HELD_TOTAL;
use messaging_proto::name::{PersonId, SessionName};
use messaging_proto::payload::MessageKind;
use messaging_proto::text::preview;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use serde::{Deserialize, Serialize};

pub(crate) const HELD: Table = Table("held");
pub(crate) const BY_ID: Table = Table("held_id");
pub(crate) const BODY: Table = Table("held_body");

/// Mail or a task request that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ask {
    /// The envelope.
    pub(crate) id: Ulid,
    /// Whether it asks for a task.
    pub(crate) kind: MessageKind,
    /// Who wrote it.
    pub(crate) from: Peer,
    /// The addressed session.
    pub(crate) session: SessionName,
    /// What it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reply_to: Option<Ulid>,
    /// Its text in short.
    pub(crate) preview: String,
    /// When it was held.
    pub(crate) at: Wall,
    /// When it ends.
    pub(crate) exp: Wall,
    /// Its chain, verified when it was held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chain: Option<Summary>,
}

impl Ask {
    /// As `request.list` shows it.
    pub(crate) fn to_value(&self) -> Value {
        let kind = match self.kind {
            MessageKind::Message => "message",
            MessageKind::Task => "task",
        };
        let Value::Object(mut view) = self.from.to_value() else { return Value::Null };
        view.set("kind", Value::text(kind));
        view.set("id", Value::text(self.id.as_str()));
        view.set("session", Value::text(self.session.as_str()));
        view.set("preview", Value::text(self.preview.as_str()));
        view.set("at", Value::int(self.at.0));
        view.set("exp", Value::int(self.exp.0));
        set(&mut view, "chain", self.chain.as_ref().map(view::chain));
        view.into()
    }
}

/// How many are held from a person, and in all.
pub(crate) fn counts(txn: &Txn<'_>, person: &PersonId) -> Result<(usize, usize), StoreDown> {
    let held = all(txn)?;
    Ok((held.iter().filter(|(_, ask)| ask.from.person == *person).count(), held.len()))
}

/// Whether an envelope with this id is held.
pub(crate) fn has(txn: &Txn<'_>, id: &Ulid) -> Result<bool, StoreDown> {
    rows::has(txn, BY_ID, &id_key(id))
}

/// Everything held, oldest first.
pub(crate) fn all(txn: &Txn<'_>) -> Result<Vec<(u64, Ask)>, StoreDown> {
    let rows = rows::list(txn, HELD, &Key::new(), HELD_TOTAL)?;
    Ok(rows.into_iter().map(|(key, ask)| (rows::last_num(&key), ask)).collect())
}

/// The held request with this id, while it has not ended.
pub(crate) fn find(txn: &Txn<'_>, id: &Ulid, now: Wall) -> Result<Option<(u64, Ask)>, StoreDown> {
    let Some(number) = rows::get::<u64>(txn, BY_ID, &id_key(id))? else { return Ok(None) };
    let ask = rows::get::<Ask>(txn, HELD, &Key::new().num(number))?;
    Ok(ask.filter(|ask| ask.exp > now).map(|ask| (number, ask)))
}

/// Holds a request.
pub(crate) fn keep(cx: &mut Ctx<'_, '_>, arrival: &Arrival, chain: Option<Summary>) -> Result<(), StoreDown> {
    let number = rows::next(cx.txn, "held")?;
    let ask = Ask {
        id: arrival.id,
        kind: arrival.payload.kind,
        from: arrival.from.clone(),
        session: arrival.to.clone(),
        reply_to: arrival.reply_to,
        preview: preview(arrival.parts()),
        at: cx.now(),
        exp: arrival.exp,
        chain,
    };
    let key = Key::new().num(number);
    rows::put(cx.txn, HELD, &key, &ask);
    rows::put(cx.txn, BODY, &key, &canonical(&arrival.raw));
    rows::put(cx.txn, BY_ID, &id_key(&arrival.id), &number);
    due::at(cx.txn, arrival.exp, due::Kind::Held, &key);
    cx.note(Note::RequestHeld(arrival.id));
    Ok(())
}

/// Takes a request out, as it arrived. Nothing when its payload no longer reads.
pub(crate) fn take(txn: &mut Txn<'_>, number: u64, ask: &Ask) -> Result<Option<Arrival>, StoreDown> {
    let key = Key::new().num(number);
    let body = rows::get::<String>(txn, BODY, &key)?;
    for table in [HELD, BODY] {
        rows::delete(txn, table, &key);
    }
    rows::delete(txn, BY_ID, &id_key(&ask.id));
    Ok(body.and_then(|body| {
        Arrival::read(ask.id, ask.from.clone(), ask.session.clone(), ask.reply_to, ask.exp, parsed(&body))
            .ok()
    }))
}

/// A request ended unanswered: its sender's own expiry settles the other side.
pub(crate) fn expired(cx: &mut Ctx<'_, '_>, key: &[u8]) -> Result<(), StoreDown> {
    let number = rows::last_num(key);
    if let Some(ask) = rows::get::<Ask>(cx.txn, HELD, &Key::new().num(number))? {
        take(cx.txn, number, &ask)?;
    }
    Ok(())
}

/// `request.list`.
pub(crate) fn list(txn: &Txn<'_>, now: Wall) -> Result<Value, StoreDown> {
    let asks =
        all(txn)?.into_iter().filter(|(_, ask)| ask.exp > now).map(|(_, ask)| ask.to_value()).collect();
    Ok(obj([
        ("asks", Value::Array(asks)),
        ("contacts", Value::Array(Vec::new())),
        ("suggestions", Value::Array(Vec::new())),
    ]))
}

fn id_key(id: &Ulid) -> Key {
    Key::new().text(id.as_str())
}
