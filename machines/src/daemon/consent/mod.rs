//! Consent (`messaging/1 §6.9`): what this machine's person lets others send, kept and enforced.
//!
//! The rules are `proto::consent`; here are the grants this device holds, what it holds back for the person, and
//! the answers.

mod calls;
pub(crate) mod holds;
pub mod params;
mod preview;
pub(crate) mod rows;
mod sync;

pub(crate) use calls::call;
pub use calls::{SetGrant, SubjectParam};
pub(crate) use sync::arrived as sync_arrived;

use super::chats::channels;
use super::ctx::{Ctx, Note, Role, obj};
use super::mail::peer::set;
use crate::store::StoreDown;
use messaging_proto::consent::{
    ConsentGrant, DecideInput, Decision, Kind, Levels, Policy, Relation, Subject, decide as rule,
    effective_policy,
};
use messaging_proto::json::{Object, Value};
use messaging_proto::key::MachineId;
use messaging_proto::name::PersonId;
use messaging_proto::roster::Roster;
use messaging_proto::time::Wall;

/// The role: it keeps this person's devices in step and its grants signed by devices that still count.
#[derive(Debug, Default)]
pub struct Consent;

impl Role for Consent {
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown> {
        match note {
            // §6.9 "On the daemon": when its verified view changes, and after it connects.
            Note::RosterChanged { .. } | Note::LinkUp => {
                sync::resign(cx)?;
                sync::snapshots(cx)
            }
            _ => Ok(()),
        }
    }
}

/// How another person relates to this machine's.
pub(crate) fn relation(cx: &Ctx<'_, '_>, person: &PersonId) -> Relation {
    Relation::in_roster(cx.facts.me().is_some_and(|own| own.person == *person))
}

/// Whether a machine is one of this person's now: only grants by such a one count.
pub(crate) fn is_current(cx: &Ctx<'_, '_>, device: &MachineId) -> bool {
    let own = cx.facts.me().map(|own| &own.person);
    let member = cx.facts.roster().and_then(|roster| roster.member(device));
    member.is_some_and(|member| Some(&member.person) == own)
}

/// The grant about a person that counts now.
pub(crate) fn grant_about(cx: &Ctx<'_, '_>, person: &PersonId) -> Result<Option<ConsentGrant>, StoreDown> {
    let grant = rows::get(cx.txn, &Subject::Person(person.clone()))?;
    Ok(grant.filter(|grant| is_current(cx, &grant.by)))
}

/// What a person may send now. A channel's grant counts while the person is a member of it in this machine's view.
pub(crate) fn policy(cx: &Ctx<'_, '_>, person: &PersonId, now: Wall) -> Result<Policy, StoreDown> {
    let grant = grant_about(cx, person)?;
    let mut of_channels = Vec::new();
    for grant in rows::about_channels(cx.txn)? {
        if let Subject::Channel(id) = &grant.subject
            && is_current(cx, &grant.by)
            && channels::get(cx.txn, id)?.is_some_and(|channel| channel.has(person))
        {
            of_channels.push(grant.levels.clone());
        }
    }
    let of_channels: Vec<&Levels> = of_channels.iter().collect();
    let of_person = grant.as_ref().map(|grant| &grant.levels);
    Ok(effective_policy(relation(cx, person), of_person, &of_channels, now))
}

/// What happens to something a person sent (`§6.9`, "Evaluation").
pub(crate) fn decide(
    cx: &Ctx<'_, '_>,
    sender: &PersonId,
    kind: Kind<'_>,
    now: Wall,
) -> Result<Decision, StoreDown> {
    let policy = policy(cx, sender, now)?;
    let Some(own) = cx.facts.me() else {
        return Ok(Decision::Refuse(messaging_proto::Code::NoIdentity));
    };
    Ok(rule(DecideInput {
        relation: relation(cx, sender),
        kind,
        sender,
        receiver: &own.person,
        policy: &policy,
    }))
}

/// `reach` of `contacts.list`: what each other person lets this one send. A roster realm sends no cards, so it is
/// the default of the team.
pub(crate) fn reach(cx: &Ctx<'_, '_>) -> Result<Vec<Value>, StoreDown> {
    let Some(own) = cx.facts.me() else { return Ok(Vec::new()) };
    let members = cx.facts.roster().into_iter().flat_map(Roster::members);
    let mut persons: Vec<&PersonId> = members.map(|member| &member.person).collect();
    persons.sort();
    persons.dedup();
    Ok(persons
        .into_iter()
        .filter(|person| **person != own.person)
        .map(|person| reach_of(cx, person))
        .collect())
}

/// `Reach` of another person of the team.
pub(crate) fn reach_of(cx: &Ctx<'_, '_>, person: &PersonId) -> Value {
    let mut reach = Object::new();
    reach.set("person", Value::text(person.as_str()));
    let can =
        obj([("chat", Value::Bool(true)), ("agentMail", Value::Bool(true)), ("ask", Value::text("request"))]);
    reach.set("can", can);
    reach.set("source", Value::text("default"));
    let news = cx.facts.realm.history().news(person, cx.now()).next();
    set(&mut reach, "devicesChangedAt", news.map(|change| Value::int(change.at.0)));
    reach.into()
}

/// Writes what a grant sets, as clients see it.
pub(crate) fn show_levels(view: &mut Object, levels: &Levels) {
    set(view, "chat", levels.chat.map(|chat| Value::text(chat.as_str())));
    set(view, "agentMail", levels.agent_mail.map(|mail| Value::text(mail.as_str())));
    set(view, "ask", levels.ask.map(|ask| Value::text(ask.as_str())));
    set(view, "trustedUntil", levels.trusted_until.map(|until| Value::int(until.0)));
    set(view, "discoverable", levels.discoverable.map(Value::Bool));
}

#[cfg(test)]
mod hold_tests;
#[cfg(test)]
mod tests;
