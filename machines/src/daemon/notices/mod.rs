//! What the person is told about (`messaging/1 §8.2`, "Notices"): lines, requests that wait for an answer, and alerts.
//!
//! A notice is filed in the step its source is stored in, so there is one exactly when there is a source. Acks are
//! this device's: nothing carries them to the person's other devices.
//!
//! A muted person's lines are filed in their chat and make no notice: "without notices" is what the person agreed to.

mod calls;
pub(crate) mod rows;
mod view;

pub(crate) use calls::call;
pub use calls::{Call, ack, list, subscribe};

use super::consent::{self, holds};
use super::ctx::{Ctx, Note, Role, obj};
use super::devices::Change;
use super::due::{self, days};
use super::note::FiledLine;
use super::schema::{self, META, META_ALARM, META_DEVICES};
use crate::daemon::rows::Key;
use crate::store::{StoreDown, Txn};
use messaging_proto::consent::{ConsentGrant, Subject};
use messaging_proto::json::Value;
use messaging_proto::name::PersonId;
use messaging_proto::roster::Roster;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use rows::{About, Notice};
use serde::{Deserialize, Serialize};

/// How long before its end the person is told of trust they gave, in milliseconds.
pub(crate) const TRUST_NEWS_MS: u64 = 7 * 86_400_000;

/// The role. Everything it knows is in the store.
#[derive(Debug, Default)]
pub struct Notices;

/// The alarm that was last told, and since when it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Standing {
    alarm: String,
    at: Wall,
}

impl Role for Notices {
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown> {
        match note {
            Note::Start => {
                alarm(cx)?;
                divergence(cx)?;
                devices(cx)
            }
            Note::AlarmChanged => alarm(cx),
            Note::Diverged(_) => divergence(cx),
            Note::Adopted => {
                admitted(cx);
                devices(cx)
            }
            Note::RosterChanged { .. } => {
                divergence(cx)?;
                devices(cx)
            }
            Note::LineFiled(line) => filed(cx, line),
            Note::LineGone(line) => gone(cx, line),
            Note::RequestHeld(id) => held(cx, id),
            _ => Ok(()),
        }
    }
}

/// Files a notice and tells whoever subscribed; nothing when it was filed before.
fn file(cx: &mut Ctx<'_, '_>, id: String, about: About) -> Result<(), StoreDown> {
    if rows::number(cx.txn, &id)?.is_some() {
        return Ok(());
    }
    let notice = Notice { id, about, at: cx.now(), acked: None };
    let number = rows::add(cx.txn, &notice)?;
    // §8.2: a notice goes with the transcript's retention.
    let end = cx.now().plus(days(cx.facts.config.retention().transcript_days));
    due::at(cx.txn, end, due::Kind::Notice, &Key::new().num(number));
    let subscribers: Vec<_> = cx.facts.conns.notice_subscribers().collect();
    for (conn, lines) in subscribers {
        let event = event(cx, &notice, lines)?;
        cx.event_to(conn, &event);
    }
    Ok(())
}

fn event(cx: &Ctx<'_, '_>, notice: &Notice, lines: bool) -> Result<Value, StoreDown> {
    Ok(obj([("type", Value::text("notice")), ("notice", view::show(cx, notice, lines)?)]))
}

/// A line: from another person or their agents, or from an own agent to its person.
fn filed(cx: &mut Ctx<'_, '_>, line: &FiledLine) -> Result<(), StoreDown> {
    if line.out || line.notice || line.silent {
        return Ok(());
    }
    let about =
        About::Line { conversation: line.conversation.clone(), person: line.person.clone(), line: line.id };
    file(cx, format!("m_{}", line.id), about)
}

/// A line's notice goes with it.
fn gone(cx: &mut Ctx<'_, '_>, line: &Ulid) -> Result<(), StoreDown> {
    if let Some(number) = rows::number(cx.txn, &format!("m_{line}"))?
        && let Some(notice) = rows::get(cx.txn, number)?
    {
        rows::remove(cx.txn, number, &notice);
    }
    Ok(())
}

/// A request is held. Answering it does not say that the person saw the notice, and an ack answers nothing.
fn held(cx: &mut Ctx<'_, '_>, id: &Ulid) -> Result<(), StoreDown> {
    let Some((_, ask)) = holds::find(cx.txn, id, cx.now())? else { return Ok(()) };
    let Some(agent) = ask.from.agent else { return Ok(()) };
    file(cx, format!("r_{id}"), About::Request { person: ask.from.person, agent })
}

/// An alarm about the keys is told when it is raised, and again only after it was gone.
fn alarm(cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
    let told: Option<Standing> = schema::get(cx.txn, META, META_ALARM)?;
    let now = cx.facts.keys.alarm().map(|alarm| alarm.as_str().to_owned());
    match (told, now) {
        (Some(told), Some(now)) if told.alarm == now => Ok(()),
        (_, Some(alarm)) => {
            let at = cx.now();
            schema::put(cx.txn, META, META_ALARM, &Standing { alarm: alarm.clone(), at });
            file(cx, format!("a_{alarm}_{}", at.0), About::Alarm(alarm))
        }
        (Some(_), None) => {
            cx.txn.delete(META, META_ALARM);
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

/// The relay showed a member another history of the team.
fn divergence(cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
    let Some(evidence) = cx.facts.realm.divergence() else { return Ok(()) };
    let about = About::Divergence { seq: evidence.seq, theirs: evidence.theirs };
    let id = format!("a_divergence_{}", evidence.at.0);
    file(cx, id, about)
}

/// §8.2 "Device alerts": a home starts from the entry that admitted it.
fn admitted(cx: &mut Ctx<'_, '_>) {
    let Some(me) = cx.facts.me().map(|me| me.machine) else { return };
    if let Some(stay) = cx.facts.realm.history().stay(&me) {
        let next = stay.seq + 1;
        schema::put(cx.txn, META, META_DEVICES, &next);
    }
}

/// Tells of every change of the person's other devices that this device did not make.
fn devices(cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
    let Some(head) = cx.facts.roster().and_then(Roster::head) else { return Ok(()) };
    let Some(me) = cx.facts.me() else { return Ok(()) };
    let next: Option<u64> = schema::get(cx.txn, META, META_DEVICES)?;
    let news: Vec<Change> = match next {
        Some(next) if next > head.seq => return Ok(()),
        Some(next) => {
            let changes = cx.facts.realm.history().since(next).iter();
            changes
                .filter(|change| change.person == me.person)
                .filter(|change| change.device != me.machine && change.by != me.machine)
                .cloned()
                .collect()
        }
        // A home from before device alerts: from its roster as it is.
        None => Vec::new(),
    };
    schema::put(cx.txn, META, META_DEVICES, &(head.seq + 1));
    for change in news {
        file(cx, format!("a_dev{}", change.seq), About::Device(change))?;
    }
    Ok(())
}

/// Plans the notice about the end of a grant's trust.
pub(crate) fn plan_trust(txn: &mut Txn<'_>, grant: &ConsentGrant) {
    if let (Subject::Person(person), Some(until)) = (&grant.subject, grant.levels.trusted_until) {
        due::at(txn, until.minus(TRUST_NEWS_MS), due::Kind::Trust, &Key::new().text(person.as_str()));
    }
}

/// Trust the person gave may end soon. Filed once per grant, at the sweep.
pub(crate) fn trust_ends(cx: &mut Ctx<'_, '_>, key: &[u8]) -> Result<(), StoreDown> {
    let person = super::rows::text_at(key, 0).and_then(|(text, _)| PersonId::parse(&text));
    let Some(person) = person else { return Ok(()) };
    let Some(grant) = consent::grant_about(cx, &person)? else { return Ok(()) };
    match grant.levels.trusted_until {
        Some(until) if until > cx.now() && until.minus(TRUST_NEWS_MS) <= cx.now() => {
            file(cx, format!("a_trust{}", grant.id), About::Trust { person, until })
        }
        _ => Ok(()),
    }
}

/// A notice's time may be over: with the transcript's retention, or the read mail's once it was acked.
pub(crate) fn retention_over(cx: &mut Ctx<'_, '_>, key: &[u8]) -> Result<(), StoreDown> {
    let number = super::rows::last_num(key);
    let Some(notice) = rows::get(cx.txn, number)? else { return Ok(()) };
    let retention = cx.facts.config.retention();
    let filed = notice.at.plus(days(retention.transcript_days));
    let acked = notice.acked.map(|at| at.plus(days(retention.read_days)));
    if acked.map_or(filed, |acked| acked.min(filed)) <= cx.now() {
        rows::remove(cx.txn, number, &notice);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
