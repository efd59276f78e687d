//! Errors as a person meets them: the code first, one next step last, and the exit status.

use super::remedy::step;
use super::steps;
use messaging_proto::Code;
use messaging_smol::client::ClientError;
use std::process::ExitCode;

/// How `messaging` ends. SIGINT is 130: `messaging_smol::interrupt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Whoever read the output has gone.
    Unread = 0,
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

/// The code of the failure that is none: nobody reads on.
const UNREAD: &str = "unread";

/// An error of a verb.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: String,
    /// Without the code. Never a value or a peer's text.
    pub(crate) text: String,
    pub(crate) remedy: String,
    pub(crate) reason: Option<String>,
    /// The result has said it already: only the exit status is left.
    pub(crate) quiet: bool,
}

impl Failure {
    /// An error with the remedy of its code.
    pub(crate) fn new(code: &str, text: impl Into<String>) -> Self {
        let step = step(code).to_owned();
        Self { code: code.to_owned(), text: text.into(), remedy: step, reason: None, quiet: false }
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

    /// The same error without words.
    pub(crate) const fn quietly(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// The end of a verb that goes on for as long as somebody reads.
    pub(crate) fn unread() -> Self {
        Self::new(UNREAD, "").quietly()
    }

    /// Whether the daemon is gone, which may come back.
    pub(crate) fn is_lost(&self) -> bool {
        self.code == "daemon_unavailable"
    }

    /// The exit status.
    pub(crate) fn exit(&self) -> Exit {
        match self.code.as_str() {
            UNREAD => Exit::Unread,
            "usage" => Exit::Usage,
            "daemon_unavailable" | "daemon_mismatch" | "store_refused" => Exit::Daemon,
            "answered_no" => Exit::Declined,
            _ => Exit::Error,
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let step = match error.code {
            Code::NoIdentity | Code::InvalidState => steps::state(&error.message),
            Code::InvalidRequest => steps::field(&error.message),
            Code::Forbidden | Code::Internal => steps::home(&error.message),
            _ => None,
        };
        let step = step.or_else(|| steps::change(error.code, &error.message));
        let step = step.or_else(|| steps::saying(&error.message));
        let mut failure = Self::new(error.code.as_str(), error.message);
        if let Some(step) = step {
            failure.remedy = step.to_owned();
        }
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
