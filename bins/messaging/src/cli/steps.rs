//! Next steps of errors whose message says more than their code.

use messaging_proto::Code;

/// Fields the daemon names in `invalid_request`, and the step that puts each right.
const FIELDS: &[(&str, &str)] = &[
    ("answer", "answer once, always, decline or block."),
    ("ask", "--ask takes open, request or no."),
    ("agentMail", "--agent-mail takes open or blocked."),
    ("channel", "name the channel as \"#<name>\", as `messaging chats` lists it."),
    ("chat", "--chat takes open, muted or blocked."),
    ("clientId", "--key takes 1 to 128 characters."),
    (
        "conversation",
        "name it dm:<person>, channel:<name> or agent:<person>/<agent>, as `messaging chats` lists it.",
    ),
    ("before", "--before takes what `earlier:` showed."),
    ("id", "copy the id whole from a list: 26 letters and digits that begin with 01."),
    ("idempotencyKey", "--key takes 1 to 128 characters."),
    ("inviteId", "copy the invite's id whole from `messaging team info`."),
    ("label", "a label is lower-case letters, digits and dashes, such as laptop."),
    ("limit", "--limit takes a whole number from 1 to 100 (inbox: 200)."),
    ("machine", "name the machine as person@label, or copy its id from `messaging team info`."),
    ("name", "use lower-case letters, digits and dashes, such as build."),
    ("parts", "say something, in at most 32 parts: a text and up to 31 files."),
    ("person", "a person is lower-case letters, digits and dashes, such as alice."),
    ("persons", "name 1 to 31 persons, each as lower-case letters, digits and dashes, such as alice."),
    ("query", "search for one word or more."),
    ("relay", "a relay is wss://<host>, or ws://127.0.0.1:<port> on this machine."),
    ("reason", "--reason takes a text of 1 to 2000 characters."),
    ("replyTo", "copy the id whole from `messaging inbox`."),
    ("role", "a role is admin or member."),
    ("taskId", "copy the id whole from `messaging tasks`."),
    ("text", "write a line of 1 to 8000 characters."),
    (
        "thread",
        "copy the id whole from `/ids` in `messaging chat`, or from `messaging read --with … --json`.",
    ),
    ("ticket", "copy the ticket whole: it begins with messaging1. and has no spaces."),
    ("trustedUntil", "--trust takes days, from 1 to 90, or nothing."),
    ("ttlMs", "--ttl takes hours, from 1 to 168 (a week)."),
    ("upTo", "--up-to takes the number of a line, as `messaging read --with … --json` has it (`seq`)."),
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

/// What else the daemon says where the code's own step would not help, and what then does.
const SAYINGS: &[(&str, &str)] = &[
    ("a channel has this name here", "pick another name, or `messaging channel invite` people to it."),
    ("use channel.leave for oneself", "run `messaging channel leave <name>`."),
    ("the channel would be too large", "a channel holds 32 people: make a second one."),
    (
        "this machine holds the most channels allowed",
        "leave a channel you no longer use, with `messaging channel leave`.",
    ),
    ("message needs a state", "add --state, such as --state working."),
    ("a request to an agent takes no such answer", "answer once, always, decline or block."),
    ("was used with other params", "give this call a --key of its own."),
    ("the key was used for another line", "give this line a --key of its own."),
    ("trust needs ask open", "add --ask open, or leave out --trust."),
    ("trust lasts at most 90 days", "name 90 days or fewer with --trust."),
    (
        "is for a person, not for a channel",
        "a channel takes --agent-mail and --ask; for the rest name a person.",
    ),
    ("discoverable is only for oneself", "name yourself, or leave out --discoverable."),
    ("the creator is a member without being named", "leave out your own name."),
    (
        "only the agent that was asked updates a task",
        "leave it to the agent that was asked; `messaging task cancel` asks it to stop.",
    ),
    (
        "only the agent that asked cancels a task",
        "only who asked can cancel it; to end it yourself use `messaging task update --state rejected`.",
    ),
    ("the task has ended", "ask anew with `messaging send … --task`."),
    ("a snapshot is made or held", "run `messaging daemon snapshot --done`, then this again."),
    (
        "only the creator and team admins remove members",
        "ask whoever made the channel, or an admin of the team.",
    ),
    ("another machine of the person has this label", "pick another --label."),
    ("the team has no such person", "run `messaging people <part of the name>`."),
    ("this machine has no session of this agent", "run `messaging agents` for those of this machine."),
    ("this person is in no such channel", "run `messaging chats` for the channels you are in."),
    ("the session has no such item", "copy the id whole from `messaging inbox --all` or `messaging sent`."),
    ("the session has no such task", "copy the id whole from `messaging tasks`."),
    (
        "nothing is held under this id",
        "run `messaging requests` for what waits; it may have expired or been answered.",
    ),
    ("no such thread", "answer a line of this conversation: /ids in `messaging chat` shows their ids."),
    (
        "no current member has this machine id",
        "run `messaging team info` and name the machine as person@label.",
    ),
    ("only an admin changes the team", "ask an admin: `messaging team info` shows who is one."),
    ("last admin", "make another machine an admin first: `messaging team role <person@label> admin`."),
    ("not a method of this socket", "run it as the user who owns the daemon: agents may not do this."),
];

const KEYS: &str = "put identity.json back from a backup, or replace this machine: docs/backup.md.";

/// The step for a change of the team that its roster does not take.
pub(super) fn change(code: Code, message: &str) -> Option<&'static str> {
    match code {
        _ if message != "the roster does not take this change" => None,
        Code::Forbidden => Some(
            "a team keeps an admin: make another machine one first, with `messaging team role <person@label> admin`.",
        ),
        Code::InviteInvalid => Some(
            "copy the invite's id whole from `messaging team info`; a ticket that was used or revoked is useless already.",
        ),
        _ => None,
    }
}

/// The step for a message that says more than its code.
pub(super) fn saying(message: &str) -> Option<&'static str> {
    SAYINGS.iter().find(|(part, _)| message.contains(part)).map(|(_, step)| *step)
}

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
        assert!(field("relay is missing or not of its form").unwrap().starts_with("a relay is wss://"));
        assert!(field("subject.person is missing or not of its form").unwrap().starts_with("a person is"));
        assert!(field("state[0] is missing or not of its form").is_some());
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
