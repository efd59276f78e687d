//! A notice as clients see it (contract ipc §2, `Notice`). What is true only now (whether a machine is still a member,
//! a line's text) is read when it is shown.

use super::rows::{About, Notice};
use crate::daemon::chats::lines;
use crate::daemon::ctx::{Ctx, obj};
use crate::daemon::devices::{Change, Went};
use crate::daemon::identity::Alarm;
use crate::daemon::mail::peer::set;
use crate::store::StoreDown;
use messaging_proto::json::{Object, Value};
use messaging_proto::name::PersonId;
use messaging_proto::realm::Role;
use messaging_proto::text::clean_peer_text;
use messaging_proto::ulid::Ulid;

/// The longest `line`, in UTF-16 units.
const LINE_UNITS: usize = 120;

/// The notice, with the text of a line when the client asked for `lines`.
pub(super) fn show(cx: &Ctx<'_, '_>, notice: &Notice, texts: bool) -> Result<Value, StoreDown> {
    let mut view = Object::new();
    view.set("id", Value::text(notice.id.as_str()));
    match &notice.about {
        About::Line { conversation, person, line } => {
            view.set("category", Value::text("message"));
            view.set("conversation", Value::text(conversation.to_string()));
            view.set("from", card(cx, person));
            if texts {
                set(&mut view, "line", first_line(cx, line)?.map(Value::text));
            }
        }
        About::Request { person, agent } => {
            view.set("category", Value::text("request"));
            view.set("conversation", Value::text(format!("agent:{person}/{agent}")));
            view.set("from", card(cx, person));
        }
        About::Alarm(alarm) => {
            let text = if alarm == Alarm::KeysMissing.as_str() {
                "The keys of this machine are gone: restore identity.json, or replace this machine in the team."
            } else {
                "This home is older than the keys it published: replace this machine in the team."
            };
            alert(&mut view, text);
        }
        About::Divergence { .. } => {
            alert(
                &mut view,
                "A member was shown another history of this team: see daemon.status, divergence.",
            );
        }
        About::Device(change) => {
            alert(&mut view, &device_line(change));
            view.set("device", device(cx, change));
        }
        About::Trust { person, until } => {
            let text =
                format!("Trust you gave this person ends on {}; renew it or let it lapse.", until.date());
            alert(&mut view, &text);
            view.set("from", card(cx, person));
        }
    }
    view.set("at", Value::int(notice.at.0));
    Ok(view.into())
}

fn alert(view: &mut Object, line: &str) {
    view.set("category", Value::text("alert"));
    view.set("line", Value::text(line));
}

/// `PersonCard` of a roster realm: the name in the roster, and the team's.
fn card(cx: &Ctx<'_, '_>, person: &PersonId) -> Value {
    let team = cx.facts.roster().and_then(|roster| roster.name()).map_or("", |name| name.as_str());
    obj([("name", Value::text(person.as_str())), ("org", Value::text(team))])
}

/// The first line of a chat line's text.
fn first_line(cx: &Ctx<'_, '_>, line: &Ulid) -> Result<Option<String>, StoreDown> {
    Ok(lines::text(cx.txn, line)?.map(|text| shorten(&text)))
}

fn shorten(text: &str) -> String {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    clean_peer_text(first, Some(LINE_UNITS))
}

fn device_line(change: &Change) -> String {
    match change.went {
        Went::Added => {
            format!("New device on your account: '{}', admitted by the team's admin.", change.label)
        }
        Went::Removed => format!("'{}' was removed from your account.", change.label),
    }
}

/// `NoticeDevice`.
fn device(cx: &Ctx<'_, '_>, change: &Change) -> Value {
    let mut view = change.to_object();
    let current = cx.facts.roster().is_some_and(|roster| roster.member(&change.device).is_some());
    view.set("current", Value::Bool(current));
    if current && cx.facts.me().is_some_and(|me| me.role == Role::Admin) {
        view.set("remove", Value::text("team"));
    }
    view.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_first_of_its_text_and_short() {
        assert_eq!(shorten("\n  one\t two \nthree"), "one two");
        assert_eq!(shorten(""), "");
        let long = shorten(&"é".repeat(500));
        assert_eq!((long.chars().count(), long.ends_with('…')), (120, true));
    }
}
