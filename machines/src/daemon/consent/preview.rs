//! What an action would do, in one fixed sentence for a confirmation (contract ipc §4). Previews change nothing.

use super::calls::{SetGrant, SubjectParam, check_answer, checked};
use super::params::Reply;
use crate::daemon::ctx::{Answer, Ctx, Outcome, obj};
use messaging_proto::consent::hold::Answer as Choice;
use messaging_proto::consent::{AgentMail, Ask, Chat, Levels};
use messaging_proto::json::{Object, Value};
use messaging_proto::name::PersonId;
use messaging_proto::payload::MessageKind;
use messaging_proto::text::clean_peer_text;

/// How long a name in a sentence may be, in UTF-16 units.
const NAME_UNITS: usize = 80;

/// `grant.set.preview`.
pub(super) fn grant(cx: &Ctx<'_, '_>, params: &SetGrant) -> Outcome<Answer> {
    let grant = checked(cx, params)?;
    let name = match &params.subject {
        SubjectParam::Person(person) => name(person),
        SubjectParam::Channel(local) => format!("Members of #{local}"),
    };
    Ok(Answer::Now(obj([("sentence", Value::text(levels(&name, &grant.levels)))])))
}

/// A roster realm knows a person by the name in the roster.
fn name(person: &PersonId) -> String {
    clean_peer_text(person.as_str(), Some(NAME_UNITS))
}

fn levels(name: &str, levels: &Levels) -> String {
    if levels.is_clear() {
        return format!("{name} falls back to the defaults.");
    }
    let mut clauses = Vec::new();
    clauses.extend(levels.chat.map(|chat| match chat {
        Chat::Open => format!("{name} may write to you"),
        Chat::Muted => format!("{name} may write to you without notices"),
        Chat::Blocked => format!("{name} may not reach you at all"),
    }));
    clauses.extend(levels.agent_mail.map(|mail| match mail {
        AgentMail::Open => format!("{name}'s agents may write to you"),
        AgentMail::Blocked => format!("{name}'s agents may not write to you"),
    }));
    clauses.extend(levels.ask.map(|ask| match ask {
        Ask::Open => format!("{name} may ask your agents"),
        Ask::Request => format!("{name} may ask your agents after you agree each time"),
        Ask::No => format!("{name} may not ask your agents"),
    }));
    clauses.extend(levels.trusted_until.map(|until| {
        format!("requests from {name} run with your agents' own permissions until {}", until.date())
    }));
    clauses.extend(levels.discoverable.map(|found| {
        if found { "people can find you by email" } else { "people cannot find you by email" }.to_owned()
    }));
    format!("{}.", clauses.join("; "))
}

/// `request.answer.preview`.
pub(super) fn answer(cx: &Ctx<'_, '_>, reply: Reply) -> Outcome<Answer> {
    let checked = check_answer(cx, reply)?;
    let Some((_, ask)) = checked.asks.first() else { return Ok(Answer::ok()) };
    let name = name(&ask.from.person);
    let to = &ask.session;
    let mut sentence = match reply.answer {
        Choice::Once | Choice::Accept => {
            format!("Your agent {to} gets this request from {name}; it runs guarded.")
        }
        Choice::Always => {
            format!(
                "Your agent {to} gets this request, and later requests from {name} arrive without asking you."
            )
        }
        Choice::Decline => format!("{name} is told that you declined."),
        Choice::Block => {
            format!("{name} cannot write to you or your agents any more, and is told that you declined.")
        }
    };
    let count = checked.asks.len();
    if count > 1 {
        sentence.push_str(&format!(" This answers {count} requests."));
    }
    let kind = match ask.kind {
        MessageKind::Message => "message",
        MessageKind::Task => "task",
    };
    let team = cx.facts.roster().and_then(|roster| roster.name()).map_or("", |name| name.as_str());
    let mut view = Object::new();
    view.set("kind", Value::text(kind));
    view.set("from", obj([("name", Value::text(ask.from.person.as_str())), ("org", Value::text(team))]));
    if let Some(agent) = &ask.from.agent {
        view.set("agent", Value::text(agent.as_str()));
    }
    view.set("to", Value::text(to.as_str()));
    view.set("count", Value::int(count as u64));
    view.set("sentence", Value::text(sentence));
    Ok(Answer::Now(view.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use messaging_proto::time::Wall;

    #[test]
    fn sentences_are_the_contracts() {
        let text = |set: Levels| levels("bob", &set);
        assert_eq!(text(Levels::default()), "bob falls back to the defaults.");
        let set = Levels {
            chat: Some(Chat::Muted),
            agent_mail: Some(AgentMail::Blocked),
            ask: Some(Ask::Open),
            trusted_until: Some(Wall(1_767_225_600_000)),
            discoverable: None,
        };
        assert_eq!(
            text(set),
            "bob may write to you without notices; bob's agents may not write to you; bob may ask your agents; \
             requests from bob run with your agents' own permissions until 2026-01-01."
        );
    }
}
