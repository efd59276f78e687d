//! Lines in chats: `send` to a person or a channel, `chats`, `chat …`, `channel …`, `search`, and conversations.

use super::args::{ChannelVerb, ChatVerb, Search, Send};
use super::chat;
use super::failure::Failure;
use super::output::{self, BAD, FAINT, GOOD, STRONG, WAITING};
use super::shell::Shell;
use super::steps;
use super::value::{Read, array, number, object, string};
use serde_json::Value;

/// The room an address of a line names.
pub(super) fn room(shell: &mut Shell, to: &str) -> Result<String, Failure> {
    if let Some(name) = to.strip_prefix('#') {
        return Ok(format!("channel:{name}"));
    }
    if to == "me" {
        let device = shell.call("device.status", object([]))?;
        let person =
            device.maybe("person").ok_or_else(|| Failure::new("no_identity", "you are in no team yet"))?;
        return Ok(format!("dm:{person}"));
    }
    Ok(format!("dm:{to}"))
}

/// Writes a line as the person.
pub(super) fn line(shell: &mut Shell, args: &Send, text: Option<String>) -> Result<(), Failure> {
    if args.task || !args.file.is_empty() || args.task_id.is_some() || args.on_behalf_of.is_some() {
        return Err(Failure::usage("a person or a channel takes a line of text and nothing else")
            .with_remedy("name an agent: person/agent."));
    }
    let text = text.ok_or_else(|| {
        Failure::usage("there is nothing to send").with_remedy("add a text, or - to read it.")
    })?;
    let mut members = vec![("conversation", string(&room(shell, &args.to)?)), ("text", string(&text))];
    if let Some(thread) = &args.reply_to {
        members.push(("thread", string(thread)));
    }
    if let Some(key) = &args.key {
        members.push(("clientId", string(key)));
    }
    let result = shell.call("person.send", object(members)).map_err(|failure| {
        // What was typed is an address; a conversation is what this made of it.
        if failure.code == "invalid_request" && failure.text.starts_with("conversation is ") {
            let text = failure.text.replacen("conversation", "to", 1);
            let step = steps::field(&text).unwrap_or_default();
            Failure { text, ..failure }.with_remedy(step)
        } else {
            failure
        }
    })?;
    shell.out.result(&result, || {
        let line = result.get("line").cloned().unwrap_or(Value::Null);
        let (style, state, meaning) = match line.maybe("state") {
            Some("delivered") => (GOOD, "delivered", "on a machine of theirs; not that they read it"),
            Some("held") => (WAITING, "held", "their person must accept it first"),
            Some("refused") => (BAD, "refused", "they do not take lines from you"),
            Some(_) => (WAITING, "sent", "stored here and on its way; not yet on a machine of theirs"),
            None => (GOOD, "written", "in your own notes"),
        };
        let id = line.text("id");
        format!("{style}{state}{style:#} {FAINT}{id}{FAINT:#}: {meaning}.\n{FAINT}Follow it: messaging chat {}{FAINT:#}", output::shell_word(&output::clean(&args.to)))
    });
    Ok(())
}

pub(super) fn list(shell: &mut Shell) -> Result<(), Failure> {
    let view = shell.view()?;
    let list = shell.call("conv.list", object([]))?;
    shell.out.result(&list, || {
        let rows: Vec<Vec<String>> = list
            .items("conversations")
            .iter()
            .map(|conversation| {
                vec![
                    output::clean(conversation.text("conversation")),
                    conversation.int("unread").unwrap_or_default().to_string(),
                    output::ago(conversation.int("lastAt")),
                ]
            })
            .collect();
        if rows.is_empty() {
            return "No conversations yet.".to_owned();
        }
        output::table(&["CONVERSATION", "UNREAD", "LAST"], &rows)
    });
    let more = (list.items("conversations").len() >= 100).then_some("only the latest 100 are listed");
    shell.as_of(&view, more, true);
    Ok(())
}

pub(super) fn run(shell: &mut Shell, verb: ChatVerb) -> Result<(), Failure> {
    match verb {
        ChatVerb::With(args) => chat::run(shell, &args),
        ChatVerb::MarkRead(args) => {
            let up_to = match args.up_to {
                Some(up_to) => up_to,
                None => {
                    let page = shell.call(
                        "conv.read",
                        object([("conversation", string(&args.room)), ("limit", number(1))]),
                    )?;
                    page.items("lines").last().and_then(|line| line.int("seq")).unwrap_or_default()
                }
            };
            let result = shell.call(
                "conv.markRead",
                object([("conversation", string(&args.room)), ("upTo", number(up_to))]),
            )?;
            shell.out.result(&result, || format!("{} unread.", result.int("unread").unwrap_or_default()));
            Ok(())
        }
        ChatVerb::Follow(args) => {
            let params = args.since.map_or_else(|| object([]), |since| object([("since", number(since))]));
            let result = shell.call("conv.subscribe", params)?;
            if result.flag("gap") {
                output::complain("Some changes are missing: read the conversations anew.");
            }
            loop {
                let Some(event) = shell.event(None)? else { return Ok(()) };
                if event.text("type") != "conv" {
                    continue;
                }
                let text = if shell.out.is_json() { None } else { text_of(shell, &event)? };
                shell.out.result(&event, || {
                    let what = match event.text("change") {
                        "line" => "wrote",
                        "state" => "has news of a line's delivery",
                        "channel" => "changed the channel",
                        "deleted" => "ended the channel here",
                        other => other,
                    };
                    let lead = format!(
                        "{}  {}  {} {what}",
                        event.int("seq").unwrap_or_default(),
                        output::clean(event.text("conversation")),
                        output::clean(event.text("person")),
                    );
                    text.map_or_else(|| lead.clone(), |text| output::said(&format!("{lead}  "), &text))
                });
            }
        }
    }
}

/// The text of the line that an event is about.
fn text_of(shell: &mut Shell, event: &Value) -> Result<Option<String>, Failure> {
    let Some(id) = event.maybe("id").filter(|_| event.text("change") == "line") else { return Ok(None) };
    let room = object([("conversation", string(event.text("conversation"))), ("limit", number(100))]);
    let page = match shell.call("conv.read", room) {
        Err(failure) if failure.code == "not_found" => return Ok(None),
        page => page?,
    };
    let line = page.items("lines").iter().find(|line| line.text("id") == id);
    Ok(line.map(|line| line.text("text").to_owned()))
}

pub(super) fn channel(shell: &mut Shell, verb: ChannelVerb) -> Result<(), Failure> {
    let people = |persons: &[String]| array(persons.iter().map(|person| string(person)));
    let done = match &verb {
        ChannelVerb::Create(args) => shell.call(
            "channel.create",
            object([("name", string(&args.name)), ("persons", people(&args.persons))]),
        ),
        ChannelVerb::Invite(args) => shell.call(
            "channel.invite",
            object([("name", string(&args.name)), ("persons", people(&args.persons))]),
        ),
        ChannelVerb::Remove(args) => shell.call(
            "channel.remove",
            object([("name", string(&args.name)), ("persons", people(&args.persons))]),
        ),
        ChannelVerb::Leave(args) => shell.call("channel.leave", object([("name", string(&args.name))])),
    };
    let result = done.map_err(|failure| match failure.text.as_str() {
        "they are members already" => failure.with_remedy("nothing: they read and write there."),
        "a person is no member" => failure.with_remedy("nothing: they are not in the channel."),
        _ => failure,
    })?;
    shell.out.result(&result, || match result.get("conversation") {
        Some(conversation) => {
            let persons: Vec<&str> = conversation.items("persons").iter().filter_map(Value::as_str).collect();
            let room = output::clean(conversation.text("conversation"));
            // §6.8: what this machine notes is not what theirs take.
            let remark = match &verb {
                ChannelVerb::Invite(_) => format!(
                    "\n{FAINT}Their machines are told. One that refuses, as for a week after a removal, shows as a notice in \
                     {room}.{FAINT:#}"
                ),
                ChannelVerb::Remove(_) => format!(
                    "\n{FAINT}Their machines take no invitation back to this channel for a week; make a new one to bring \
                     them back sooner.{FAINT:#}"
                ),
                _ => String::new(),
            };
            format!("{room}: {}{remark}", output::clean(&persons.join(", ")))
        }
        None => "You left the channel.".to_owned(),
    });
    Ok(())
}

pub(super) fn search(shell: &mut Shell, args: Search) -> Result<(), Failure> {
    let mut members = vec![("query", string(&args.query))];
    if let Some(room) = &args.r#in {
        members.push(("conversation", string(room)));
    }
    let view = shell.view()?;
    let result = shell.call("search", object(members))?;
    shell.out.result(&result, || {
        let hits: Vec<String> = result
            .items("hits")
            .iter()
            .map(|hit| describe_line(&format!("{}  ", output::clean(hit.text("conversation"))), hit))
            .collect();
        if hits.is_empty() { "Nothing found.".to_owned() } else { hits.join("\n") }
    });
    let more = (result.items("hits").len() >= 20).then_some("only the latest 20 are listed");
    shell.as_of(&view, more, true);
    Ok(())
}

/// `read --with`.
pub(super) fn conversation(
    shell: &mut Shell,
    conversation: &str,
    before: Option<&str>,
    limit: Option<u64>,
) -> Result<(), Failure> {
    let mut members = vec![("conversation", string(conversation))];
    if let Some(limit) = limit {
        members.push(("limit", number(limit)));
    }
    if let Some(before) = before {
        members.push(("before", cursor(before)?));
    }
    let view = shell.view()?;
    let page = if conversation.starts_with("agent:") {
        shell.call_keyed("conv.read", members)?
    } else {
        shell.call("conv.read", object(members))?
    };
    shell.out.result(&page, || {
        let mut lines: Vec<String> = page.items("lines").iter().map(|line| describe_line("", line)).collect();
        lines.extend(page.items("entries").iter().map(describe_entry));
        if page.flag("more") {
            let earliest = match (page.items("lines").first(), page.items("entries").first()) {
                (Some(line), _) => line.int("seq").unwrap_or_default().to_string(),
                (_, Some(entry)) => format!("{}:{}", entry.int("at").unwrap_or_default(), entry.text("id")),
                _ => String::new(),
            };
            lines.insert(0, format!("{FAINT}earlier: --before {earliest}{FAINT:#}"));
        }
        if lines.is_empty() { "Nothing yet.".to_owned() } else { lines.join("\n") }
    });
    let more = page.flag("more").then_some("--before shows earlier ones");
    shell.as_of(&view, more, true);
    Ok(())
}

/// A line's number, or `<at>:<id>` with an agent.
fn cursor(text: &str) -> Result<Value, Failure> {
    let bad = || Failure::usage("--before takes what `earlier:` showed");
    match text.split_once(':') {
        Some((at, id)) => Ok(object([("at", number(at.parse().map_err(|_| bad())?)), ("id", string(id))])),
        None => Ok(number(text.parse().map_err(|_| bad())?)),
    }
}

/// A line after `place`. Its state stands before it: what follows somebody else's text could be theirs.
fn describe_line(place: &str, line: &Value) -> String {
    let who = match line.maybe("agent") {
        Some(agent) => format!("{}/{}", line.text("person"), agent),
        None => line.text("person").to_owned(),
    };
    let state = match line.maybe("state") {
        Some("refused") => format!(" {BAD}(refused){BAD:#}"),
        Some(state @ ("sent" | "held")) => format!(" {WAITING}({state}){WAITING:#}"),
        Some("delivered") => format!(" {FAINT}(delivered){FAINT:#}"),
        _ => String::new(),
    };
    let at = line.int("at").map(output::when).unwrap_or_default();
    let lead = format!("{place}{FAINT}{at}{FAINT:#}  {STRONG}{}{STRONG:#}{state}  ", output::clean(&who));
    output::said(&lead, line.text("text"))
}

/// Entries of an agent's conversation, one a line.
pub(super) fn entries(entries: &[Value]) -> String {
    let lines: Vec<String> = entries.iter().map(describe_entry).collect();
    if lines.is_empty() { "Nothing yet.".to_owned() } else { lines.join("\n") }
}

fn describe_entry(entry: &Value) -> String {
    let arrow = if entry.text("direction") == "out" { "→" } else { "←" };
    let detail = entry.maybe("state").or_else(|| entry.maybe("stage")).unwrap_or_default();
    let at = entry.int("at").map(output::when).unwrap_or_default();
    let preview = entry.text("preview");
    let lead = format!(
        "{FAINT}{at}{FAINT:#}  {arrow} {} {detail}  {FAINT}{}{FAINT:#}",
        entry.text("type"),
        entry.text("id")
    );
    if preview.is_empty() {
        return lead;
    }
    // Below it on a terminal, where an id and a preview seldom fit beside each other.
    if super::on_terminal() {
        format!("{lead}\n{}", output::said("    ", preview))
    } else {
        output::said(&format!("{lead}  "), preview)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_read_in_both_forms() {
        assert_eq!(cursor("12").unwrap(), number(12));
        assert_eq!(cursor("5:01M7").unwrap().int("at"), Some(5));
        assert!(cursor("x").is_err());
    }
}
