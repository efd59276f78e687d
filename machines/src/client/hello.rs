//! The daemon's first line, which says who it is before anything is sent to it (`messaging/1 §8.2`, "Hello").

use super::ClientError;
use serde_json::Value;

/// The version of the API's framing.
pub const IPC_PROTOCOL: u64 = 1;

/// What a daemon says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Its release.
    pub version: String,
    /// Its [`IPC_PROTOCOL`].
    pub protocol: u64,
    /// Its process.
    pub pid: u32,
    /// `jelly` under a Jelly host.
    pub deployment: Option<String>,
}

impl Hello {
    /// Reads a first line. Members it does not know are ignored.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        let line: Value = serde_json::from_slice(line).ok()?;
        if line.get("jsonrpc")?.as_str()? != "2.0" || line.get("method")?.as_str()? != "hello" {
            return None;
        }
        let params = line.get("params")?;
        if params.get("daemon")?.as_str()? != "messagingd" {
            return None;
        }
        Some(Self {
            version: params.get("version")?.as_str()?.to_owned(),
            protocol: params.get("protocol")?.as_u64()?,
            pid: u32::try_from(params.get("pid")?.as_u64()?).ok()?,
            deployment: params.get("deployment").and_then(Value::as_str).map(str::to_owned),
        })
    }

    /// The line of this hello, without its LF.
    #[must_use]
    pub fn line(&self) -> String {
        let mut params = serde_json::json!({
            "daemon": "messagingd", "version": self.version, "protocol": self.protocol, "pid": self.pid,
        });
        if let Some(deployment) = &self.deployment {
            params["deployment"] = Value::from(deployment.as_str());
        }
        serde_json::json!({"jsonrpc": "2.0", "method": "hello", "params": params}).to_string()
    }

    /// Refuses a daemon of another release or protocol (`§8.2`: no compatibility across releases).
    ///
    /// # Errors
    /// `daemon_mismatch`, with both versions and what to do.
    pub fn check(&self, version: &str) -> Result<(), ClientError> {
        if self.protocol == IPC_PROTOCOL && self.version == version {
            return Ok(());
        }
        Err(ClientError::mismatch(format!(
            "the daemon (pid {}) is messagingd {} with API {}, this is {version} with API {IPC_PROTOCOL}; stop that \
             daemon (messaging daemon stop), then start this version's (messaging daemon start)",
            self.pid,
            plain(&self.version),
            self.protocol
        )))
    }
}

/// The start of a foreign word, fit for a terminal and a log.
fn plain(text: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || ".-_+".contains(c) { c } else { '?' };
    text.chars().take(64).map(fit).collect()
}
