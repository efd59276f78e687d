//! The relay, the link to it, and the clock they share.

use super::{Findings, State};
use crate::cli::cause;
use crate::cli::output;
use crate::cli::progress::Progress;
use crate::cli::value::Read;
use messaging_proto::limits::CLOCK_SKEW_MS;
use messaging_smol::probe::probe;
use serde_json::Value;

/// The clock may be this far off before it is worth a word.
const CLOCK_WORD_MS: u64 = 30_000;
/// Where the causes are.
const LOG: &str = "run `messaging log --level warn`";

pub(super) fn check_relay(findings: &mut Findings, url: &str, status: Option<&Value>) {
    let relay = status.and_then(|status| status.get("relay"));
    let state = relay.map(|relay| relay.text("state").to_owned()).unwrap_or_default();
    let last = relay.and_then(|relay| relay.maybe("lastError")).map(output::clean);
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
                cause::reach(&why),
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
    } else {
        let answers = format!("{url} answers in {took} ms");
        match (&*state, last) {
            ("", _) => findings.fine("relay", format!("{answers}, no daemon is connected")),
            ("connected", None) => findings.fine("relay", format!("{answers}, connected")),
            ("connected", Some(last)) => {
                let state = if cause::is_alarm(&last) { State::Wrong } else { State::Look };
                let fix = cause::step(&last).unwrap_or_else(|| LOG.to_owned());
                findings.bad(state, "relay", format!("{answers}, connected; earlier: {last}"), fix);
            }
            // Nothing is dialled, and the checks of the team and of the keys say why.
            ("offline", _) => findings.fine("relay", format!("{answers}; this machine does not connect")),
            (state, last) => {
                let fix = last.as_deref().and_then(cause::step);
                let last = last.map(|last| format!(" (last: {last})")).unwrap_or_default();
                findings.bad(
                    State::Wrong,
                    "relay",
                    format!("{answers}, but the daemon is {state}{last}"),
                    fix.unwrap_or_else(|| format!("wait a minute and look again; then {LOG}")),
                );
            }
        }
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
