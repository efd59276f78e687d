//! What a received envelope goes through (`messaging/1 §5`, "Receiver verification order", `§8.3`).
//!
//! One step decides an envelope: what it changes, its place among the seen, its receipt and its `recv.ack` are one
//! transaction, so that a crash leaves all of it or nothing.
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `seen` | realm ‖ device ‖ envelope id | nothing; kept until `exp + clockSkewMs` |

mod message;
mod queue;
mod update;

pub(crate) use message::release;

use super::Mail;
use super::arrival::Arrival;
use super::budget::{Class, SPARE_MS};
use super::peer::Peer;
use super::receipts::{self, Fate};
use crate::daemon::chats;
use crate::daemon::consent;
use crate::daemon::ctx::{Ctx, Note};
use crate::daemon::due;
use crate::daemon::io::Level;
use crate::daemon::rows::{self, Key};
use crate::store::{StoreDown, Table};
use messaging_proto::Code;
use messaging_proto::envelope::{
    Envelope, Inspected, Kind, LooseType, LooseVersion, open_envelope, signed_head, stale_seal,
    verify_envelope,
};
use messaging_proto::key::MachineId;
use messaging_proto::limits::CLOCK_SKEW_MS;
use messaging_proto::meaning::Meaning;
use messaging_proto::name::PersonId;
use messaging_proto::payload::{Payload, Typed};
use messaging_proto::realm::{Anchor, RealmView, Relation};
use messaging_proto::ulid::Ulid;
pub(crate) use queue::Deferred;
use std::sync::Arc;

pub(crate) const SEEN: Table = Table("seen");

/// What to tell whoever brought an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is dealt with: ack it.
    Done,
    /// It is to come again: withhold the ack (`§7`, "Deferring").
    Later,
}

/// Deals with one sealed envelope.
pub(crate) fn deliver(
    mail: &mut Mail,
    cx: &mut Ctx<'_, '_>,
    env: &Arc<Inspected>,
) -> Result<Verdict, StoreDown> {
    let Ok(envelope) = env.envelope() else {
        return unreadable(mail, cx, env);
    };
    let header = &envelope.header;
    let sender = header.from.device;
    let now = cx.now();
    // §5 "Roster head check": what its sender has seen past this chain was not provided, so nothing is decided.
    let (Some(realm), Some(identity)) = (cx.facts.roster(), cx.facts.keys.current()) else {
        return Ok(Verdict::Later);
    };
    if let Some(head) = signed_head(env, &realm.realm())
        && realm.relate(&Anchor::Roster(head)) == Relation::Ahead
    {
        return Ok(Verdict::Later);
    }
    if let Err(error) = verify_envelope(env, realm, now, Some(&identity.machine())) {
        let named =
            Named { kind: Some(header.kind), person: &header.from.person, device: sender, id: header.id };
        return refuse_unverified(mail, cx, env, &named, error.code());
    }
    if matches!(realm.relate(&header.anchor), Relation::Diverged { .. }) {
        cx.note(Note::Diverged(Arc::clone(env)));
        if !matches!(header.kind, Kind::Receipt | Kind::Presence) && budget(mail, cx, sender, Class::Message)
        {
            receipts::say(cx, &header.from.person, sender, &header.id, Fate::Rejected(Code::RosterConflict))?;
        }
        return Ok(Verdict::Done);
    }
    // §5 step 8: the same id of another machine is another envelope.
    let seen = Key::new().bytes(&header.realm.0).bytes(&sender.0).text(header.id.as_str());
    if rows::has(cx.txn, SEEN, &seen)? {
        return Ok(Verdict::Done);
    }
    let (class, opened) = classify(cx, env, envelope);
    if let Some(verdict) = over_budget(mail, cx, envelope, class)? {
        if verdict == Verdict::Done {
            mark_seen(cx, &seen, envelope);
        }
        return Ok(verdict);
    }
    let fate = match opened.unwrap_or_else(|| open(cx, env, envelope)) {
        Ok(payload) => apply(mail, cx, envelope, payload)?,
        Err(code) => Some(Fate::Rejected(code)),
    };
    mark_seen(cx, &seen, envelope);
    // §6.4: no receipt answers a receipt.
    if let (Some(fate), true) = (fate, header.kind != Kind::Receipt) {
        if let Fate::Rejected(code) = fate {
            cx.log(
                Level::Info,
                "inbound.rejected",
                vec![("code", code.to_string()), ("type", kind_text(header.kind))],
            );
        }
        receipts::say(cx, &header.from.person, sender, &header.id, fate)?;
    }
    Ok(Verdict::Done)
}

fn kind_text(kind: Kind) -> String {
    kind.as_str().to_owned()
}

fn mark_seen(cx: &mut Ctx<'_, '_>, seen: &Key, envelope: &Envelope) {
    rows::mark(cx.txn, SEEN, seen);
    due::at(cx.txn, envelope.header.exp.plus(CLOCK_SKEW_MS), due::Kind::Seen, seen);
}

/// A dedupe row's time is over.
pub(crate) fn forget_seen(cx: &mut Ctx<'_, '_>, key: &[u8]) {
    cx.txn.delete(SEEN, key);
}

type Opened = Result<Payload, Code>;

/// The budget an envelope counts against. A sync between own devices can only be told from a chat line by what is
/// in it, and is opened for that.
fn classify(cx: &Ctx<'_, '_>, env: &Inspected, envelope: &Envelope) -> (Class, Option<Opened>) {
    let class = Class::of(envelope);
    let own = envelope.header.class == Some(messaging_proto::envelope::Class::Own);
    if class != Class::Chat || !own {
        return (class, None);
    }
    let opened = open(cx, env, envelope);
    let sync = opened.as_ref().is_ok_and(|payload| meaning(envelope, payload) == Some(Meaning::Sync));
    (if sync { Class::Message } else { Class::Chat }, Some(opened))
}

fn meaning(envelope: &Envelope, payload: &Payload) -> Option<Meaning> {
    messaging_proto::meaning::check(&envelope.header, payload.raw(), payload.typed()).ok()
}

/// §8.3 rate limit: what is over the sender's budget comes again, unless it would end before its turn.
fn over_budget(
    mail: &mut Mail,
    cx: &mut Ctx<'_, '_>,
    envelope: &Envelope,
    class: Class,
) -> Result<Option<Verdict>, StoreDown> {
    let header = &envelope.header;
    let sender = header.from.device;
    let (mono, now) = (cx.mono(), cx.now());
    let turn = mail.deferred.is_turn(sender, class, header.id, mono);
    let wait = match if turn { mail.budgets.take(sender, class, mono) } else { Err(1) } {
        Ok(()) => {
            mail.deferred.taken(sender, class, header.id);
            return Ok(None);
        }
        Err(wait) => wait,
    };
    if header.exp >= now.plus(wait).plus(SPARE_MS) {
        mail.deferred.add(sender, class, header.id, mono);
        return Ok(Some(Verdict::Later));
    }
    // It can never be taken. The answers have a budget of their own.
    mail.deferred.taken(sender, class, header.id);
    let answered = match class {
        Class::Message if header.kind == Kind::Message => budget(mail, cx, sender, Class::MessageAnswer),
        Class::Chat => budget(mail, cx, sender, Class::ChatAnswer),
        _ => false,
    };
    if answered {
        receipts::say(cx, &header.from.person, sender, &header.id, Fate::Rejected(Code::RateLimited))?;
    }
    Ok(Some(Verdict::Done))
}

fn budget(mail: &mut Mail, cx: &Ctx<'_, '_>, sender: MachineId, class: Class) -> bool {
    mail.budgets.take(sender, class, cx.mono()).is_ok()
}

fn open(cx: &Ctx<'_, '_>, env: &Inspected, envelope: &Envelope) -> Opened {
    let (Some(identity), Some(realm)) = (cx.facts.keys.current(), cx.facts.roster()) else {
        return Err(Code::NoIdentity);
    };
    open_envelope(env, &identity.open_keys(cx.now())).map_err(|error| {
        let rekeyed = realm.rekey_seq(&identity.machine());
        // §4: sealed to the key this machine had before.
        stale_seal(error, &envelope.header.anchor, rekeyed).code()
    })
}

/// Applies an opened envelope. What its sender is told; nothing for what is never answered.
fn apply(
    mail: &mut Mail,
    cx: &mut Ctx<'_, '_>,
    envelope: &Envelope,
    payload: Payload,
) -> Result<Option<Fate>, StoreDown> {
    let header = &envelope.header;
    let meaning = meaning(envelope, &payload);
    let (raw, typed) = payload.into_parts();
    match typed {
        Typed::Message(payload) => match (meaning, header.to.end().and_then(|end| end.agent.clone())) {
            (Some(Meaning::Mail | Meaning::Task), Some(to)) => {
                let Some(from) = peer(cx, envelope) else { return Ok(Some(Fate::Rejected(Code::NotMember))) };
                let Some(author) = from.agent.clone() else {
                    return Ok(Some(Fate::Rejected(Code::InvalidRequest)));
                };
                let arrival = Arrival {
                    id: header.id,
                    from,
                    author,
                    to,
                    reply_to: header.reply_to,
                    exp: header.exp,
                    raw,
                    payload: *payload,
                };
                message::arrived(mail, cx, arrival).map(Some)
            }
            (Some(Meaning::Sync), _) => {
                consent::sync_arrived(cx, raw.get("message"))?;
                Ok(Some(Fate::Delivered))
            }
            // §6.9: a roster realm is one org. It has no message requests, sends no card and answers no wish for one.
            (Some(Meaning::Request), _) => Ok(Some(Fate::Rejected(Code::InvalidRequest))),
            (Some(Meaning::Card), _) => Ok(Some(Fate::Delivered)),
            _ => chats::arrived(mail, cx, envelope, &payload).map(Some),
        },
        Typed::Receipt(receipt) => {
            update::receipt(cx, header.from.device, &receipt)?;
            Ok(None)
        }
        Typed::TaskStatus(status) => update::status(cx, envelope, &raw, &status).map(Some),
        Typed::TaskArtifact(artifact) => update::artifact(cx, envelope, &raw, &artifact).map(Some),
        Typed::TaskCancel(cancel) => update::cancel(cx, header.from.device, &cancel).map(Some),
        Typed::Presence(_) => Ok(None),
    }
}

/// The sender of a verified envelope.
fn peer(cx: &Ctx<'_, '_>, envelope: &Envelope) -> Option<Peer> {
    let from = &envelope.header.from;
    let device = cx.facts.roster()?.member(&from.device)?;
    Some(Peer {
        person: from.person.clone(),
        device: from.device,
        label: device.label.clone(),
        agent: from.agent.clone(),
    })
}

/// An envelope that breaks its schema: acked when it can be named, so that it never comes again and never breaks
/// the link, and answered when its sender is sure (contract wire-core §5.3, "Loose delivery").
fn unreadable(mail: &mut Mail, cx: &mut Ctx<'_, '_>, env: &Inspected) -> Result<Verdict, StoreDown> {
    let loose = env.loose();
    let (Some(id), Some(device), Some(person)) = (loose.id, loose.from_device, &loose.from_person) else {
        return Ok(Verdict::Done);
    };
    let known = match (loose.v, loose.type_) {
        (LooseVersion::Current, LooseType::Known(kind)) => Some(kind),
        _ => None,
    };
    let named = Named { kind: known, person, device, id };
    refuse_unverified(mail, cx, env, &named, Code::InvalidRequest)
}

/// What an envelope that fails its verification says of itself.
struct Named<'a> {
    /// Its type, when this version has it.
    kind: Option<Kind>,
    person: &'a PersonId,
    device: MachineId,
    id: Ulid,
}

/// A failed verification changes nothing. It is answered only to a current member whose signature holds, within
/// that member's budget.
fn refuse_unverified(
    mail: &mut Mail,
    cx: &mut Ctx<'_, '_>,
    env: &Inspected,
    named: &Named<'_>,
    code: Code,
) -> Result<Verdict, StoreDown> {
    let member = cx.facts.roster().and_then(|roster| roster.member(&named.device));
    let sure = env.signature_ok() && member.is_some_and(|member| member.person == *named.person);
    if !sure || !budget(mail, cx, named.device, Class::Message) {
        return Ok(Verdict::Done);
    }
    let mut fields = vec![("code", code.to_string()), ("device", named.device.to_string())];
    if let (Code::Expired, Ok(envelope)) = (code, env.envelope()) {
        // A clock that is off is found by comparing these.
        fields.push(("ts", envelope.header.ts.0.to_string()));
        fields.push(("clock", cx.now().0.to_string()));
    }
    cx.log(Level::Info, "inbound.refused", fields);
    if !matches!(named.kind, Some(Kind::Receipt | Kind::Presence)) {
        receipts::say(cx, named.person, named.device, &named.id, Fate::Rejected(code))?;
    }
    Ok(Verdict::Done)
}

#[cfg(test)]
mod tests;
