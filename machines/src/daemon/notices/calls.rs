//! `notice.subscribe`, `notice.list` and `notice.ack` (contract ipc §4).

use super::{event, rows, view};
use crate::daemon::chats::rooms;
use crate::daemon::consent::holds;
use crate::daemon::ctx::{Answer, Caller, Ctx, Outcome, obj};
use crate::daemon::due::{self, days};
use crate::daemon::ipc::RpcError;
use crate::daemon::ipc::params::{Int, List, Text, only};
use crate::daemon::rows::Key;
use messaging_proto::Code;
use messaging_proto::json::{Fields, Invalid, Value};

/// The most notices a subscription is sent at once.
const REPLAY: usize = 500;

/// What the role serves.
#[derive(Clone, Debug)]
pub enum Call {
    /// `notice.subscribe`.
    Subscribe {
        /// The last notice the client handled.
        after: Option<String>,
        /// Whether it wants lines' texts.
        lines: bool,
    },
    /// `notice.list`.
    List {
        /// Whether it wants lines' texts.
        lines: bool,
        /// The most notices.
        limit: u64,
    },
    /// `notice.ack`.
    Ack(Vec<String>),
}

type Id = Text<1, 64>;

/// Reads `notice.subscribe`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn subscribe(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["after", "lines"])?;
    Ok(Call::Subscribe {
        after: params.opt::<Id>("after")?.map(|id| id.0),
        lines: params.opt("lines")?.unwrap_or(false),
    })
}

/// Reads `notice.list`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn list(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["lines", "limit"])?;
    Ok(Call::List {
        lines: params.opt("lines")?.unwrap_or(false),
        limit: params.opt::<Int<1, 500>>("limit")?.map_or(50, |limit| limit.0),
    })
}

/// Reads `notice.ack`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn ack(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["ids"])?;
    Ok(Call::Ack(params.req::<List<Id, 1, 500>>("ids")?.0.into_iter().map(|id| id.0).collect()))
}

/// Serves a call.
pub(crate) fn call(cx: &mut Ctx<'_, '_>, from: &Caller, call: Call) -> Outcome<Answer> {
    match call {
        Call::Subscribe { after, lines } => replay(cx, from, after.as_deref(), lines),
        Call::List { lines, limit } => listed(cx, lines, usize::try_from(limit).unwrap_or(REPLAY)),
        Call::Ack(ids) => acked(cx, &ids),
    }
}

/// What the person has not seen, oldest first, then everything as it is filed. Of more than the most, the newest: then
/// nothing is missing between the replay and what follows, and `notice.list` has the rest.
fn replay(cx: &mut Ctx<'_, '_>, from: &Caller, after: Option<&str>, lines: bool) -> Outcome<Answer> {
    let after = match after {
        None => 0,
        Some(id) => rows::number(cx.txn, id)?
            .ok_or_else(|| RpcError::new(Code::NotFound, "there is no such notice").at("after"))?,
    };
    let missed = rows::open(cx.txn, after, REPLAY)?;
    for notice in missed.iter().rev() {
        let event = event(cx, notice, lines)?;
        cx.event_to(from.conn, &event);
    }
    cx.facts.conns.subscribe_notice(from.conn, lines);
    Ok(Answer::Now(obj([("replayed", Value::int(missed.len() as u64))])))
}

fn listed(cx: &Ctx<'_, '_>, lines: bool, limit: usize) -> Outcome<Answer> {
    let mut notices = Vec::new();
    for notice in rows::open(cx.txn, 0, limit)? {
        notices.push(view::show(cx, &notice, lines)?);
    }
    let now = cx.now();
    let requests = holds::all(cx.txn)?.iter().filter(|(_, ask)| ask.exp > now).count();
    let counts =
        obj([("unread", Value::int(rooms::unread(cx.txn)?)), ("requests", Value::int(requests as u64))]);
    Ok(Answer::Now(obj([("notices", Value::Array(notices)), ("counts", counts)])))
}

/// Marks notices seen. An id that is no notice's, or was seen before, changes nothing.
fn acked(cx: &mut Ctx<'_, '_>, ids: &[String]) -> Outcome<Answer> {
    let now = cx.now();
    let end = now.plus(days(cx.facts.config.retention().read_days));
    for id in ids {
        let Some(number) = rows::number(cx.txn, id)? else { continue };
        let Some(notice) = rows::get(cx.txn, number)?.filter(|notice| notice.acked.is_none()) else {
            continue;
        };
        rows::ack(cx.txn, number, &notice, now);
        due::at(cx.txn, end, due::Kind::Notice, &Key::new().num(number));
    }
    Ok(Answer::ok())
}
