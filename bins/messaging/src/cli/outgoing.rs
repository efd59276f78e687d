//! `sent` without an id: what this machine's agents and its person sent and nobody has seen yet.
//!
//! The daemon's API has no such list. It is put together from what each of the person's agents exchanged (`agents.list`,
//! `agents.read`), the lines of the chats (`conv.list`, `conv.read`), who is there (`contacts.list`) and the relay's state,
//! and checked against the count of the outbox (`daemon.status`).

use super::failure::Failure;
use super::outcome::Outcome;
use super::output::{self, BAD, FAINT, STRONG, WAITING};
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
    /// The one that is asked for, whatever became of it.
    only: Option<String>,
}

pub(super) fn run(shell: &mut Shell) -> Result<(), Failure> {
    let status = shell.call("daemon.status", object([]))?;
    let world = look(shell, &status, None)?;
    let mut rows = Vec::new();
    let mut complete = mail(shell, &world, &mut rows)?;
    complete &= lines(shell, &world, &mut rows)?;
    rows.sort_by_key(|row| row.at);
    for row in &mut rows {
        explain(shell, &world, row)?;
    }
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

fn look(shell: &mut Shell, status: &Value, only: Option<&str>) -> Result<World, Failure> {
    let relay = status.get("relay").map(|relay| relay.text("state").to_owned()).unwrap_or_default();
    let contacts = shell.call("contacts.list", object([]))?;
    let entries = contacts.items("entries").to_vec();
    Ok(World { relay, entries, now: output::now(), only: only.map(str::to_owned) })
}

/// What another agent of the person sent: its row. `missing` is the error when none of them did.
pub(super) fn one(shell: &mut Shell, id: &str, missing: Failure) -> Result<(), Failure> {
    let status = shell.call("daemon.status", object([]))?;
    let world = look(shell, &status, Some(id))?;
    let mut rows = Vec::new();
    mail(shell, &world, &mut rows)?;
    lines(shell, &world, &mut rows)?;
    let Some(row) = rows.into_iter().find(|row| row.id == id) else { return Err(missing) };
    shell.out.result(&row.to_value(world.now), || {
        let why = if row.why.is_empty() { String::new() } else { format!("\n  {}", row.why) };
        format!("{} from {} to {}: {STRONG}{}{STRONG:#}{why}", row.id, row.from, row.to, row.stage)
    });
    Ok(())
}

/// Says more of what this terminal itself sent: only a session may read its own deliveries.
fn explain(shell: &mut Shell, world: &World, row: &mut Row) -> Result<(), Failure> {
    if row.from != shell.session() || row.kind == "line" {
        return Ok(());
    }
    let (request, task) = match row.kind {
        "task" => match shell.call_keyed("task.get", [("taskId", string(&row.id))]) {
            Ok(record) => {
                let task = record.get("task").cloned().unwrap_or(Value::Null);
                (task.text("requestId").to_owned(), Some(row.id.clone()))
            }
            Err(failure) if failure.code == "not_found" => return Ok(()),
            Err(failure) => return Err(failure),
        },
        _ => (row.id.clone(), None),
    };
    let outcome = match Outcome::look(shell, &request, task.as_deref()) {
        Ok(outcome) => outcome,
        Err(failure) if failure.code == "not_found" => return Ok(()),
        Err(failure) => return Err(failure),
    };
    if let Some(failure) = outcome.failure() {
        let said = outcome.first_words().map(|words| format!(": {words}")).unwrap_or_default();
        row.why = format!("{}, {}{said}", failure.code, failure.text);
    } else if row.kind == "task" && matches!(outcome.stage(), "accepted" | "relayed" | "held") {
        row.why = world.why(outcome.stage(), &row.to).to_owned();
    }
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
            "mail" => ("message", entry.text("stage").to_owned()),
            // Its delivery is its agent's to read; its person sees whether work on it began, and how it ended.
            _ => ("task", super::tasks::short_state(entry.text("state"))),
        };
        let waits = matches!(&*stage, "accepted" | "relayed" | "delivered" | "held" | "submitted");
        let failed = matches!(&*stage, "rejected" | "expired" | "failed") && self.is_recent(at);
        if !waits && !failed && self.only.as_deref() != Some(entry.text("id")) {
            return None;
        }
        Some(Row {
            id: entry.text("id").to_owned(),
            from: agent.to_owned(),
            to: to.to_owned(),
            kind,
            why: self.why(&stage, to).to_owned(),
            stage,
            at,
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
            _ if self.only.as_deref() == Some(line.text("id")) => "",
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
        let there = self.entries.iter().filter(|entry| super::mail::is_address(entry.text("address"), to));
        let entries: Vec<&Value> = there.collect();
        let is_there = entries.iter().any(|entry| entry.flag("online") || entry.flag("local"));
        match stage {
            "accepted" if self.relay != "connected" => "the relay is not connected; it goes out by itself",
            "accepted" => "on its way to the relay",
            "relayed" if is_there => "their machine is connected and has not confirmed it yet",
            "relayed" => "their machine is off; the relay keeps it for a week",
            "held" => "their person has not answered",
            "submitted" if self.relay != "connected" => {
                "the relay is not connected; what they did is not known"
            }
            "submitted" if !is_there => "their machine is off; the relay keeps it for a week",
            "submitted" => "no agent has begun to work on it",
            "rejected" => "refused; its agent was told why",
            "failed" => "they could not do it; its agent was told why",
            "expired" => "its week passed",
            "handed_to_agent" | "read" | "replied" => "the agent has seen it",
            "working" | "input_required" | "auth_required" => "an agent works on it",
            "completed" | "canceled" => "it has ended",
            _ => match entries.first().map(|entry| (entry.text("state"), entry.text("expect"))) {
                Some((_, "kept")) => "nobody holds that agent right now",
                Some((_, "on_read")) => "the agent sees it when it checks its inbox",
                Some(("busy", _) | (_, "next_turn")) => "the agent is busy; it sees it at its next turn",
                Some((_, "next_prompt")) => "the agent sees it when next prompted",
                Some((_, "wake")) => "the agent is being woken",
                _ => "on their machine; no word yet that it was seen",
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
        // How long on a terminal; in a pipe, since when.
        let age = if super::on_terminal() { "FOR" } else { "SINCE" };
        lines.push(output::table(&["ID", age, "KIND", "STAGE", "FROM, TO AND WHY"], &rows));
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
