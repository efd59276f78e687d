//! Next steps of errors whose message says more than their code.

/// Fields the daemon names in `invalid_request`, and the step that puts each right.
const FIELDS: &[(&str, &str)] = &[
    ("answer", "answer once, always, decline or block."),
    ("ask", "--ask takes open, request or no."),
    ("agentMail", "--agent-mail takes open or blocked."),
    ("chat", "--chat takes open, muted or blocked."),
    (
        "conversation",
        "name it dm:<person>, channel:<name> or agent:<person>/<agent>, as `messaging chats` lists it.",
    ),
    ("id", "copy the id whole from a list: 26 letters and digits that begin with 01."),
    ("inviteId", "copy the invite's id whole from `messaging team info`."),
    ("label", "a label is lower-case letters, digits and dashes, such as laptop."),
    ("machine", "name the machine as person@label, or copy its id from `messaging team info`."),
    ("name", "use lower-case letters, digits and dashes, such as build."),
    ("person", "a person is lower-case letters, digits and dashes, such as alice."),
    ("query", "search for one word or more."),
    ("relay", "a relay is wss://<host>, or ws://127.0.0.1:<port> on this machine."),
    ("replyTo", "copy the id whole from `messaging inbox`."),
    ("role", "a role is admin or member."),
    ("taskId", "copy the id whole from `messaging tasks`."),
    ("ticket", "copy the ticket whole: it begins with messaging1. and has no spaces."),
    ("to", "name an agent as <person>/<agent>, a person as <person>, a channel as \"#<channel>\"."),
];

/// What the file system says of a home, and what then helps.
const HOMES: &[(&str, &str)] = &[
    ("No space left", "make room on the disk of the home folder, then try again."),
    ("Permission denied", OWN),
    ("Read-only file system", OWN),
    ("is not a directory", OWN),
    ("belongs to user", OWN),
    ("File name too long", SHORT),
    ("SUN_LEN", SHORT),
];

const OWN: &str = "name a folder of your own with --home or $MESSAGING_HOME.";
const SHORT: &str = "name a home with a shorter path, with --home or $MESSAGING_HOME.";

/// What the daemon says of the state a home is in, and what then helps.
const STATES: &[(&str, &str)] = &[
    ("keys are missing", KEYS),
    ("the keys of this machine are missing", KEYS),
    (
        "this machine was removed from its team",
        "ask an admin for a new ticket, and join with it from a new home (--home <folder>).",
    ),
    ("this machine is in a team", "name another home with --home <folder>: a home is in one team."),
    (
        "identity.json belongs to a team that the store does not hold",
        "put messaging.db back from a backup (docs/backup.md), or move the home aside and set it up again.",
    ),
];

const KEYS: &str = "put identity.json back from a backup, or replace this machine: docs/backup.md.";

/// The step for a message about the state of the home.
pub(super) fn state(message: &str) -> Option<&'static str> {
    STATES.iter().find(|(part, _)| message.contains(part)).map(|(_, step)| *step)
}

/// The step for a message about the home folder.
pub(super) fn home(message: &str) -> Option<&'static str> {
    HOMES.iter().find(|(part, _)| message.contains(part)).map(|(_, step)| *step)
}

/// The step for a message that begins with a field's name, such as `relay is not …`.
pub(super) fn field(message: &str) -> Option<&'static str> {
    let (name, _) = message.split_once(" is ")?;
    // `state[0]` is an element of `state`, `subject.person` a member.
    let name = name.rsplit('.').next()?.split('[').next()?;
    if name == "state" {
        return Some(
            "a state is submitted, working, input_required, auth_required, completed, failed, canceled or rejected.",
        );
    }
    FIELDS.iter().find(|(known, _)| *known == name).map(|(_, step)| *step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_where_it_stands() {
        assert!(field("relay is not what the method takes").unwrap().starts_with("a relay is wss://"));
        assert!(field("subject.person is not what the method takes").unwrap().starts_with("a person is"));
        assert!(field("state[0] is not what the method takes").is_some());
        assert_eq!(field("they are members already"), None);
        assert_eq!(field("the line is longer than a line may be"), None);
    }

    #[test]
    fn what_is_wrong_with_a_home_has_its_step() {
        assert_eq!(home("/home/x/.messaging: Permission denied (os error 13)"), Some(OWN));
        assert_eq!(
            home("the lock: No space left on device (os error 28)").map(|step| &step[..9]),
            Some("make room")
        );
        assert_eq!(home("the relay does not answer"), None);
    }
}
