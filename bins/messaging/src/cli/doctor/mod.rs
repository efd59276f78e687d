//! `doctor`: what could keep this machine from working, each finding with its fix.

mod home;
mod relay;

use super::cause;
use super::failure::Failure;
use super::output::{self, BAD, FAINT, GOOD, STRONG, WAITING};
use super::shell::Shell;
use super::value::{Read, array, number, object, string};
use home::Config;
use messaging_machines::daemon::schema::SCHEMA;
use messaging_proto::Code;
use messaging_smol::client::{Client, Options};
use messaging_smol::home::Home;
use messaging_smol::supervise::is_alive;
use serde_json::Value;

/// An outbox row older than this deserves a look.
const OLD_MS: u64 = 600_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fine,
    Look,
    Wrong,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Look => "look",
            Self::Wrong => "wrong",
        }
    }
}

/// One check.
struct Finding {
    what: &'static str,
    state: State,
    detail: String,
    fix: Option<String>,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn fine(&mut self, what: &'static str, detail: impl Into<String>) {
        self.0.push(Finding { what, state: State::Fine, detail: detail.into(), fix: None });
    }

    fn bad(&mut self, state: State, what: &'static str, detail: impl Into<String>, fix: impl Into<String>) {
        self.0.push(Finding { what, state, detail: detail.into(), fix: Some(fix.into()) });
    }

    /// What a call to the daemon ended with, with the remedy of its code.
    fn failed(&mut self, what: &'static str, error: impl Into<Failure>) {
        let failure = error.into();
        let fix = failure.remedy.trim_end_matches('.');
        self.bad(State::Wrong, what, format!("{}: {}", failure.code, failure.text), fix);
    }
}

pub(super) fn run(shell: &mut Shell) -> Result<(), Failure> {
    let home = shell.home()?;
    let mut findings = Findings::default();
    if !home::check_home(&mut findings, &home) {
        return report(shell, &findings.0);
    }
    home::check_files(&mut findings, &home);
    let config = home::check_config(&mut findings, &home);
    home::check_room(&mut findings, &home);
    let status = check_daemon(&mut findings, &home);
    if let Some(status) = &status {
        check_team(&mut findings, status);
        check_outbox(&mut findings, status);
    }
    let url = status.as_ref().and_then(|status| status.get("relay")?.maybe("url"));
    match (url, &config) {
        (Some(url), _) => relay::check_relay(&mut findings, url, status.as_ref()),
        (None, Config::Good(Some(url))) => relay::check_relay(&mut findings, url, status.as_ref()),
        // What it says of the relay cannot be known.
        (None, Config::Broken) => {}
        (None, Config::Good(None)) => no_relay(&mut findings, status.as_ref()),
    }
    report(shell, &findings.0)
}

/// A home in no team: its last way into one may have ended at the relay.
fn no_relay(findings: &mut Findings, status: Option<&Value>) {
    let last = status.and_then(|status| status.get("relay")?.maybe("lastError"));
    match last {
        Some(last) => findings.bad(
            State::Look,
            "relay",
            format!("none is set; the last try ended: {}", output::clean(last)),
            cause::step(last).unwrap_or_else(|| cause::reach("").to_owned()),
        ),
        None => findings.bad(State::Look, "relay", "none is set: this machine is in no team", ENTER),
    }
}

/// The way into a team.
const ENTER: &str = "create a team with `messaging team create`, or join one with `messaging team join`";

fn report(shell: &Shell, findings: &[Finding]) -> Result<(), Failure> {
    let fix = |finding: &Finding| finding.fix.as_deref().map(|fix| shell.step(fix));
    let wrong = findings.iter().filter(|finding| finding.state == State::Wrong).count();
    let checks = array(findings.iter().map(|finding| {
        let mut members = vec![
            ("check", string(finding.what)),
            ("state", string(finding.state.word())),
            ("detail", string(&finding.detail)),
        ];
        members.extend(fix(finding).map(|fix| ("fix", string(&fix))));
        object(members)
    }));
    let document = object([("checks", checks), ("wrong", number(wrong as u64))]);
    shell.out.result(&document, || {
        let mut lines = Vec::new();
        for finding in findings {
            let style = match finding.state {
                State::Fine => GOOD,
                State::Look => WAITING,
                State::Wrong => BAD,
            };
            let word = finding.state.word();
            let lead = format!("{style}{word:5}{style:#}  {STRONG}{:9}{STRONG:#}  ", finding.what);
            lines.push(output::hang(&lead, &output::clean(&finding.detail)));
            if let Some(fix) = fix(finding) {
                lines.push(output::hang("                  ", &format!("Fix: {}", output::clean(&fix))));
            }
        }
        if wrong == 0 {
            lines.push(format!("{FAINT}Nothing is wrong.{FAINT:#}"));
        }
        lines.join("\n")
    });
    match findings.iter().find(|finding| finding.state == State::Wrong) {
        None => Ok(()),
        // The document has said it.
        Some(first) if shell.out.is_json() => Err(Failure::new("invalid_state", first.what).quietly()),
        Some(first) => {
            let fix = fix(first).unwrap_or_default();
            Err(Failure::new("invalid_state", format!("the check of the {} failed", first.what))
                .with_remedy(format!("{}.", fix.trim_end_matches('.'))))
        }
    }
}

fn check_daemon(findings: &mut Findings, home: &Home) -> Option<Value> {
    let options = Options::admin(home.clone());
    match Client::probe(&options) {
        Err(error) => {
            let absent = error.code == Code::DaemonUnavailable && !home.locked_by().is_some_and(is_alive);
            if absent {
                home::check_store(findings, home);
            }
            findings.failed("daemon", error);
            // A start would end at what was found before it.
            let broken = ["config", "store"]
                .iter()
                .any(|what| findings.0.iter().any(|one| one.what == *what && one.state == State::Wrong));
            if let (true, Some(last)) = (broken, findings.0.last_mut()) {
                last.fix = Some("do what is said above, then run `messaging daemon start`".to_owned());
            }
            None
        }
        Ok(hello) if hello.version != options.version => {
            findings.bad(
                State::Wrong,
                "daemon",
                format!("runs release {}, this program is {}", hello.version, options.version),
                "run `messaging daemon stop`, then `messaging daemon start`",
            );
            None
        }
        Ok(_) => {
            match Client::connect(&options).and_then(|client| client.call("daemon.status", object([]))) {
                Err(error) => {
                    findings.failed("daemon", error);
                    None
                }
                Ok(status) => {
                    let started =
                        status.int("startedAt").map(|at| output::span(output::now().saturating_sub(at)));
                    findings.fine(
                        "daemon",
                        format!(
                            "release {}, pid {}, up {}",
                            status.text("version"),
                            status.int("pid").unwrap_or_default(),
                            started.unwrap_or_default()
                        ),
                    );
                    let schema = status.int("storeSchema").unwrap_or_default();
                    if schema == SCHEMA {
                        findings.fine("store", format!("schema {schema}"));
                    } else {
                        findings.bad(
                            State::Look,
                            "store",
                            format!("schema {schema}, this program knows {SCHEMA}"),
                            "use one release of messaging",
                        );
                    }
                    Some(status)
                }
            }
        }
    }
}

fn check_team(findings: &mut Findings, status: &Value) {
    let last = status.get("relay").and_then(|relay| relay.maybe("lastError"));
    let Some(team) = status.get("team") else {
        match last {
            // The keys of a team without its store.
            Some(last) if last.starts_with("the store of") => {
                let fix = cause::step(last).unwrap_or_default();
                findings.bad(State::Wrong, "team", output::clean(last), fix);
            }
            _ => findings.bad(State::Look, "team", "this machine is in no team", ENTER),
        }
        return;
    };
    let name = team.text("name");
    let head = team.get("head").and_then(|head| head.int("seq")).unwrap_or_default();
    match status.get("identity") {
        Some(identity @ Value::Object(_)) => findings.fine(
            "team",
            format!(
                "{name}: you are {}@{}, {}, at change {head} of the team",
                identity.text("person"),
                identity.text("label"),
                team.text("role")
            ),
        ),
        _ if status.maybe("alarm") == Some("keys_missing") => findings
            .fine("team", format!("{name}: known from before the keys were lost, at its change {head}")),
        _ => {
            let removed = "this machine was removed";
            let fix = cause::step(removed).unwrap_or_default();
            findings.bad(State::Wrong, "team", format!("{name}: {removed}, at its change {head}"), fix);
        }
    }
    match status.maybe("alarm") {
        None => {}
        Some("restored") => findings.bad(
            State::Wrong,
            "keys",
            "this home runs from an older copy of its keys",
            "restore the newer identity.json, or have an admin remove this machine and join again",
        ),
        Some("keys_missing") => findings.bad(
            State::Wrong,
            "keys",
            "identity.json is gone: this machine neither connects nor sends",
            "put it back from a backup; or have an admin remove this machine, and join again with a new home \
             (docs/backup.md)",
        ),
        Some(other) => {
            findings.bad(State::Wrong, "keys", format!("alarm {other}"), "run `messaging log --level warn`")
        }
    }
    if let Some(divergence) = status.get("divergence") {
        findings.bad(
            State::Wrong,
            "roster",
            format!("the relay shows {} another team history than it shows you", divergence.text("person")),
            "compare `messaging team info` with them, and stop using this relay until it is explained",
        );
    }
}

fn check_outbox(findings: &mut Findings, status: &Value) {
    let Some(outbox) = status.get("outbox") else { return };
    let waiting = outbox.int("waiting").unwrap_or_default();
    let age = outbox.int("oldest").map(|oldest| output::now().saturating_sub(oldest)).unwrap_or_default();
    let detail = if waiting == 0 {
        "empty".to_owned()
    } else {
        format!("{waiting} waiting, the oldest for {}", output::span(age))
    };
    if waiting > 0 && age > OLD_MS {
        findings.bad(State::Look, "outbox", detail, "run `messaging sent` to see what waits and why");
    } else {
        findings.fine("outbox", detail);
    }
}
