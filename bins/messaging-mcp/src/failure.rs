//! A tool's error: code, message and one next step (contract ipc §8.4).

use messaging_proto::Code;
use messaging_smol::client::ClientError;
use serde_json::{Value, json};

/// Why a tool did nothing.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    code: &'static str,
    text: String,
    reason: Option<String>,
}

impl Failure {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code: code.as_str(), text: text.into(), reason: None }
    }

    /// A member of the input is wrong. Names it, never its value.
    pub(crate) fn invalid(field: &str, what: &str) -> Self {
        Self::new(Code::InvalidRequest, format!("{field} {what}"))
    }

    pub(crate) fn forbidden(text: impl Into<String>) -> Self {
        Self::new(Code::Forbidden, text)
    }

    pub(crate) fn not_found(text: impl Into<String>) -> Self {
        Self::new(Code::NotFound, text)
    }

    /// The same error, as what an address means (§11): an unknown person, channel or agent is an unknown address.
    pub(crate) fn of_address(self) -> Self {
        if matches!(self.code, "not_found" | "no_recipients") {
            return Self { code: UNKNOWN_ADDRESS, ..self };
        }
        self
    }

    /// The same error of a send to an agent, whose `not_found` may be a task it names.
    pub(crate) fn of_recipient(self) -> Self {
        if self.code == "no_recipients" { self.of_address() } else { self }
    }

    pub(crate) fn is(&self, code: Code) -> bool {
        self.code == code.as_str()
    }

    /// `{error: {code, message, remedy}}`.
    pub(crate) fn document(&self) -> Value {
        let mut error = json!({
            "code": self.code,
            "message": format!("{}: {}", self.code, self.text),
            "remedy": format!("Next: {}", remedy(self.code, self.reason.as_deref())),
        });
        if let Some(reason) = &self.reason {
            error["reason"] = json!(reason);
        }
        json!({ "error": error })
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        // §11: a message holds no values. The daemon names fields; the two paths it may name are this user's own.
        let mut text = error.message;
        if let Some(ms) = error.retry_after_ms {
            text = format!("{text} (try again in {} s)", ms.div_ceil(1000).max(1));
        }
        let reason = error.reason.filter(|reason| matches!(reason.as_str(), "newer" | "pre-reset"));
        Self { code: error.code.as_str(), text, reason }
    }
}

/// A code of the tools alone.
const UNKNOWN_ADDRESS: &str = "unknown_address";

/// The one next step of each code.
fn remedy(code: &str, reason: Option<&str>) -> &'static str {
    match code {
        "invalid_request" => "correct the named field and call again.",
        "unknown_address" | "no_recipients" => "call contacts and use an address it lists.",
        "unknown_session" => "call contacts and pick an agent that runs.",
        "ambiguous_address" => "add @label to the address.",
        "not_found" => "list again and use an id from that list.",
        "refused" | "declined" => "do not retry; tell your person.",
        "request_required" => "send to me with request.contact so your person can ask them.",
        "rate_limited" => "wait, then send once.",
        "loop_guard" => "stop replying; tell your person.",
        "too_large" => "shorten it or send a file.",
        "secret_refused" => "remove the credential and send without it.",
        "expired" => "send it again if it still matters.",
        "relay_unavailable" | "directory_unavailable" | "jelly_unavailable" => "try again later.",
        "invalid_state" => "read the task and act on its state.",
        "forbidden" | "guarded_turn" => "do not retry; answer only the sender.",
        "daemon_unavailable" => "ask your person to run: messaging daemon start.",
        "daemon_mismatch" => "ask your person to stop that daemon and start this version's.",
        "store_refused" if reason == Some("pre-reset") => {
            "ask your person to move the home aside and set up again."
        }
        "store_refused" => "ask your person to upgrade messagingd and keep the home.",
        "no_identity" => "ask your person to create or join a team.",
        _ => "tell your person.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_step_and_the_message_starts_with_it() {
        for code in Code::ALL {
            let document = Failure::new(*code, "what").document();
            let error = &document["error"];
            assert_eq!(error["code"], code.as_str());
            assert!(error["message"].as_str().unwrap().starts_with(&format!("{code}: ")));
            let remedy = error["remedy"].as_str().unwrap();
            assert!(remedy.starts_with("Next: ") && remedy.ends_with('.'), "{remedy}");
        }
        let error = Failure::not_found("who").of_address().document();
        assert_eq!(error["error"]["code"], "unknown_address");
    }
}
