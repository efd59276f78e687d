//! `grant.set`, `grant.list`, `request.list` and `request.answer` (contract ipc §4).

use super::holds::{self, Ask};
use super::params::{Call, Reply};
use super::{preview, rows, show_levels, sync};
use crate::daemon::chats::channels;
use crate::daemon::ctx::{Answer, Ctx, Outcome, Refusal, obj};
use crate::daemon::ipc::RpcError;
use crate::daemon::mail::Mail;
use crate::daemon::mail::inbound;
use crate::daemon::mail::peer::set;
use crate::daemon::mail::receipts::{self, Fate};
use crate::machine::Label;
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::consent::hold::{self, Held, Then, next_ts};
use messaging_proto::consent::{
    Ask as Asking, ConsentError, ConsentGrant, Levels, NewGrant, Review, Subject, sign_consent_grant,
};
use messaging_proto::json::{Object, Value};
use messaging_proto::limits::{GRANTS_PER_PERSON, TRUST_DEFAULT_MS, TRUST_MAX_MS};
use messaging_proto::name::{ChannelName, PersonId};
use messaging_proto::realm::RealmView;
use messaging_proto::ulid::Ulid;
use std::cmp::Reverse;

/// Whom a call is about: a person, or a channel by its local name.
#[derive(Clone, Debug)]
pub enum SubjectParam {
    /// A person.
    Person(PersonId),
    /// A channel.
    Channel(ChannelName),
}

/// `grant.set`.
#[derive(Clone, Debug)]
pub struct SetGrant {
    pub(crate) subject: SubjectParam,
    pub(crate) levels: Levels,
    /// Trust for the default time.
    pub(crate) trust: bool,
}

/// Serves a call.
pub(crate) fn call(mail: &mut Mail, cx: &mut Ctx<'_, '_>, call: Call) -> Outcome<Answer> {
    match call {
        Call::GrantList(subject) => grant_list(cx, subject.as_ref()),
        Call::GrantSet(params) => grant_set(cx, &params),
        Call::GrantPreview(params) => preview::grant(cx, &params),
        Call::RequestList => request_list(cx),
        Call::RequestAnswer(reply) => answer(mail, cx, reply),
        Call::RequestPreview(reply) => preview::answer(cx, reply),
        // A roster realm is one org: its persons send no cards and no message requests.
        Call::Card(person) if is_member(cx, &person) => Ok(Answer::Now(obj([("sent", Value::Bool(false))]))),
        Call::Card(_) => {
            Err(RpcError::new(Code::NotFound, "the team has no such person").at("person").into())
        }
        Call::Contact => Err(Refusal::code(Code::InvalidRequest, "a team has no message requests")),
    }
}

fn is_member(cx: &Ctx<'_, '_>, person: &PersonId) -> bool {
    cx.facts.roster().is_some_and(|roster| roster.machines_of(person).next().is_some())
}

/// The subject as grants name it.
fn subject(cx: &Ctx<'_, '_>, param: &SubjectParam) -> Outcome<Subject> {
    match param {
        SubjectParam::Person(person) if is_member(cx, person) => Ok(Subject::Person(person.clone())),
        SubjectParam::Person(_) => Err(unknown("the team has no such person")),
        SubjectParam::Channel(local) => channel(cx, local),
    }
}

/// §8.2 a channel is named as this machine holds it.
fn channel(cx: &Ctx<'_, '_>, local: &ChannelName) -> Outcome<Subject> {
    let channel = channels::by_local(cx.txn, local)?;
    let channel = channel.ok_or_else(|| unknown("this person is in no such channel"))?;
    Ok(Subject::Channel(channel.id))
}

/// What a `grant.set` would make: checked and signed, nothing written.
pub(crate) fn checked(cx: &Ctx<'_, '_>, params: &SetGrant) -> Outcome<ConsentGrant> {
    // §8.9: keys that may be older than the published ones sign nothing new.
    if cx.facts.keys.alarm().is_some() {
        return Err(Refusal::code(Code::InvalidState, "an alarm about this machine's keys stands"));
    }
    let subject = subject(cx, &params.subject)?;
    let mut levels = params.levels.clone();
    if params.trust {
        if levels.trusted_until.is_some() {
            return Err(invalid("trust and trustedUntil exclude each other", "trust"));
        }
        levels.trusted_until = Some(cx.now().plus(TRUST_DEFAULT_MS));
    }
    let held = rows::get(cx.txn, &subject)?;
    if held.is_none() && rows::count(cx.txn)? >= GRANTS_PER_PERSON {
        return Err(Refusal::code(Code::RateLimited, "this person holds the most grants allowed"));
    }
    sign(cx, subject, levels, held.as_ref())
}

fn sign(
    cx: &Ctx<'_, '_>,
    subject: Subject,
    levels: Levels,
    held: Option<&ConsentGrant>,
) -> Outcome<ConsentGrant> {
    let (Some(own), Some(identity), Some(realm)) =
        (cx.facts.me(), cx.facts.keys.current(), cx.facts.roster())
    else {
        return Err(Refusal::code(Code::NoIdentity, "this machine is in no team"));
    };
    let now = cx.now();
    let (channel, ask) = (matches!(subject, Subject::Channel(_)), levels.ask);
    let new = NewGrant {
        realm: realm.realm(),
        id: Ulid::new(now, cx.step.draw(Label::GrantId)),
        person: own.person.clone(),
        ts: next_ts(now, held.map(|held| held.ts)),
        subject,
        levels,
    };
    sign_consent_grant(identity.signing(), new.to_value())
        .map_err(|error| Refusal::code(error.code(), broken(&error, channel, ask)))
}

/// What [`broken`] says of it.
const _: () = assert!(TRUST_MAX_MS == 90 * 86_400_000);

/// Which rule a grant breaks (`§6.9`, "Grants"), for whoever sets it.
fn broken(error: &ConsentError, channel: bool, ask: Option<Asking>) -> &'static str {
    let ConsentError::Rule { member } = error else { return "the grant breaks a rule" };
    match *member {
        "chat" => "chat is for a person, not for a channel",
        "discoverable" => "discoverable is only for oneself",
        "trustedUntil" if channel => "trust is for a person, not for a channel",
        "trustedUntil" if ask != Some(Asking::Open) => "trust needs ask open",
        "trustedUntil" => "trust lasts at most 90 days",
        _ => "the grant breaks a rule",
    }
}

/// `grant.set`: signs the whole new grant, and sends it to this person's other devices.
fn grant_set(cx: &mut Ctx<'_, '_>, params: &SetGrant) -> Outcome<Answer> {
    let grant = checked(cx, params)?;
    rows::put(cx.txn, &grant)?;
    sync::send(cx, std::slice::from_ref(&grant))?;
    Ok(Answer::Now(obj([("grant", show(cx, &grant)?)])))
}

/// `grant.list`: newest first.
fn grant_list(cx: &Ctx<'_, '_>, of: Option<&SubjectParam>) -> Outcome<Answer> {
    let of = of.map(|param| match param {
        SubjectParam::Person(person) => Ok(Subject::Person(person.clone())),
        SubjectParam::Channel(local) => channel(cx, local),
    });
    let of = of.transpose()?;
    let wanted = |subject: &Subject| of.as_ref().is_none_or(|of| of == subject);
    let mut grants = rows::all(cx.txn)?;
    grants.retain(|grant| wanted(&grant.subject));
    grants.sort_by_key(|grant| Reverse((grant.ts, grant.id)));
    let mut reviews = rows::reviews(cx.txn)?;
    reviews.retain(|review| wanted(&review.subject));
    reviews.sort_by_key(|review| Reverse(review.lapsed_at));
    let shown = grants.iter().map(|grant| show(cx, grant)).collect::<Result<_, _>>()?;
    let lapsed = reviews.iter().map(|review| show_review(cx, review)).collect::<Result<_, _>>()?;
    Ok(Answer::Now(obj([("grants", Value::Array(shown)), ("review", Value::Array(lapsed))])))
}

/// A subject as clients see it: a channel with its local name while this person is in it.
fn show_subject(cx: &Ctx<'_, '_>, subject: &Subject) -> Result<Value, StoreDown> {
    let mut view = subject.to_value();
    if let (Subject::Channel(id), Value::Object(view)) = (subject, &mut view) {
        let channel = channels::get(cx.txn, id)?;
        set(view, "local", channel.map(|channel| Value::text(channel.local.as_str())));
    }
    Ok(view)
}

fn show(cx: &Ctx<'_, '_>, grant: &ConsentGrant) -> Result<Value, StoreDown> {
    let mut view = Object::new();
    view.set("subject", show_subject(cx, &grant.subject)?);
    show_levels(&mut view, &grant.levels);
    view.set("id", Value::text(grant.id.as_str()));
    view.set("ts", Value::int(grant.ts.0));
    view.set("by", Value::text(grant.by.to_string()));
    set(&mut view, "resignedAt", grant.resigned_at.map(|at| Value::int(at.0)));
    Ok(view.into())
}

fn show_review(cx: &Ctx<'_, '_>, review: &Review) -> Result<Value, StoreDown> {
    let mut levels = Object::new();
    show_levels(&mut levels, &review.levels);
    Ok(obj([
        ("subject", show_subject(cx, &review.subject)?),
        ("by", Value::text(review.by.to_string())),
        ("ts", Value::int(review.ts.0)),
        ("lapsedAt", Value::int(review.lapsed_at.0)),
        ("levels", levels.into()),
    ]))
}

/// `request.list`.
fn request_list(cx: &Ctx<'_, '_>) -> Outcome<Answer> {
    Ok(Answer::Now(holds::list(cx.txn, cx.now())?))
}

/// What an answer would do: checked and signed, nothing written.
pub(super) struct Checked {
    /// The requests it settles, the named one first.
    pub(super) asks: Vec<(u64, Ask)>,
    grant: Option<ConsentGrant>,
    then: Then,
}

/// Checks an answer.
pub(super) fn check_answer(cx: &Ctx<'_, '_>, reply: Reply) -> Outcome<Checked> {
    let now = cx.now();
    let Some(first) = holds::find(cx.txn, &reply.id, now)? else {
        return Err(RpcError::new(Code::NotFound, "nothing is held under this id").at("id").into());
    };
    let person = first.1.from.person.clone();
    let subject = Subject::Person(person.clone());
    let held = rows::get(cx.txn, &subject)?;
    let levels = super::grant_about(cx, &person)?.map(|grant| grant.levels.clone()).unwrap_or_default();
    let answered = hold::answer(Held::Ask, reply.answer, &levels, now)
        .map_err(|code| RpcError::new(code, "a request to an agent takes no such answer").at("answer"))?;
    let grant = match answered.levels {
        Some(_) if held.is_none() && rows::count(cx.txn)? >= GRANTS_PER_PERSON => {
            return Err(Refusal::code(Code::RateLimited, "this person holds the most grants allowed"));
        }
        Some(levels) => Some(sign(cx, subject, levels, held.as_ref())?),
        None => None,
    };
    let mut asks = vec![first];
    if reply.all {
        let others = holds::all(cx.txn)?.into_iter();
        asks.extend(
            others.filter(|(_, ask)| ask.id != reply.id && ask.from.person == person && ask.exp > now),
        );
    }
    Ok(Checked { asks, grant, then: answered.then })
}

/// `request.answer`.
fn answer(mail: &mut Mail, cx: &mut Ctx<'_, '_>, reply: Reply) -> Outcome<Answer> {
    let Checked { asks, grant, then } = check_answer(cx, reply)?;
    if let Some(grant) = &grant {
        rows::put(cx.txn, grant)?;
        sync::send(cx, std::slice::from_ref(grant))?;
    }
    let mut ids = Vec::new();
    for (number, ask) in asks {
        settle(mail, cx, number, &ask, then)?;
        ids.push(Value::text(ask.id.as_str()));
    }
    mail.settle(cx)?;
    Ok(Answer::Now(obj([("answered", Value::Array(ids))])))
}

/// Lets one request through or refuses it. One whose sender left the realm ends here, with nothing sent.
fn settle(
    mail: &mut Mail,
    cx: &mut Ctx<'_, '_>,
    number: u64,
    ask: &Ask,
    then: Then,
) -> Result<(), StoreDown> {
    let arrival = holds::take(cx.txn, number, ask)?;
    let member = cx.facts.roster().is_some_and(|roster| roster.member(&ask.from.device).is_some());
    let fate = match (then, arrival) {
        (Then::Deliver, Some(arrival)) if member => inbound::release(mail, cx, &arrival)?,
        _ => Fate::Rejected(Code::Declined),
    };
    match fate {
        // §8.4: `held` stands for `delivered`; what follows is said when a client is handed it.
        Fate::Delivered => Ok(()),
        fate => receipts::say(cx, &ask.from.person, ask.from.device, &ask.id, fate),
    }
}

fn unknown(text: &'static str) -> Refusal {
    RpcError::new(Code::NotFound, text).at("subject").into()
}

fn invalid(text: &'static str, field: &'static str) -> Refusal {
    RpcError::new(Code::InvalidRequest, text).at(field).into()
}
