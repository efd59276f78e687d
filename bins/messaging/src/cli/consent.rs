//! Consent: `requests`, `answer`, `grants` and `grant`.

use super::args::{Answer, Grant, Grants, Requests, TRUST_LONGEST};
use super::failure::{Exit, Failure};
use super::output::{self, FAINT, STRONG};
use super::shell::Shell;
use super::value::{Read, number, object, string};
use serde_json::Value;

pub(super) fn requests(shell: &mut Shell, args: &Requests) -> Result<(), Failure> {
    let view = shell.view()?;
    let list = shell.call("request.list", object([]))?;
    if args.answer {
        return answer_each(shell, &list);
    }
    shell.out.result(&list, || {
        let mut lines = Vec::new();
        for ask in list.items("asks") {
            lines.push(format!(
                "{STRONG}{}{STRONG:#}  {} from {} for your agent {}\n{}\n    {FAINT}expires {}{FAINT:#}",
                ask.text("id"),
                ask.text("kind"),
                output::clean(ask.text("address")),
                output::clean(ask.text("session")),
                output::said("    ", ask.text("preview")),
                ask.int("exp").map(output::when).unwrap_or_default()
            ));
        }
        for suggestion in list.items("suggestions") {
            lines.push(format!(
                "{STRONG}{}{STRONG:#}  your agent {} suggests to write to {}",
                suggestion.text("id"),
                output::clean(suggestion.text("agent")),
                output::clean(suggestion.text("email"))
            ));
        }
        if lines.is_empty() {
            return "Nothing waits for you.".to_owned();
        }
        lines.push(format!("{FAINT}Answer: messaging answer <id> once|always|decline|block{FAINT:#}"));
        lines.join("\n")
    });
    shell.as_of(&view, None, true);
    Ok(())
}

/// Shows every held request and asks for its answer.
fn answer_each(shell: &mut Shell, list: &Value) -> Result<(), Failure> {
    if !output::can_ask() {
        return Err(Failure::usage("--answer asks, and there is no terminal to ask on")
            .with_remedy("use `messaging answer <id> <answer> --yes`."));
    }
    let asks = list.items("asks");
    if asks.is_empty() {
        output::page("Nothing waits for you.\n");
    }
    for (at, ask) in asks.iter().enumerate() {
        output::page(&format!(
            "\n{STRONG}{} of {}{STRONG:#}: {} from {} for your agent {}\n{}\n",
            at + 1,
            asks.len(),
            ask.text("kind"),
            output::clean(ask.text("address")),
            output::clean(ask.text("session")),
            output::said("    ", ask.text("preview"))
        ));
        let answer = loop {
            match shell.ask("o)nce, a)lways, d)ecline, b)lock, s)kip, q)uit?")?.as_str() {
                "o" | "once" => break "once",
                "a" | "always" => break "always",
                "d" | "decline" => break "decline",
                "b" | "block" => break "block",
                "s" | "skip" | "" => break "",
                "q" | "quit" => return Ok(()),
                _ => {}
            }
        };
        if answer.is_empty() {
            continue;
        }
        let params = || object([("id", string(ask.text("id"))), ("answer", string(answer))]);
        let preview = shell.call("request.answer.preview", params())?;
        match shell.confirm(preview.text("sentence"), false) {
            Ok(()) => {}
            Err(no) if no.exit() == Exit::Declined => continue,
            Err(error) => return Err(error),
        }
        shell.call("request.answer", params())?;
        output::page("Answered.\n");
    }
    Ok(())
}

pub(super) fn answer(shell: &mut Shell, args: Answer) -> Result<(), Failure> {
    let params = || {
        object([("id", string(&args.id)), ("answer", string(&args.answer)), ("all", Value::Bool(args.all))])
    };
    if !args.yes {
        let preview = shell.call("request.answer.preview", params())?;
        shell.confirm(preview.text("sentence"), false)?;
    }
    let result = shell.call("request.answer", params())?;
    shell.out.result(&result, || format!("{} answered.", result.items("answered").len()));
    Ok(())
}

/// A person or `#channel` as the API's subject.
fn subject(text: &str) -> Value {
    match text.strip_prefix('#') {
        Some(channel) => object([("channel", string(channel))]),
        None => object([("person", string(text))]),
    }
}

pub(super) fn list(shell: &mut Shell, args: Grants) -> Result<(), Failure> {
    let params =
        args.subject.as_deref().map_or_else(|| object([]), |text| object([("subject", subject(text))]));
    let view = shell.view()?;
    let list = shell.call("grant.list", params)?;
    // A name that nobody has is no person under the defaults. One who left may have grants yet.
    if let Some(person) = args.subject.as_deref().filter(|subject| !subject.starts_with('#'))
        && list.items("grants").is_empty()
        && list.items("review").is_empty()
    {
        super::agents::of_team(shell, person)?;
    }
    shell.out.result(&list, || {
        let mut rows = Vec::new();
        for grant in list.items("grants") {
            rows.push(vec![subject_text(grant.get("subject")), levels(grant)]);
        }
        for review in list.items("review") {
            let lapsed = review.get("levels").map(levels).unwrap_or_default();
            rows.push(vec![
                subject_text(review.get("subject")),
                format!("lapsed with a removed machine: {lapsed}"),
            ]);
        }
        if rows.is_empty() {
            return "No grants: the team's defaults apply (agents may ask after you agree each time)."
                .to_owned();
        }
        output::table(&["SUBJECT", "LEVELS"], &rows)
    });
    shell.as_of(&view, None, false);
    Ok(())
}

fn subject_text(subject: Option<&Value>) -> String {
    let Some(subject) = subject else { return String::new() };
    match (subject.maybe("person"), subject.maybe("local")) {
        (Some(person), _) => output::clean(person),
        (None, Some(local)) => format!("#{}", output::clean(local)),
        _ => subject.text("channel").to_owned(),
    }
}

fn levels(grant: &Value) -> String {
    let mut words = Vec::new();
    for (member, word) in [("chat", "chat"), ("agentMail", "agent mail"), ("ask", "ask")] {
        if let Some(level) = grant.maybe(member) {
            words.push(format!("{word} {level}"));
        }
    }
    if let Some(until) = grant.int("trustedUntil") {
        words.push(format!("trusted until {}", output::when(until)));
    }
    match grant.get("discoverable") {
        Some(Value::Bool(true)) => words.push("discoverable".to_owned()),
        Some(Value::Bool(false)) => words.push("not discoverable".to_owned()),
        _ => {}
    }
    if words.is_empty() { "defaults".to_owned() } else { words.join(", ") }
}

pub(super) fn grant(shell: &mut Shell, args: Grant) -> Result<(), Failure> {
    let mut members = vec![("subject", subject(&args.subject))];
    for (member, level) in [("chat", &args.chat), ("agentMail", &args.agent_mail), ("ask", &args.ask)] {
        if let Some(level) = level {
            members.push((member, string(level)));
        }
    }
    match args.trust.as_deref() {
        None => {}
        Some(TRUST_LONGEST) => members.push(("trust", Value::Bool(true))),
        Some(days) => {
            let days: u64 =
                days.parse().map_err(|_| Failure::usage("--trust takes a number of days, or nothing"))?;
            let until = output::now().saturating_add(days.saturating_mul(86_400_000));
            members.push(("trustedUntil", number(until)));
        }
    }
    match args.discoverable.as_deref() {
        Some("yes") => members.push(("discoverable", Value::Bool(true))),
        Some("no") => members.push(("discoverable", Value::Bool(false))),
        Some(_) => return Err(Failure::usage("--discoverable takes yes or no")),
        None => {}
    }
    if args.clear == (members.len() > 1) {
        return Err(Failure::usage("name at least one level, or --clear and no level")
            .with_remedy("run `messaging grant --help`."));
    }
    if !args.yes {
        let preview = shell.call("grant.set.preview", object(members.clone()))?;
        shell.confirm(preview.text("sentence"), false)?;
    }
    let result = shell.call("grant.set", object(members))?;
    shell.out.result(&result, || {
        result
            .get("grant")
            .map(|grant| format!("{}: {}", subject_text(grant.get("subject")), levels(grant)))
            .unwrap_or_default()
    });
    Ok(())
}
