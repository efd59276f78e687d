//! The home a daemon would run in: who may read it, its files, its room, its configuration and its store.

use super::{Findings, State};
use crate::cli::output;
use messaging_machines::daemon::config::Settings;
use messaging_smol::home::{Home, Owner, check_directory};
use messaging_smol::store::{OpenError, Refusal, examine};
use rustix::fs::{Access, access};
use serde_json::Value;
use std::os::unix::fs::MetadataExt;

/// Below this, a store may soon be unable to grow.
const LITTLE_ROOM: u64 = 256 << 20;
/// Below this, a daemon may not even start.
const NO_ROOM: u64 = 4 << 20;

/// What `config.json` is good for.
pub(super) enum Config {
    /// A daemon starts with it; the relay it names.
    Good(Option<String>),
    /// None does.
    Broken,
}

pub(super) fn check_home(findings: &mut Findings, home: &Home) -> bool {
    let path = home.path().display();
    if !home.path().exists() {
        let above = home.path().ancestors().skip(1).find(|above| above.exists());
        let can = above.is_none_or(|above| access(above, Access::WRITE_OK | Access::EXEC_OK).is_ok());
        let (detail, fix) = if can {
            ("", "run `messaging daemon start`, or name another home with --home or $MESSAGING_HOME")
        } else {
            (", and you may not make it", "name a folder of your own with --home or $MESSAGING_HOME")
        };
        findings.bad(State::Wrong, "home", format!("{path} does not exist{detail}"), fix);
        return false;
    }
    let owner = Owner::from_env();
    for folder in [home.path().to_owned(), home.run()] {
        if !folder.exists() {
            continue;
        }
        if let Err(error) = check_directory(&folder, owner) {
            let text = error.to_string();
            // The home's own errors end with the command that puts it right.
            let fix =
                text.split_once("run: ").map_or("use a folder of your own, with --home", |(_, fix)| fix);
            findings.bad(State::Wrong, "home", text.clone(), fix);
            return false;
        }
    }
    findings.fine("home", format!("{path}, private"));
    true
}

pub(super) fn check_files(findings: &mut Findings, home: &Home) {
    let mut lax = Vec::new();
    for name in ["identity.json", "config.json", "messaging.db", "cli.json"] {
        let path = home.path().join(name);
        if path.symlink_metadata().is_ok_and(|meta| meta.mode() & 0o077 != 0) {
            lax.push(path.display().to_string());
        }
    }
    if lax.is_empty() {
        findings.fine("files", "readable by their owner alone");
    } else {
        let detail = format!("others may read {}", lax.join(", "));
        findings.bad(State::Wrong, "files", detail, format!("chmod go= {}", lax.join(" ")));
    }
}

/// What `config.json` says, when it says anything a daemon can start with.
pub(super) fn check_config(findings: &mut Findings, home: &Home) -> Config {
    let path = home.path().join("config.json");
    let Ok(bytes) = std::fs::read(&path) else { return Config::Good(None) };
    let text = String::from_utf8_lossy(&bytes);
    let fix = format!("correct {}, then run `messaging daemon start`", path.display());
    match Settings::parse(&bytes) {
        Ok(parsed) => {
            if !parsed.unknown.is_empty() {
                let names: Vec<String> = parsed.unknown.iter().map(|name| placed(&text, name)).collect();
                findings.bad(
                    State::Look,
                    "config",
                    format!("config.json has members that nobody reads: {}", names.join(", ")),
                    format!("correct their spelling in {}, or take them out", path.display()),
                );
            }
            Config::Good(parsed.settings.relay().map(|relay| relay.as_str().to_owned()))
        }
        Err(invalid) if invalid.path().is_empty() => {
            let place = serde_json::from_slice::<Value>(&bytes)
                .err()
                .map(|error| format!(" (line {}, column {})", error.line(), error.column()));
            let place = place.unwrap_or_default();
            let detail =
                format!("config.json is not a JSON object{place}: the daemon does not start with it");
            findings.bad(State::Wrong, "config", detail, fix);
            Config::Broken
        }
        Err(invalid) => {
            let what = placed(&text, invalid.path());
            let detail =
                format!("config.json: {what} is not what it may be: the daemon does not start with it");
            findings.bad(State::Wrong, "config", detail, fix);
            Config::Broken
        }
    }
}

/// A member's path, and the line it stands on.
fn placed(text: &str, path: &str) -> String {
    let mut at = 0;
    for name in path.split('.') {
        let name = name.split('[').next().unwrap_or_default();
        let Some(found) = text[at..].find(&format!("\"{name}\"")) else { return output::clean(path) };
        at += found + 1;
    }
    format!("{} (line {})", output::clean(path), text[..at].matches('\n').count() + 1)
}

pub(super) fn check_room(findings: &mut Findings, home: &Home) {
    let Ok(stat) = rustix::fs::statvfs(home.path()) else { return };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let detail = format!("{} MiB free", free >> 20);
    if free < LITTLE_ROOM {
        let state = if free < NO_ROOM { State::Wrong } else { State::Look };
        findings.bad(state, "disk", detail, "make room: a full disk stops the daemon from taking mail");
    } else {
        findings.fine("disk", detail);
    }
}

/// The store of a home whose daemon does not answer: whether one could start with it. Nothing is written.
pub(super) fn check_store(findings: &mut Findings, home: &Home) {
    let fix =
        "put messaging.db back from a backup (docs/backup.md), or move the home aside and set it up again";
    let path = home.path().join("messaging.db");
    let keys = home.path().join("identity.json").exists();
    let (detail, fix) = match examine(&path) {
        Ok(true) => return,
        // A new home, or one that never got further.
        Ok(false) if !keys => return,
        Ok(false) => {
            ("messaging.db is gone or empty, and the team's roster and all mail with it".to_owned(), fix)
        }
        Err(OpenError::Busy) => return,
        Err(OpenError::Refused(Refusal::Newer)) => (
            "a newer release of messaging wrote messaging.db".to_owned(),
            "upgrade messaging, and keep the home as it is",
        ),
        Err(OpenError::Refused(Refusal::PreReset)) => {
            ("messaging.db is no store of this generation, or was written over".to_owned(), fix)
        }
        Err(error) => (format!("messaging.db is damaged ({})", word(error)), fix),
    };
    findings.bad(State::Wrong, "store", detail, fix);
}

fn word(error: OpenError) -> String {
    match error {
        OpenError::Fault(fault) => fault.to_string(),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_found_on_its_line() {
        let text = "{\n  \"relay\": \"share\",\n  \"presence\": {\n    \"share\": [1]\n  }\n}";
        assert_eq!(placed(text, "presence.share[0]"), "presence.share[0] (line 4)");
        assert_eq!(placed(text, "relay"), "relay (line 2)");
        assert_eq!(placed(text, "absent"), "absent");
        assert_eq!(placed("{\"\u{9b}2J\":1}", "\u{9b}2J"), "[U+009B]2J (line 1)");
    }
}
