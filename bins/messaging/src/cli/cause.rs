//! What the daemon says of its link (`relay.lastError`, and why a way into a team ended), and what then helps.

/// The beginnings of the daemon's sentences, and the step for each.
const CAUSES: &[(&str, &str)] = &[
    (
        "another daemon with this identity",
        "this home was copied: stop the daemon of one copy and delete it; another machine joins with a ticket of its own",
    ),
    (
        "this machine was removed",
        "ask an admin for a new ticket, and join with it from a new home (--home <folder>); this one keeps what it holds",
    ),
    (
        "the relay says that this machine was removed",
        "ask an admin; if it is so, join with a new ticket from a new home (--home <folder>)",
    ),
    (
        "an admin replaced this machine's encryption key",
        "run `messaging identity rotate-enc`, if you know why they did",
    ),
    ("the relay refused with expired", "set the clock, for example with `timedatectl set-ntp true`"),
    (
        "the relay refused with not_member",
        "ask an admin whether this machine was removed, and whether the relay is the team's",
    ),
    ("the roster forks", ROSTER),
    ("the relay's roster", ROSTER),
    ("the relay does not provide the roster", ROSTER),
    ("the store of this machine's team is gone", "put it back from a backup as docs/backup.md says"),
];

const ROSTER: &str = "compare `messaging team info` with the others of the team, and tell who runs the relay";
const RELAY_ID: &str = "the challenge names another relay id";

/// What to do about it, without a full stop.
pub(crate) fn step(words: &str) -> Option<String> {
    if let Some(id) = words.strip_prefix(RELAY_ID) {
        let own = "have it started with --relay-id and the address you use";
        return Some(match id.strip_prefix(": ") {
            Some(id) => format!("use the address {id}, which is what the relay calls itself; or {own}"),
            None => format!("use the address that the relay calls itself; or {own}"),
        });
    }
    if let Some(word) = words.strip_prefix("the relay cannot be reached: ") {
        return Some(reach(word).to_owned());
    }
    CAUSES.iter().find(|(start, _)| words.starts_with(start)).map(|(_, step)| (*step).to_owned())
}

/// Whether it is wrong even while the link is up.
pub(crate) fn is_alarm(words: &str) -> bool {
    ["another daemon with this identity", "the roster forks"].iter().any(|start| words.starts_with(start))
}

/// What to do about a relay that cannot be reached, by the word for why.
pub(crate) fn reach(word: &str) -> &'static str {
    match word {
        "url" => "use wss://, or ws:// to this machine only",
        "resolve" => "check the relay's name and this machine's network",
        "roots" => "install the package ca-certificates",
        "tls" => "check the relay's certificate and this machine's clock",
        _ => "check that a relay runs at that address and that this network reaches it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_has_its_step() {
        let id = step("the challenge names another relay id: ws://127.0.0.1:8787").unwrap();
        assert!(id.starts_with("use the address ws://127.0.0.1:8787,"), "{id}");
        assert!(step("the relay cannot be reached: tls").unwrap().contains("certificate"));
        assert!(
            step("another daemon with this identity is connected to the relay").unwrap().contains("copied")
        );
        assert_eq!(step("the connection to the relay was lost"), None);
        assert!(is_alarm("another daemon with this identity is connected to the relay"));
    }
}
