//! `people.search` and `people.get` of a roster realm (contract ipc §4): its persons are those of the roster, under
//! their names, in the org that is the team.

use super::consent;
use super::ctx::{Answer, Ctx, Outcome, obj};
use super::devices::Stay;
use super::directory;
use super::ipc::RpcError;
use super::ipc::params::{Int, Text, only};
use super::mail::peer::set;
use super::presence;
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::consent::Relation;
use messaging_proto::json::{Fields, Invalid, Object, Value};
use messaging_proto::key::MachineId;
use messaging_proto::name::PersonId;
use messaging_proto::roster::Roster;
use std::collections::BTreeSet;

/// How old a presence may be to say anything about now, in milliseconds (`§6.5`).
const ONLINE_MS: u64 = 150_000;

/// What the role serves.
#[derive(Clone, Debug)]
pub enum Call {
    /// `people.search`.
    Search {
        /// What the names hold.
        query: String,
        /// The most persons.
        limit: u64,
    },
    /// `people.get`.
    Get(PersonId),
}

/// Reads `people.search`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn search(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["query", "limit"])?;
    Ok(Call::Search {
        query: params.req::<Text<1, 100>>("query")?.0,
        limit: params.opt::<Int<1, 25>>("limit")?.map_or(10, |limit| limit.0),
    })
}

/// Reads `people.get`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn get(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["person"])?;
    Ok(Call::Get(params.req("person")?))
}

/// Serves a call.
pub(crate) fn call(cx: &Ctx<'_, '_>, call: &Call) -> Outcome<Answer> {
    match call {
        Call::Search { query, limit } => Ok(found(cx, query, usize::try_from(*limit).unwrap_or(25))),
        Call::Get(person) => person_of(cx, person),
    }
}

/// The persons whose names hold the query, by name. Names are lower case.
fn found(cx: &Ctx<'_, '_>, query: &str, limit: usize) -> Answer {
    let query = query.to_lowercase();
    let members = cx.facts.roster().into_iter().flat_map(Roster::members);
    let persons: BTreeSet<&PersonId> =
        members.map(|member| &member.person).filter(|person| person.as_str().contains(&query)).collect();
    let shown = persons.into_iter().take(limit).map(|person| profile(cx, person).into()).collect();
    Answer::Now(obj([("people", Value::Array(shown))]))
}

/// Who a person is: in a roster realm, a name and the team's.
fn profile(cx: &Ctx<'_, '_>, person: &PersonId) -> Object {
    let team = cx.facts.roster().and_then(|roster| roster.name()).map_or("", |name| name.as_str());
    let mut view = Object::new();
    view.set("person", Value::text(person.as_str()));
    view.set("name", Value::text(person.as_str()));
    view.set("org", Value::text(team));
    view.set("self", Value::Bool(is_own(cx, person)));
    view
}

fn is_own(cx: &Ctx<'_, '_>, person: &PersonId) -> bool {
    cx.facts.me().is_some_and(|me| me.person == *person)
}

fn person_of(cx: &Ctx<'_, '_>, person: &PersonId) -> Outcome<Answer> {
    let known = cx.facts.roster().is_some_and(|roster| roster.machines_of(person).next().is_some());
    if !known {
        return Err(RpcError::new(Code::NotFound, "the team has no such person").at("person").into());
    }
    let mut view = profile(cx, person);
    let relation = match consent::relation(cx, person) {
        Relation::Own => "self",
        Relation::Org => "org",
        Relation::Contact => "contact",
        Relation::Stranger => "stranger",
    };
    view.set("relation", Value::text(relation));
    view.set("devices", Value::Array(devices(cx, person)?));
    view.set("entries", Value::Array(directory::entries_of(cx, Some(person))?));
    if !is_own(cx, person) {
        view.set("reach", consent::reach_of(cx, person));
        let changes = cx.facts.realm.history().news(person, cx.now());
        view.set("deviceChanges", Value::Array(changes.map(|change| change.to_object().into()).collect()));
    }
    Ok(Answer::Now(view.into()))
}

/// Every machine the person has, in the order they came, then those that are gone, the last one first.
fn devices(cx: &Ctx<'_, '_>, person: &PersonId) -> Result<Vec<Value>, StoreDown> {
    let (mut current, mut gone) = (Vec::new(), Vec::new());
    for (device, stay) in cx.facts.realm.history().devices(person) {
        match stay.until {
            None => current.push(device_of(cx, device, stay)?),
            Some((at, by)) => gone.push((at, removed(device, stay, by))),
        }
    }
    gone.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    current.extend(gone.into_iter().map(|(_, view)| view));
    Ok(current)
}

fn base(device: &MachineId, stay: &Stay, current: bool) -> Object {
    let mut view = Object::new();
    view.set("device", Value::text(device.to_string()));
    view.set("label", Value::text(stay.label.as_str()));
    view.set("current", Value::Bool(current));
    view.set("self", Value::Bool(false));
    view.set("since", Value::int(stay.since.0));
    view
}

fn device_of(cx: &Ctx<'_, '_>, device: &MachineId, stay: &Stay) -> Result<Value, StoreDown> {
    let mut view = base(device, stay, true);
    if cx.facts.me().is_some_and(|me| me.machine == *device) {
        view.set("self", Value::Bool(true));
        view.set("online", Value::Bool(cx.facts.link.up()));
        return Ok(view.into());
    }
    view.set("online", Value::Bool(cx.facts.link.online(device)));
    let seen = presence::rows::get(cx.txn, device)?;
    let away = seen.is_some_and(|seen| seen.away && seen.at.plus(ONLINE_MS) > cx.now());
    set(&mut view, "away", away.then_some(Value::Bool(true)));
    Ok(view.into())
}

fn removed(device: &MachineId, stay: &Stay, by: MachineId) -> Value {
    let mut view = base(device, stay, false);
    set(&mut view, "removedAt", stay.until.map(|(at, _)| Value::int(at.0)));
    view.set("removedBy", Value::text(by.to_string()));
    view.into()
}

#[cfg(test)]
mod tests;
