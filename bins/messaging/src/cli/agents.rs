//! People and agents: `contacts`, `people`, `person`, `agents`, `agent` and `notices`.

use super::args::{Agent, Card, Notices, People, Person};
use super::chats;
use super::failure::Failure;
use super::output::{self, FAINT, STRONG};
use super::shell::Shell;
use super::value::{Read, array, object, string};
use serde_json::Value;
use std::time::Duration;

pub(super) fn contacts(shell: &mut Shell) -> Result<(), Failure> {
    let view = shell.view()?;
    let contacts = shell.call("contacts.list", object([]))?;
    shell.out.result(&contacts, || {
        let rows: Vec<Vec<String>> = contacts
            .items("entries")
            .iter()
            .map(|entry| {
                let mut row = cells(entry, view.is_connected());
                row.push(output::clean(entry.maybe("doing").unwrap_or_default()));
                row
            })
            .collect();
        if rows.is_empty() {
            return "No agents yet: an agent shows up once it registers with its daemon.".to_owned();
        }
        output::table(&["ADDRESS", "CLIENT", "STATE", "A MESSAGE NOW", "DOING"], &rows)
    });
    shell.as_of(&view, None, true);
    Ok(())
}

/// The cells of an agent: its address, its kind, its state and what becomes of a message.
fn cells(entry: &Value, connected: bool) -> Vec<String> {
    vec![
        output::clean(entry.text("address")),
        output::clean(entry.text("client")),
        entry.text("state").to_owned(),
        expect(entry, connected).to_owned(),
    ]
}

/// What becomes of a message sent now. Without a relay none leaves this machine.
fn expect(entry: &Value, connected: bool) -> &'static str {
    match entry.maybe("expect") {
        Some(_) if !connected && !entry.flag("local") => "waits in the outbox here",
        Some("offline") => "waits for their machine",
        Some("kept") => "waits for the agent",
        Some("wake") => "wakes it",
        Some("on_read") => "is seen when it checks",
        Some("next_turn") => "is seen next turn",
        Some("next_prompt") => "is seen at its next prompt",
        _ => "",
    }
}

pub(super) fn people(shell: &mut Shell, args: People) -> Result<(), Failure> {
    let view = shell.view()?;
    let result = shell.call("people.search", object([("query", string(&args.query))]))?;
    shell.out.result(&result, || {
        let rows: Vec<Vec<String>> = result
            .items("people")
            .iter()
            .map(|person| vec![output::clean(person.text("name")), output::clean(person.text("org"))])
            .collect();
        if rows.is_empty() { "Nobody found.".to_owned() } else { output::table(&["PERSON", "TEAM"], &rows) }
    });
    shell.as_of(&view, None, true);
    Ok(())
}

pub(super) fn person(shell: &mut Shell, args: Person) -> Result<(), Failure> {
    let view = shell.view()?;
    let person = of_team(shell, &args.person)?;
    shell.out.result(&person, || {
        let mut text = format!(
            "{STRONG}{}{STRONG:#}  {}\n",
            output::clean(person.text("name")),
            output::clean(person.text("org"))
        );
        let devices: Vec<Vec<String>> = person
            .items("devices")
            .iter()
            .map(|device| {
                vec![
                    output::clean(device.text("label")),
                    match (device.flag("current"), device.flag("online")) {
                        (false, _) => "removed",
                        (true, true) => "online",
                        (true, false) => "offline",
                    }
                    .to_owned(),
                    device.text("device").to_owned(),
                ]
            })
            .collect();
        text.push_str(&output::table(&["MACHINE", "STATE", "ID"], &devices));
        let agents: Vec<Vec<String>> =
            person.items("entries").iter().map(|entry| cells(entry, view.is_connected())).collect();
        if agents.is_empty() {
            text.push_str("\n\nNo agents that this machine knows of.");
        } else {
            text.push_str("\n\n");
            text.push_str(&output::table(&["AGENT", "CLIENT", "STATE", "A MESSAGE NOW"], &agents));
        }
        if let Some(reach) = person.get("reach") {
            text.push_str(&format!("\n\n{}", may(reach)));
        }
        if !person.items("deviceChanges").is_empty() {
            text.push_str("\n\nChanged in the last 7 days:");
        }
        for change in person.items("deviceChanges") {
            text.push_str(&format!(
                "\n    {} {}, {}",
                output::clean(change.text("label")),
                change.text("change"),
                change.int("at").map(output::when).unwrap_or_default()
            ));
        }
        text
    });
    shell.as_of(&view, None, true);
    Ok(())
}

/// What the daemon knows of a person.
///
/// # Errors
/// `not_found` when nobody in the team has this name.
pub(super) fn of_team(shell: &mut Shell, person: &str) -> Result<Value, Failure> {
    shell.call("people.get", object([("person", string(person))])).map_err(|mut failure| {
        if failure.code == "not_found" {
            "nobody in the team has this name".clone_into(&mut failure.text);
            failure.with_remedy(
                "run `messaging people <part of the name>`, or `messaging team info` for everybody.",
            )
        } else {
            failure
        }
    })
}

/// What the other person lets this one do, as far as this machine is told.
fn may(reach: &Value) -> String {
    let can = reach.get("can").cloned().unwrap_or(Value::Null);
    let lines = match (can.flag("chat"), can.flag("agentMail")) {
        (true, true) => "You and your agents may write to them",
        (true, false) => "You may write to them, your agents may not",
        (false, true) => "Your agents may write to them, you may not",
        (false, false) => "Neither you nor your agents may write to them",
    };
    let asks = match can.text("ask") {
        "open" => "their agents get your agents' messages and tasks without asking them",
        "request" => "a message or task to one of their agents waits until they agree",
        _ => "their agents take no messages and tasks from you",
    };
    match reach.text("source") {
        "card" => format!("{lines}; {asks}.\n{FAINT}They say so in their contact card.{FAINT:#}"),
        // §6.9: a team sends no cards, so only its defaults are known beforehand. Said first: they may have chosen otherwise.
        _ => format!(
            "Unless they chose otherwise for you: {}{}; {asks}.\n{FAINT}What they chose shows when you send.{FAINT:#}",
            lines[..1].to_ascii_lowercase(),
            &lines[1..]
        ),
    }
}

pub(super) fn card(shell: &mut Shell, args: &Card) -> Result<(), Failure> {
    let result = shell.call("card.get", object([("person", string(&args.person))]))?;
    shell.out.result(&result, || {
        if result.flag("sent") {
            "They have your contact card."
        } else {
            "No contact card was sent: in a team the roster says who everybody is."
        }
        .to_owned()
    });
    Ok(())
}

pub(super) fn agents(shell: &mut Shell) -> Result<(), Failure> {
    let view = shell.view()?;
    let result = shell.call("agents.list", object([]))?;
    shell.out.result(&result, || {
        let rows: Vec<Vec<String>> = result
            .items("agents")
            .iter()
            .map(|agent| {
                vec![
                    output::clean(agent.text("agent")),
                    agent.text("state").to_owned(),
                    agent.int("unread").unwrap_or_default().to_string(),
                    output::ago(agent.int("lastAt")),
                ]
            })
            .collect();
        if rows.is_empty() {
            return "No agents on this machine.".to_owned();
        }
        output::table(&["AGENT", "STATE", "UNREAD", "LAST"], &rows)
    });
    shell.as_of(&view, None, true);
    Ok(())
}

pub(super) fn agent(shell: &mut Shell, args: Agent) -> Result<(), Failure> {
    let mut members = vec![("agent", string(&args.name))];
    if let Some(conversation) = &args.with {
        members.push(("conversation", string(conversation)));
    }
    let view = shell.view()?;
    let result = shell.call("agents.read", object(members))?;
    shell.out.result(&result, || {
        if result.text("kind") == "entries" {
            return chats::entries(result.items("entries"));
        }
        let rows: Vec<Vec<String>> = result
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
            "No traffic yet.".to_owned()
        } else {
            output::table(&["WITH", "UNREAD", "LAST"], &rows)
        }
    });
    shell.as_of(&view, None, true);
    Ok(())
}

pub(super) fn notices(shell: &mut Shell, args: &Notices) -> Result<(), Failure> {
    if args.follow {
        shell.call("notice.subscribe", object([("lines", Value::Bool(true))]))?;
        loop {
            let Some(event) = shell.event(Some(Duration::from_secs(3600)))? else { continue };
            if let Some(notice) = event.get("notice") {
                shell.out.result(notice, || describe(notice));
            }
        }
    }
    let view = shell.view()?;
    let list = shell.call("notice.list", object([("lines", Value::Bool(true))]))?;
    shell.out.result(&list, || {
        let lines: Vec<String> = list.items("notices").iter().map(describe).collect();
        if lines.is_empty() { "Nothing new.".to_owned() } else { lines.join("\n") }
    });
    shell.as_of(&view, None, true);
    let ids: Vec<Value> = list.items("notices").iter().map(|notice| string(notice.text("id"))).collect();
    if args.ack && !ids.is_empty() {
        shell.call("notice.ack", object([("ids", array(ids))]))?;
    }
    Ok(())
}

fn describe(notice: &Value) -> String {
    let from = notice.get("from").map(|from| output::clean(from.text("name"))).unwrap_or_default();
    let about = if from.is_empty() { output::clean(notice.text("conversation")) } else { from };
    let category = notice.text("category");
    let text = match (notice.maybe("line").unwrap_or_default(), category) {
        ("", "request") => "asks for your answer: messaging requests".to_owned(),
        (line, _) => line.to_owned(),
    };
    let at = notice.int("at").map(output::when).unwrap_or_default();
    output::said(&format!("{FAINT}{at}{FAINT:#}  {category:7}  {about}  "), &text)
}
