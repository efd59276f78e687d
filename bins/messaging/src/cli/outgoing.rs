//! `sent` without an id: what this machine's agents and its person sent and nobody has seen yet.
//!
//! The daemon's API has no such list. It is put together from what each of the person's agents exchanged (`agents.list`,
//! `agents.read`), the lines of the chats (`conv.list`, `conv.read`), who is there (`contacts.list`) and the relay's state,
//! and checked against the count of the outbox (`daemon.status`).

use super::failure::Failure;
use super::output::{self, BAD, FAINT, WAITING};
use super::shell::Shell;
use super::value::{Read, array, number, object, string};
use serde_json::Value;

/// Pages read of one conversation, newest first.
const PAGES: usize = 3;
/// Entries of a page.
const PAGE: u64 = 100;
/// How long what failed stays in the list.
const FAILED_MS: u64 = 86_400_000;

/// One thing that was sent.
struct Row {
    id: String,
    from: String,
    to: String,
    kind: &'static str,
    stage: String,
    at: u64,
    why: String,
}

/// What every row is judged by.
struct World {
    relay: String,
    entries: Vec<Value>,
    now: u64,
}

pub(super) fn run(shell: &mut Shell) -> Result<(), Failure> {
    let status = shell.call("daemon.status", object([]))?;
    let relay = status.get("relay").map(|relay| relay.text("state").to_owned()).unwrap_or_default();
    let contacts = shell.call("contacts.list", object([]))?;
    let world = World { relay, entries: contacts.items("entries").to_vec(), now: output::now() };
    let mut rows = Vec::new();
    let mut complete = mail(shell, &world, &mut rows)?;
    complete &= lines(shell, &world, &mut rows)?;
    rows.sort_by_key(|row| row.at);
    let outbox = status.get("outbox").cloned().unwrap_or(Value::Null);
    let document = object([
        ("asOf", number(world.now)),
        ("complete", Value::Bool(complete)),
        ("relay", string(&world.relay)),
        ("outbox", outbox.clone()),
        ("items", array(rows.iter().map(|row| row.to_value(world.now)))),
    ]);
    shell.out.result(&document, || describe(&rows, &outbox, &world, complete));
    Ok(())
}

impl Row {
    fn to_value(&self, now: u64) -> Value {
        object([
            ("id", string(&self.id)),
            ("from", string(&self.from)),
            ("to", string(&self.to)),
            ("kind", string(self.kind)),
            ("stage", string(&self.stage)),
            ("at", number(self.at)),
            ("ageMs", number(now.saturating_sub(self.at))),
            ("why", string(&self.why)),
        ])
    }
}

/// What the agents sent. Whether all of it was looked at.
fn mail(shell: &mut Shell, world: &World, rows: &mut Vec<Row>) -> Result<bool, Failure> {
    let mut complete = true;
    let agents = shell.call("agents.list", object([]))?;
    for agent in agents.items("agents") {
        let name = agent.text("agent");
        let list = shell.call("agents.read", object([("agent", string(name))]))?;
        for conversation in list.items("conversations") {
            let with = conversation.text("conversation");
            let mut before = None;
            for page in 0..PAGES {
                let mut members =
                    vec![("agent", string(name)), ("conversation", string(with)), ("limit", number(PAGE))];
                members.extend(before.take().map(|before| ("before", before)));
                let entries = shell.call("agents.read", object(members))?;
                let found = entries.items("entries").iter().filter_map(|entry| world.mail(name, with, entry));
                rows.extend(found);
                let earliest = entries.items("entries").first();
                match earliest.filter(|_| entries.flag("more")) {
                    None => break,
                    Some(entry) => {
                        before = Some(object([
                            ("at", number(entry.int("at").unwrap_or_default())),
                            ("id", string(entry.text("id"))),
                        ]));
                    }
                }
                complete &= page + 1 < PAGES;
            }
        }
    }
    Ok(complete)
}

/// The person's lines.
fn lines(shell: &mut Shell, world: &World, rows: &mut Vec<Row>) -> Result<bool, Failure> {
    let mut complete = true;
    let list = shell.call("conv.list", object([("limit", number(200))]))?;
    complete &= list.items("conversations").len() < 200;
    for conversation in list.items("conversations") {
        let room = conversation.text("conversation");
        let page =
            shell.call("conv.read", object([("conversation", string(room)), ("limit", number(PAGE))]))?;
        rows.extend(page.items("lines").iter().filter_map(|line| world.line(room, line)));
    }
    Ok(complete)
}

impl World {
    fn is_recent(&self, at: u64) -> bool {
        self.now.saturating_sub(at) < FAILED_MS
    }

    fn mail(&self, agent: &str, with: &str, entry: &Value) -> Option<Row> {
        if entry.text("direction") != "out" {
            return None;
        }
        let at = entry.int("at").unwrap_or_default();
        let to = with.strip_prefix("agent:").unwrap_or(with);
        let (kind, stage) = match entry.text("type") {
            "mail" => ("message", entry.text("stage")),
            // Its delivery is its agent's to read; its person sees whether work on it began.
            _ if entry.text("state") == "TASK_STATE_SUBMITTED" => ("task", "submitted"),
            _ => return None,
        };
        let waits = matches!(stage, "accepted" | "relayed" | "delivered" | "held" | "submitted");
        let failed = matches!(stage, "rejected" | "expired") && self.is_recent(at);
        if !waits && !failed {
            return None;
        }
        Some(Row {
            id: entry.text("id").to_owned(),
            from: agent.to_owned(),
            to: to.to_owned(),
            kind,
            stage: stage.to_owned(),
            at,
            why: self.why(stage, to).to_owned(),
        })
    }

    fn line(&self, room: &str, line: &Value) -> Option<Row> {
        let stage = line.text("state");
        let at = line.int("at").unwrap_or_default();
        let why = match stage {
            "sent" if self.relay != "connected" => "the relay is not connected",
            "sent" => "none of their machines has confirmed it",
            "held" => "their person has not accepted it yet",
            "refused" if self.is_recent(at) => "they do not take lines from you",
            _ => return None,
        };
        let to = room.strip_prefix("dm:").map_or_else(|| room.replacen("channel:", "#", 1), str::to_owned);
        Some(Row {
            id: line.text("id").to_owned(),
            from: line.maybe("agent").unwrap_or("you").to_owned(),
            to,
            kind: "line",
            stage: stage.to_owned(),
            at,
            why: why.to_owned(),
        })
    }

    fn why(&self, stage: &str, to: &str) -> &'static str {
        let there = self.entries.iter().filter(|entry| {
            entry.text("address").split('@').next() == Some(to) || entry.text("address") == to
        });
        let entries: Vec<&Value> = there.collect();
        match stage {
            "accepted" if self.relay != "connected" => "the relay is not connected; it goes out by itself",
            "accepted" => "on its way to the relay",
            "relayed" if entries.iter().any(|entry| entry.flag("online")) => {
                "their machine is connected and has not confirmed it yet"
            }
            "relayed" => "their machine is off; the relay keeps it for a week",
            "held" => "their person has not answered",
            "submitted" => "nobody has begun to work on it",
            "rejected" => "refused; `messaging sent <id>` of that agent has the code",
            "expired" => "its week passed",
            _ => match entries.first().map(|entry| (entry.text("state"), entry.text("expect"))) {
                Some((_, "kept")) => "nobody holds that agent right now",
                Some((_, "on_read")) => "the agent sees it when it checks its inbox",
                Some(("busy", _) | (_, "next_turn")) => "the agent is busy; it sees it at its next turn",
                Some((_, "next_prompt")) => "the agent sees it when next prompted",
                Some((_, "wake")) => "the agent is being woken",
                _ => "on their machine; the agent was not shown it",
            },
        }
    }
}

fn describe(rows: &[Row], outbox: &Value, world: &World, complete: bool) -> String {
    let mut lines = Vec::new();
    if rows.is_empty() {
        lines.push("Everything you and your agents sent was seen, or nothing was sent.".to_owned());
    } else {
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|row| {
                vec![
                    row.id.clone(),
                    output::ago(Some(row.at)),
                    row.kind.to_owned(),
                    row.stage.clone(),
                    output::clean(&format!("{} to {}: {}", row.from, row.to, row.why)),
                ]
            })
            .collect();
        lines.push(output::table(&["ID", "FOR", "KIND", "STAGE", "FROM, TO AND WHY"], &rows));
    }
    let waiting = outbox.int("waiting").unwrap_or_default();
    if waiting > 0 {
        lines.push(format!(
            "{WAITING}{waiting} in the outbox{WAITING:#}, receipts and updates of tasks included; they go out by themselves."
        ));
    }
    let at = output::when(world.now);
    lines.push(match (complete, world.relay.as_str()) {
        (false, _) => format!(
            "{BAD}As of {at}, not complete: only the latest {} of each conversation were looked at.{BAD:#}",
            PAGES as u64 * PAGE
        ),
        (true, "connected") => format!("{FAINT}As of {at}, complete.{FAINT:#}"),
        (true, state) => {
            format!("{WAITING}As of {at}; the relay is {state}, so newer receipts are not known.{WAITING:#}")
        }
    });
    lines.join("\n")
}
