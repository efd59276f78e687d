//! `doctor`: what could keep this machine from working, each finding with its fix.

use super::failure::Failure;
use super::output::{self, BAD, FAINT, GOOD, STRONG, WAITING};
use super::progress::Progress;
use super::shell::Shell;
use super::value::{Read, array, number, object, string};
use messaging_machines::daemon::schema::SCHEMA;
use messaging_proto::limits::CLOCK_SKEW_MS;
use messaging_smol::client::{Client, Options};
use messaging_smol::home::{Home, Owner, check_directory};
use messaging_smol::probe::probe;
use rustix::fs::{Access, access};
use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Below this, a store may soon be unable to grow.
const LITTLE_ROOM: u64 = 256 << 20;
/// Below this, a daemon may not even start.
const NO_ROOM: u64 = 4 << 20;
/// An outbox row older than this deserves a look.
const OLD_MS: u64 = 600_000;
/// The clock may be this far off before it is worth a word.
const CLOCK_WORD_MS: u64 = 30_000;

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
    let usable = check_home(&mut findings, &home);
    if usable {
        check_files(&mut findings, &home);
        check_room(&mut findings, &home);
    }
    let status = if usable { check_daemon(&mut findings, &home) } else { None };
    if let Some(status) = &status {
        check_team(&mut findings, status);
        check_outbox(&mut findings, status);
    }
    let url = status
        .as_ref()
        .and_then(|status| status.get("relay").and_then(|relay| relay.maybe("url")).map(str::to_owned))
        .or_else(|| configured_relay(&home));
    match &url {
        Some(url) => check_relay(&mut findings, url, status.as_ref()),
        None if usable => findings.bad(
            State::Look,
            "relay",
            "none is set: this machine is in no team",
            "create a team with `messaging team create`, or join one with `messaging team join`",
        ),
        None => {}
    }
    report(shell, &findings.0)
}

fn report(shell: &Shell, findings: &[Finding]) -> Result<(), Failure> {
    let wrong = findings.iter().filter(|finding| finding.state == State::Wrong).count();
    let checks = array(findings.iter().map(|finding| {
        let mut members = vec![
            ("check", string(finding.what)),
            ("state", string(finding.state.word())),
            ("detail", string(&finding.detail)),
        ];
        members.extend(finding.fix.as_deref().map(|fix| ("fix", string(fix))));
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
            if let Some(fix) = &finding.fix {
                lines.push(output::hang("                  ", &format!("Fix: {}", output::clean(fix))));
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
            let fix = first.fix.as_deref().unwrap_or_default();
            Err(Failure::new("invalid_state", format!("the check of the {} failed", first.what))
                .with_remedy(format!("{fix}.")))
        }
    }
}

fn check_home(findings: &mut Findings, home: &Home) -> bool {
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

fn check_files(findings: &mut Findings, home: &Home) {
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
    let config = home.path().join("config.json");
    let read = std::fs::read(&config).map(|bytes| serde_json::from_slice::<Value>(&bytes).is_ok());
    if matches!(read, Ok(false)) {
        findings.bad(
            State::Wrong,
            "config",
            "config.json is not JSON: the daemon does not start with it",
            format!("correct {}", config.display()),
        );
    }
}

fn check_room(findings: &mut Findings, home: &Home) {
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

fn check_daemon(findings: &mut Findings, home: &Home) -> Option<Value> {
    let options = Options::admin(home.clone());
    match Client::probe(&options) {
        Err(error) => {
            findings.failed("daemon", error);
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
    let Some(team) = status.get("team") else {
        // Without a team the link has no errors of its own: what stands there is why there is none.
        if let Some(why) = status.get("relay").and_then(|relay| relay.maybe("lastError")) {
            findings.bad(State::Wrong, "team", output::clean(why), "see docs/backup.md");
            return;
        }
        findings.bad(
            State::Look,
            "team",
            "this machine is in no team",
            "create a team with `messaging team create`, or join one with `messaging team join`",
        );
        return;
    };
    let identity = status.get("identity");
    let who = |member| identity.map(|identity| identity.text(member)).unwrap_or_default();
    let head = team.get("head").and_then(|head| head.int("seq")).unwrap_or_default();
    findings.fine(
        "team",
        format!(
            "{}: you are {}@{}, {}, roster entry {head}",
            team.text("name"),
            who("person"),
            who("label"),
            team.text("role")
        ),
    );
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
            "identity.json is gone",
            "restore it, or have an admin remove this machine and join again with a new home",
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

fn check_relay(findings: &mut Findings, url: &str, status: Option<&Value>) {
    let relay = status.and_then(|status| status.get("relay"));
    let state = relay.map(|relay| relay.text("state").to_owned()).unwrap_or_default();
    let last = relay
        .and_then(|relay| relay.maybe("lastError"))
        .map(|error| format!(" (last: {error})"))
        .unwrap_or_default();
    let progress = Progress::start("asking the relay");
    let sent = output::now();
    let answer = probe(url);
    let half = output::now().saturating_sub(sent) / 2;
    drop(progress);
    let answer = match answer {
        Err(why) => {
            findings.bad(
                State::Wrong,
                "relay",
                format!("{url} cannot be reached: {}", reason(&why)),
                fix(&why),
            );
            return;
        }
        Ok(answer) => answer,
    };
    let took = answer.took.as_millis();
    if answer.status != 200 {
        findings.bad(
            State::Wrong,
            "relay",
            format!("{url} answers with HTTP status {}", answer.status),
            "ask who runs the relay; its /readyz says what is wrong",
        );
    } else if state == "connected" || status.is_none() {
        findings.fine(
            "relay",
            format!(
                "{url} answers in {took} ms, {}",
                if state.is_empty() { "no daemon is connected" } else { &state }
            ),
        );
    } else {
        findings.bad(
            State::Wrong,
            "relay",
            format!("{url} answers in {took} ms, but the daemon is {state}{last}"),
            "wait a minute and look again; then run `messaging log --level warn`",
        );
    }
    if let Some(date) = answer.date {
        check_clock(findings, date, sent.saturating_add(half));
    }
}

/// The relay's clock is to the second, so up to a second apart is equal.
fn check_clock(findings: &mut Findings, relay: u64, here: u64) {
    let apart = relay.abs_diff(here).saturating_sub(1000);
    let way = if here > relay { "ahead of" } else { "behind" };
    if apart > CLOCK_SKEW_MS {
        findings.bad(
            State::Wrong,
            "clock",
            format!("{} {way} the relay's: mail is refused as expired", output::span(apart)),
            "set the clock, for example with `timedatectl set-ntp true`; if it is right, tell who runs the relay",
        );
    } else if apart > CLOCK_WORD_MS {
        findings.bad(
            State::Look,
            "clock",
            format!("{} {way} the relay's", output::span(apart)),
            "set the clock",
        );
    } else {
        findings.fine("clock", "agrees with the relay's");
    }
}

fn reason(word: &str) -> &str {
    match word {
        "url" => "the URL is not one a machine may use",
        "resolve" => "its name does not resolve",
        "connect" => "nothing accepts the connection",
        "roots" => "this system has no certificate roots",
        "tls" => "TLS fails (its certificate, or something between)",
        "timeout" => "no answer in ten seconds",
        _ => "what answers is no relay",
    }
}

fn fix(word: &str) -> &str {
    match word {
        "url" => "use wss://, or ws:// to this machine only",
        "resolve" => "check the name in config.json and this machine's network",
        "roots" => "install the package ca-certificates",
        "tls" => "check the relay's certificate and this machine's clock",
        _ => "check that the relay runs and that this network lets you reach it",
    }
}

/// The relay in config.json, for when no daemon answers.
fn configured_relay(home: &Home) -> Option<String> {
    let bytes = std::fs::read(home.path().join(Path::new("config.json"))).ok()?;
    let config: Value = serde_json::from_slice(&bytes).ok()?;
    config.maybe("relay").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_judged_by_what_the_protocol_allows() {
        let state = |relay, here| {
            let mut findings = Findings::default();
            check_clock(&mut findings, relay, here);
            findings.0[0].state
        };
        let now = 1_796_223_062_000;
        assert_eq!(state(now, now + 900), State::Fine);
        assert_eq!(state(now + 40_000, now), State::Look);
        assert_eq!(state(now, now + 302_000), State::Wrong);
        assert_eq!(state(now + 302_000, now), State::Wrong);
    }
}
