//! `daemon start|stop|status|health|snapshot` and `status`.

use super::args::{DaemonVerb, Status};
use super::failure::Failure;
use super::output::{self, BAD, FAINT, GOOD, STRONG, WAITING};
use super::shell::{Shell, daemon_program};
use super::value::{Read, number, object, string};
use messaging_smol::supervise;
use serde_json::Value;
use std::time::Duration;

pub(super) fn run(shell: &mut Shell, verb: DaemonVerb) -> Result<(), Failure> {
    match verb {
        DaemonVerb::Start(args) => start(shell, Duration::from_millis(args.wait)),
        DaemonVerb::Stop(_) => stop(shell),
        DaemonVerb::Status(_) => status_once(shell),
        DaemonVerb::Health(_) => {
            let health = shell.call("daemon.health", object([]))?;
            shell.out.result(&health, || {
                let mut line = format!("{}, relay {}", health.text("state"), health.text("relay"));
                if let Some(alarm) = health.maybe("alarm") {
                    line.push_str(&format!(", alarm {BAD}{alarm}{BAD:#}"));
                }
                line
            });
            Ok(())
        }
        DaemonVerb::Snapshot(args) => {
            let params = if args.done { object([("done", Value::Bool(true))]) } else { object([]) };
            let result = shell.call("daemon.snapshot", params)?;
            shell.out.result(&result, || match result.maybe("folder") {
                Some(folder) => format!(
                    "A copy of the home is in {folder}.\nCopy it away within the hour, then run \
                     `messaging daemon snapshot --done`. It holds no private key."
                ),
                None if result.flag("released") => "The copy is deleted.".to_owned(),
                None => "No copy was held.".to_owned(),
            });
            Ok(())
        }
    }
}

fn start(shell: &Shell, wait: Duration) -> Result<(), Failure> {
    let home = shell.home()?;
    let (program, arguments) = daemon_program()?;
    let started = supervise::start(&program, arguments, &home, wait)?;
    let pid = u64::from(started.pid);
    let document = object([
        ("pid", number(pid)),
        ("started", Value::Bool(!started.already)),
        ("version", string(env!("CARGO_PKG_VERSION"))),
    ]);
    shell.out.result(&document, || {
        if started.already {
            format!("The daemon already runs (pid {pid}).")
        } else {
            format!("The daemon runs (pid {pid}), home {}.", home.path().display())
        }
    });
    Ok(())
}

fn stop(shell: &Shell) -> Result<(), Failure> {
    let home = shell.home()?;
    let pid = supervise::stop_named(&home)?;
    // The result of `daemon.stop`, and whether there was one to stop.
    let mut members = vec![("ok", Value::Bool(true)), ("stopped", Value::Bool(pid.is_some()))];
    members.extend(pid.map(|pid| ("pid", number(u64::from(pid)))));
    shell.out.result(&object(members), || {
        if pid.is_some() { "The daemon has stopped.".to_owned() } else { "No daemon was running.".to_owned() }
    });
    Ok(())
}

pub(super) fn status(shell: &mut Shell, args: &Status) -> Result<(), Failure> {
    if !args.watch {
        return status_once(shell);
    }
    // Any subscription brings the link's and the directory's changes; the poll catches the rest.
    shell.call("conv.subscribe", object([]))?;
    let mut shown = None;
    loop {
        let now = shell.call("daemon.status", object([]))?;
        if shown.as_ref() != Some(&now) {
            shell.out.result(&now, || describe(&now));
            shown = Some(now);
        }
        shell.event(Some(Duration::from_secs(2)))?;
    }
}

fn status_once(shell: &mut Shell) -> Result<(), Failure> {
    let status = shell.call("daemon.status", object([]))?;
    shell.out.result(&status, || describe(&status));
    Ok(())
}

/// The first line of a home that is nobody in a team.
fn nobody(status: &Value) -> String {
    let known = status.get("team").is_some();
    let last = status.get("relay").and_then(|relay| relay.maybe("lastError")).unwrap_or_default();
    if status.maybe("alarm") == Some("keys_missing") {
        format!("{BAD}This home has no keys{BAD:#}: it connects to no relay and sends nothing.")
    } else if known {
        format!(
            "{BAD}This machine was removed from its team{BAD:#}: it shows what it holds and sends nothing."
        )
    } else if last.starts_with("the store of") {
        format!("{BAD}This home has the keys of a team and not its store.{BAD:#}")
    } else {
        "This machine is in no team yet: `messaging team create` or `team join`.".to_owned()
    }
}

fn describe(status: &Value) -> String {
    let mut lines = Vec::new();
    match status.get("identity") {
        Some(identity @ Value::Object(_)) => lines.push(format!(
            "You are {STRONG}{}@{}{STRONG:#}",
            output::clean(identity.text("person")),
            output::clean(identity.text("label"))
        )),
        _ => lines.push(nobody(status)),
    }
    if let Some(team) = status.get("team") {
        let role = team.maybe("role").map(|role| format!(" ({role})")).unwrap_or_default();
        lines.push(format!("Team     {}{role}", output::clean(team.text("name"))));
    }
    if let Some(relay) = status.get("relay") {
        let state = relay.text("state");
        let style = if state == "connected" { GOOD } else { WAITING };
        lines.push(match relay.maybe("url").map(output::clean) {
            Some(url) => format!("Relay    {style}{state}{style:#} {FAINT}{url}{FAINT:#}"),
            None => format!("Relay    {FAINT}none yet{FAINT:#}"),
        });
        if let Some(error) = relay.maybe("lastError") {
            // What stands after it was overcome is not what is wrong now.
            let lead = if state == "connected" { "earlier: " } else { "" };
            lines.push(output::hang(
                "         ",
                &format!("{WAITING}{lead}{}{WAITING:#}", output::clean(error)),
            ));
        }
    }
    if let Some(outbox) = status.get("outbox") {
        let waiting = outbox.int("waiting").unwrap_or_default();
        lines.push(match outbox.int("oldest") {
            Some(oldest) if waiting > 0 => {
                format!(
                    "Outbox   {WAITING}{waiting} waiting{WAITING:#}, the oldest since {}",
                    output::when(oldest)
                )
            }
            _ => format!("Outbox   {waiting} waiting"),
        });
    }
    if let Some(sessions) = status.get("sessions") {
        let live = sessions.int("live").unwrap_or_default();
        let kept = sessions.int("kept").unwrap_or_default();
        let gone = match kept {
            0 => String::new(),
            _ => format!(", {kept} gone: their mail is kept for a day"),
        };
        lines.push(format!("Agents   {live} here{gone}"));
    }
    match status.maybe("alarm") {
        Some("restored") => lines.push(format!(
            "{BAD}Alarm: this home runs from an older copy of its keys.{BAD:#} Restore the newer identity.json, \
             or have an admin remove this machine and join again."
        )),
        Some("keys_missing") => lines.push(format!(
            "{BAD}Alarm: identity.json is gone.{BAD:#} Restore it, or have an admin remove this machine and join \
             again with a new home."
        )),
        Some(other) => lines.push(format!("{BAD}Alarm: {}{BAD:#}", output::clean(other))),
        None => {}
    }
    if let Some(divergence) = status.get("divergence") {
        lines.push(format!(
            "{BAD}Alarm: the relay shows {} another team history than it shows you{BAD:#} (change {}). Compare \
             `messaging team info` with them, and stop using this relay until it is explained.",
            output::clean(divergence.text("person")),
            divergence.int("seq").unwrap_or_default()
        ));
    }
    lines.push(format!(
        "{FAINT}messagingd {} pid {} store schema {}{FAINT:#}",
        status.text("version"),
        status.int("pid").unwrap_or_default(),
        status.int("storeSchema").unwrap_or_default()
    ));
    lines.join("\n")
}
