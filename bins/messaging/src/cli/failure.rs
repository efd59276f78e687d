//! Errors as a person meets them: the code first, one next step last, and the exit status.

use messaging_smol::client::ClientError;
use std::process::ExitCode;

/// How `messaging` ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// An error with a code.
    Error = 1,
    /// The arguments are wrong.
    Usage = 2,
    /// No daemon of this release answers, or it refused its store.
    Daemon = 3,
    /// The person answered no.
    Declined = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error of a verb.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: String,
    /// Without the code. Never a value or a peer's text.
    pub(crate) text: String,
    pub(crate) remedy: String,
    pub(crate) reason: Option<String>,
}

impl Failure {
    /// An error with the remedy of its code.
    pub(crate) fn new(code: &str, text: impl Into<String>) -> Self {
        Self { code: code.to_owned(), text: text.into(), remedy: remedy(code).to_owned(), reason: None }
    }

    /// The arguments are wrong in a way the parser could not see.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new("usage", text)
    }

    /// The same error with another next step.
    pub(crate) fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    /// The exit status.
    pub(crate) fn exit(&self) -> Exit {
        match self.code.as_str() {
            "usage" => Exit::Usage,
            "daemon_unavailable" | "daemon_mismatch" | "store_refused" => Exit::Daemon,
            "answered_no" => Exit::Declined,
            _ => Exit::Error,
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let mut failure = Self::new(error.code.as_str(), error.message);
        if error.reason.as_deref() == Some("pre-reset") {
            failure.remedy = "move the home folder aside and set up again.".to_owned();
        }
        failure.reason = error.reason;
        if let Some(ms) = error.retry_after_ms {
            failure.remedy = format!("wait {} s, then try once more.", ms.div_ceil(1000).max(1));
        }
        failure
    }
}

/// The one next step of each code.
fn remedy(code: &str) -> &'static str {
    match code {
        "usage" => "run `messaging help <verb>`.",
        "invalid_request" => "correct the named field and try again.",
        "no_recipients" | "unknown_address" => "run `messaging contacts` and use an address it lists.",
        "unknown_session" => "run `messaging contacts` and pick an agent that runs.",
        "ambiguous_address" => "add @label to the address.",
        "not_found" => "list again and use a name or an id from that list.",
        "refused" | "declined" => "talk to them another way; do not retry.",
        "rate_limited" => "wait a minute, then try once.",
        "loop_guard" => "stop the two agents from answering each other.",
        "too_large" => "shorten it, or attach a file.",
        "secret_refused" => "remove the credential and send it another way.",
        "expired" => {
            "send it again if it still matters; check both clocks with `date` if it keeps happening."
        }
        "relay_unavailable" => "check the relay with `messaging status`, then try again.",
        "invalid_state" => "look at the state with `messaging status`, then act on it.",
        "forbidden" => "ask an admin of the team, or check who owns the home folder.",
        "roster_conflict" => "try again; the team changed at the same moment.",
        "invite_invalid" => "ask for a new ticket.",
        "no_identity" => {
            "create a team with `messaging team create`, or join one with `messaging team join`."
        }
        "not_member" => "ask an admin of the team for a new ticket.",
        "daemon_unavailable" => "run `messaging daemon start`.",
        "daemon_mismatch" => "run `messaging daemon stop`, then `messaging daemon start`.",
        "store_refused" => "upgrade messaging and keep the home folder as it is.",
        "answered_no" => "nothing was changed.",
        _ => "look into the daemon's log: logs/messagingd.log in the home folder.",
    }
}
