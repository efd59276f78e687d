//! `team.info` (`contract ipc §5`).

use crate::daemon::ctx::{Answer, Ctx, Outcome, Refusal, obj};
use messaging_proto::Code;
use messaging_proto::json::{Object, Value};
use messaging_proto::roster::{Invite, InviteState};
use messaging_proto::ticket::TeamCard;
use messaging_proto::time::Wall;

pub(super) fn info(cx: &Ctx<'_, '_>) -> Outcome<Answer> {
    let none = || Refusal::code(Code::NoIdentity, "create or join a team first");
    let roster = cx.facts.roster().ok_or_else(none)?;
    let (Some(team), Some(name), Some(head)) = (roster.team(), roster.name(), roster.head()) else {
        return Err(none());
    };
    let relay = cx.facts.config.relay().ok_or_else(none)?;
    let own = cx.facts.keys.current().map(messaging_proto::identity::Identity::machine);
    let card = TeamCard { relay: relay.clone(), team, name: name.clone() };
    let card = card.encode().map_err(|_| Refusal::code(Code::Internal, "the team card cannot be made"))?;
    let members = roster.members().map(|member| {
        obj([
            ("machine", Value::text(member.machine.to_string())),
            ("enc", Value::text(member.enc.to_string())),
            ("person", Value::text(member.person.as_str())),
            ("role", Value::text(member.role.as_str())),
            ("label", Value::text(member.label.as_str())),
            ("self", Value::Bool(own == Some(member.machine))),
        ])
    });
    let now = cx.now();
    let invites = roster.invites().map(|(id, invite)| {
        obj([
            ("inviteId", Value::text(id.as_str())),
            ("person", Value::text(invite.person.as_str())),
            ("expires", Value::int(invite.expires.0)),
            ("state", Value::text(state(invite, now))),
        ])
    });
    let mut result = Object::new();
    result.set("team", Value::text(team.to_string()));
    result.set("name", Value::text(name.as_str()));
    result.set("relay", Value::text(relay.as_str()));
    result.set("head", head.to_value());
    result.set("card", Value::text(card));
    // A removed machine has no role any more.
    if let Some(me) = cx.facts.me() {
        result.set("role", Value::text(me.role.as_str()));
    }
    result.set("members", Value::Array(members.collect()));
    result.set("invites", Value::Array(invites.collect()));
    Ok(Answer::Now(result.into()))
}

fn state(invite: &Invite, now: Wall) -> &'static str {
    match invite.state {
        InviteState::Open if invite.expires <= now => "expired",
        InviteState::Open => "open",
        InviteState::Redeemed => "used",
        InviteState::Revoked => "revoked",
    }
}
