//! What a connection or a call ends with.

use messaging_proto::Code;
use serde_json::Value;
use std::fmt;

/// A failed connection or call. `message` is for a person; only `code` and the fields are for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// What kind.
    pub code: Code,
    /// What, in words of ours or of the daemon, without the code.
    pub message: String,
    /// When to try again, in milliseconds from now.
    pub retry_after_ms: Option<u64>,
    /// The path of the param at fault.
    pub field: Option<String>,
    /// A closed reason of some codes, such as `newer`.
    pub reason: Option<String>,
}

impl ClientError {
    /// An error with a code and words.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after_ms: None, field: None, reason: None }
    }

    /// Nothing answers, or no longer.
    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Code::DaemonUnavailable, message)
    }

    /// Something answers that is not a daemon of this release.
    #[must_use]
    pub fn mismatch(message: impl Into<String>) -> Self {
        Self::new(Code::DaemonMismatch, message)
    }

    /// The error of a reply. An error object that is not one of ours is `internal`.
    pub(super) fn from_reply(error: &Value) -> Self {
        let data = error.get("data");
        let text = |name| data.and_then(|data| data.get(name)).and_then(Value::as_str);
        let code = text("code").and_then(Code::from_text).unwrap_or(Code::Internal);
        let message = error.get("message").and_then(Value::as_str).unwrap_or("the daemon refused the call");
        // The line carries `<code>: <text>`; the code is a field of its own here.
        let message =
            message.strip_prefix(code.as_str()).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(message);
        Self {
            code,
            message: message.to_owned(),
            retry_after_ms: data.and_then(|data| data.get("retryAfterMs")).and_then(Value::as_u64),
            field: text("field").map(str::to_owned),
            reason: text("reason").map(str::to_owned),
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ClientError {}
