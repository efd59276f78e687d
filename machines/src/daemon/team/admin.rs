//! Changes of an existing team: each is one entry, written through the author role.

use super::calls::Change;
use crate::daemon::author::{Draft, Job, Unwritten};
use crate::daemon::ctx::{Answer, Caller, Ctx, Note, Outcome, Refusal, obj};
use crate::daemon::ipc::RpcError;
use crate::daemon::link::LinkPhase;
use crate::machine::Label as Draw;
use messaging_proto::Code;
use messaging_proto::json::Value;
use messaging_proto::key::SigningKey;
use messaging_proto::name::PersonName;
use messaging_proto::roster::{Member, Role};
use messaging_proto::ticket::InviteTicket;
use messaging_proto::ulid::Ulid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a caller gets once the entry is in the roster.
#[derive(Debug)]
enum Reward {
    Seq,
    Ticket { invite_id: Ulid, seed: SigningKey, person: PersonName },
}

/// Entries being written for callers. Lost with a crash, as their callers are.
#[derive(Debug, Default)]
pub(super) struct Admin {
    next: u64,
    waiting: BTreeMap<u64, (Caller, Reward)>,
}

impl Admin {
    pub(super) fn call(&mut self, cx: &mut Ctx<'_, '_>, caller: &Caller, change: Change) -> Outcome<Answer> {
        let (draft, result) = plan(cx, change)?;
        if cx.facts.link.phase() == LinkPhase::Offline {
            return Err(Refusal::code(Code::RelayUnavailable, "no relay connection"));
        }
        self.next += 1;
        self.waiting.insert(self.next, (caller.clone(), result));
        cx.note(Note::Write { job: Job::Team(self.next), draft: Arc::new(draft) });
        Ok(Answer::Later)
    }

    pub(super) fn written(&mut self, cx: &mut Ctx<'_, '_>, job: u64, written: Result<u64, Unwritten>) {
        let Some((caller, result)) = self.waiting.remove(&job) else { return };
        let reply = match written {
            Ok(seq) => match result {
                Reward::Seq => Ok(obj([("seq", Value::int(seq))])),
                Reward::Ticket { invite_id, seed, person } => ticket(cx, invite_id, seed, person),
            },
            Err(Unwritten::Refused(code)) => Err(RpcError::new(code, "the roster does not take this change")),
            Err(Unwritten::NoLink) => Err(RpcError::new(Code::RelayUnavailable, "no relay connection")),
            Err(Unwritten::Unknown) => Err(RpcError::new(
                Code::RelayUnavailable,
                "no answer: whether it was taken shows in team.info",
            )),
        };
        cx.reply(&caller, reply);
    }
}

/// The entry, after the checks that need no relay (`contract ipc §5`, in the order of each method's errors).
fn plan(cx: &Ctx<'_, '_>, change: Change) -> Outcome<(Draft, Reward)> {
    let forbidden = |text| Err(Refusal::code(Code::Forbidden, text));
    let Some(me) = cx.facts.me() else { return forbidden("this machine is not a member any more") };
    let admin = me.role == Role::Admin;
    let leaves = matches!(&change, Change::Remove(machine) if *machine == me.machine);
    if !admin && !leaves {
        return forbidden("only an admin changes the team");
    }
    if let Change::Remove(machine) | Change::Role(machine, _) | Change::Rekey(machine, _) = &change
        && cx.facts.roster().is_none_or(|roster| roster.member(machine).is_none())
    {
        return Err(RpcError::new(Code::NotFound, "no current member has this machine id")
            .at("machine")
            .into());
    }
    Ok(match change {
        Change::Invite { person, ttl_ms } => {
            let invite_id = Ulid::new(cx.now(), cx.step.draw(Draw::InviteId));
            let seed = SigningKey::from_seed(cx.step.draw(Draw::InviteSeed));
            let draft = Draft::InviteCreate { invite_id, seed: seed.clone(), person: person.clone(), ttl_ms };
            (draft, Reward::Ticket { invite_id, seed, person })
        }
        Change::Revoke(id) => (Draft::InviteRevoke(id), Reward::Seq),
        Change::Add { machine, enc, person, label } => {
            if !machine.is_usable() {
                return Err(RpcError::new(Code::InvalidRequest, "machine is not a usable key")
                    .at("machine")
                    .into());
            }
            // §8.2 "Admitting a machine without a ticket": always as a member.
            let member = Member { machine, enc, person: person.into(), role: Role::Member, label };
            (Draft::MemberAdd(member), Reward::Seq)
        }
        Change::Remove(machine) => (Draft::MemberRemove(machine), Reward::Seq),
        Change::Role(machine, role) => (Draft::MemberRole(machine, role), Reward::Seq),
        Change::Rekey(machine, _) if machine == me.machine => {
            // Publishing a key nobody here holds would lock this machine out of its own mail.
            return forbidden("this machine rotates its own key with identity.rotateEnc");
        }
        Change::Rekey(machine, enc) => (Draft::MemberRekey(machine, enc), Reward::Seq),
    })
}

/// §4 "Invites", step 2: the ticket holds the seed, and leaves by this reply alone.
fn ticket(
    cx: &Ctx<'_, '_>,
    invite_id: Ulid,
    secret: SigningKey,
    person: PersonName,
) -> Result<Value, RpcError> {
    let internal = RpcError::new(Code::Internal, "the ticket cannot be made");
    let invite =
        cx.facts.roster().and_then(|roster| Some((roster.team()?, roster.invite(&invite_id)?.expires)));
    let (Some((team, expires)), Some(relay)) = (invite, cx.facts.config.relay().cloned()) else {
        return Err(internal);
    };
    let ticket = InviteTicket { relay, team, invite_id, person, expires, secret };
    let text = ticket.encode().map_err(|_| internal)?;
    Ok(obj([
        ("inviteId", Value::text(invite_id.as_str())),
        ("ticket", Value::text(text.as_str())),
        ("expires", Value::int(expires.0)),
    ]))
}
