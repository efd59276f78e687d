//! Mail and task requests to this machine's agents (`messaging/1 §6.1`, `§6.9` "Enforcement", `§8.3`).

use crate::daemon::consent::{self, holds};
use crate::daemon::ctx::{Ctx, Note};
use crate::daemon::directory;
use crate::daemon::mail::Mail;
use crate::daemon::mail::arrival::Arrival;
use crate::daemon::mail::inbox::{self, Item};
use crate::daemon::mail::receipts::Fate;
use crate::daemon::mail::records::Stored;
use crate::daemon::mail::sent;
use crate::daemon::sessions::rows::{self as sessions, CLI, Session};
use crate::daemon::tasks::{self, TaskRole};
use crate::daemon::text::{canonical, fits_a_line};
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::address::SessionAddress;
use messaging_proto::consent::hold::hold;
use messaging_proto::consent::{Class, Decision, Kind};
use messaging_proto::delegation::{Hop, Summary, verify_chain};
use messaging_proto::envelope::End;
use messaging_proto::json::Value;
use messaging_proto::payload::{MessageKind, Tier};
use messaging_proto::provenance;
use messaging_proto::realm::RealmView;
use messaging_proto::task::{BindError, Bound, Incoming, Stage, bind};
use messaging_proto::text::preview;

/// A message to an agent arrived: what becomes of it.
pub(super) fn arrived(mail: &mut Mail, cx: &mut Ctx<'_, '_>, arrival: Arrival) -> Result<Fate, StoreDown> {
    if over_quota(cx, &arrival)? {
        return Ok(Fate::Rejected(Code::RateLimited));
    }
    // What no line of the local API can carry would be delivered and never read.
    if !fits_a_line(arrival.message(), arrival.around()) {
        return Ok(Fate::Rejected(Code::TooLarge));
    }
    let bound = match binding(cx, &arrival)? {
        Ok(bound) => bound,
        Err(code) => return Ok(Fate::Rejected(code)),
    };
    let now = cx.now();
    let chain: Vec<_> = match &arrival.payload.delegation {
        Some(grants) => grants.iter().flat_map(|grant| [&grant.from.person, &grant.to.person]).collect(),
        None => vec![&arrival.from.person],
    };
    let kind = match bound {
        Bound::Answer { .. } => Kind::Answer,
        _ => Kind::Ask(&chain),
    };
    match consent::decide(cx, &arrival.from.person, kind, now)? {
        Decision::Deliver { class, .. } => admit(mail, cx, &arrival, class, bound),
        Decision::Refuse(code) => Ok(Fate::Rejected(code)),
        Decision::Hold => held(cx, &arrival),
    }
}

/// §8.3 the rest of the policy, for what consent delivers, and the delivery itself.
fn admit(
    mail: &mut Mail,
    cx: &mut Ctx<'_, '_>,
    arrival: &Arrival,
    class: Class,
    bound: Bound,
) -> Result<Fate, StoreDown> {
    let Some(session) = sessions::by_name(cx.txn, &arrival.to)? else {
        return Ok(Fate::Rejected(Code::UnknownSession));
    };
    // §8.2: a terminal cannot run a task.
    if arrival.is_task() && session.is_cli() {
        return Ok(Fate::Rejected(Code::Refused));
    }
    // An id of another machine's that this mailbox knows already: every call that names it would be ambiguous.
    if inbox::has(cx.txn, session.mailbox, &arrival.id)? {
        return Ok(Fate::Rejected(Code::InvalidRequest));
    }
    if !passes_loop_guard(mail, cx, arrival, &session)? {
        return Ok(Fate::Rejected(Code::LoopGuard));
    }
    let chain = match chain(cx, arrival) {
        Ok(chain) => chain,
        Err(code) => return Ok(Fate::Rejected(code)),
    };
    store(cx, arrival, &session, class, bound, chain)?;
    Ok(Fate::Delivered)
}

/// A held request the person let through (`§6.9`, "Holds"): the inbound policy again, chain and task id included.
pub(crate) fn release(mail: &mut Mail, cx: &mut Ctx<'_, '_>, arrival: &Arrival) -> Result<Fate, StoreDown> {
    match binding(cx, arrival)? {
        Ok(bound) => admit(mail, cx, arrival, Class::Guarded, bound),
        Err(code) => Ok(Fate::Rejected(code)),
    }
}

/// §6.9 "Holds": kept for the person, without an item, an event or a wake.
fn held(cx: &mut Ctx<'_, '_>, arrival: &Arrival) -> Result<Fate, StoreDown> {
    let session = sessions::by_name(cx.txn, &arrival.to)?;
    let checked = chain(cx, arrival);
    let (of_sender, in_all) = holds::counts(cx.txn, &arrival.from.person)?;
    if let Err(code) = hold(session.is_some(), checked.as_ref().err().copied(), of_sender, in_all) {
        return Ok(Fate::Rejected(code));
    }
    if holds::has(cx.txn, &arrival.id)? {
        return Ok(Fate::Rejected(Code::InvalidRequest));
    }
    let chain = checked.unwrap_or_default();
    holds::keep(cx, arrival, chain)?;
    Ok(Fate::Held)
}

/// §8.3 quota: items and bytes held from the sending machine.
fn over_quota(cx: &Ctx<'_, '_>, arrival: &Arrival) -> Result<bool, StoreDown> {
    let quota = cx.facts.config.quota();
    let held = inbox::held_from(cx.txn, &arrival.from.device)?;
    Ok(held.items >= quota.items || held.bytes + bytes(arrival) > quota.bytes)
}

fn bytes(arrival: &Arrival) -> u64 {
    canonical(arrival.message()).len() as u64
}

/// §5 "Counterpart binding" of a message.
fn binding(cx: &Ctx<'_, '_>, arrival: &Arrival) -> Result<Result<Bound, Code>, StoreDown> {
    let from = &arrival.from.device;
    let bound = match (&arrival.payload.message.task_id, arrival.payload.kind) {
        (Some(task), MessageKind::Task) => {
            bind(&Stored::request(cx.txn, arrival.id), from, Incoming::Request { task })?
        }
        (task, _) => {
            let (task, to_agent) = (task.as_ref(), Some(&arrival.to));
            let incoming = Incoming::Message { task, to_agent, reply_to: arrival.reply_to.as_ref() };
            bind(&Stored::side(cx.txn, &[TaskRole::Executor]), from, incoming)?
        }
    };
    Ok(bound.map_err(BindError::code))
}

/// §6.7: the chain of a task request, verified for the hop it arrived on. Mail has none.
fn chain(cx: &Ctx<'_, '_>, arrival: &Arrival) -> Result<Option<Summary>, Code> {
    let (Some(grants), Some(task)) = (arrival.raw.get("delegation"), arrival.payload.message.task_id) else {
        return Ok(None);
    };
    let (Some(own), Some(realm)) = (cx.facts.me(), cx.facts.roster()) else { return Err(Code::NoIdentity) };
    let hop = Hop {
        by: arrival.from.device,
        from: sender_address(arrival),
        to: SessionAddress {
            person: own.person.clone(),
            session: arrival.to.clone(),
            label: own.label.clone(),
        },
        task,
    };
    verify_chain(grants, realm, &hop, cx.now()).map(Some).map_err(|error| error.code())
}

fn sender_address(arrival: &Arrival) -> SessionAddress {
    SessionAddress {
        person: arrival.from.person.clone(),
        session: arrival.author.clone(),
        label: arrival.from.label.clone(),
    }
}

/// §8.3 loop guard: between two sessions that are no terminals.
fn passes_loop_guard(
    mail: &mut Mail,
    cx: &Ctx<'_, '_>,
    arrival: &Arrival,
    session: &Session,
) -> Result<bool, StoreDown> {
    if session.is_cli() {
        return Ok(true);
    }
    let client = directory::client_of(cx, &arrival.from.device, &arrival.author)?;
    if client.is_some_and(|client| client.as_str() == CLI) {
        return Ok(true);
    }
    Ok(mail.guard.admits(arrival.from.device, &sender_address(arrival), &arrival.to, cx.mono()))
}

/// Stores a delivered message in its session's inbox, with what it means for tasks and for what it answers.
fn store(
    cx: &mut Ctx<'_, '_>,
    arrival: &Arrival,
    session: &Session,
    class: Class,
    bound: Bound,
    chain: Option<Summary>,
) -> Result<(), StoreDown> {
    let text = canonical(&with_provenance(cx, arrival));
    let continues = matches!(bound, Bound::Answer { continues: true, .. });
    let item = Item {
        id: arrival.id,
        from: arrival.from.clone(),
        kind: arrival.payload.kind,
        message: arrival.payload.message.message_id.as_str().to_owned(),
        context: arrival.context().to_owned(),
        task: arrival.payload.message.task_id,
        reply_to: arrival.reply_to,
        preview: preview(arrival.parts()),
        at: cx.now(),
        stage: Stage::Delivered,
        // §8.3: the sender's hint, and a client that can be told. What is held never gets here.
        wake: arrival.payload.wake && session.tier == Tier::Push,
        consent: class,
        chain: chain.clone(),
        continuation: continues,
        bytes: bytes(arrival),
        read_in: None,
    };
    if let Bound::Answer { replied: Some(id), .. } = bound {
        sent::reach(cx, &id, Stage::Replied, None)?;
    }
    if arrival.is_task() {
        tasks::requested(cx, arrival, session, &item, &text, chain)?;
    } else if let (true, Some(task)) = (continues, &item.task) {
        tasks::continued(cx, task, &item, &text)?;
    }
    inbox::add(cx, session.mailbox, &item, &text)?;
    if item.wake {
        cx.note(Note::WakeWanted { key: session.key.clone(), item: item.id });
    }
    Ok(())
}

/// §6.6: who it came from, over whatever the peer put there.
fn with_provenance(cx: &Ctx<'_, '_>, arrival: &Arrival) -> Value {
    let mut message = arrival.message().clone();
    let from = End {
        person: arrival.from.person.clone(),
        device: arrival.from.device,
        agent: arrival.from.agent.clone(),
    };
    if let Some(device) = cx.facts.roster().and_then(|realm| realm.device(&arrival.from.device)) {
        provenance::write(&mut message, &device, &from);
    }
    message
}
