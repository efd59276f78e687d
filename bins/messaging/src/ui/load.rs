//! Actions carried out at the daemon, and its answers as events. Every text of a peer passes `clean` here.

use super::state::{Action, Detail, Event, Item, Row, Summary, Tab, Tone};
use crate::cli::{Failure, Read, Shell, array, clean, number, object, span, string, time_now, time_text};
use serde_json::Value;

/// Lines and entries of a right-hand side.
const PAGE: u64 = 100;

/// An error in one line: the code, the words, the next step.
pub(super) fn words(failure: &Failure) -> String {
    clean(&format!("{}: {}. Next: {}", failure.code, failure.text, failure.remedy))
}

/// `dm:bob` as `bob`, `channel:eng` as `#eng`.
pub(super) fn room_name(room: &str) -> String {
    match (room.strip_prefix("dm:"), room.strip_prefix("channel:")) {
        (Some(person), _) => clean(person),
        (_, Some(name)) => format!("#{}", clean(name)),
        _ => clean(room),
    }
}

/// Carries out an action.
pub(super) fn perform(shell: &mut Shell, action: &Action) -> Vec<Event> {
    let result = match action {
        Action::Reload => reload(shell),
        Action::Open(tab, key) => open(shell, *tab, key),
        Action::MarkRead { room, up_to } => {
            let params = object([("conversation", string(room)), ("upTo", number(*up_to))]);
            shell.call("conv.markRead", params).and_then(|_| chats(shell)).map(|list| vec![list])
        }
        Action::Write { room, text } => {
            let params = object([("conversation", string(room)), ("text", string(text))]);
            shell.call("person.send", params).and_then(|_| {
                let mut events = open(shell, Tab::Chats, room)?;
                events
                    .push(Event::Done("Sent; the mark shows when it is on a machine of theirs.".to_owned()));
                Ok(events)
            })
        }
        Action::Preview { id, answer } => {
            let params = object([("id", string(id)), ("answer", string(answer))]);
            shell.call("request.answer.preview", params).map(|preview| {
                let action = Action::Answer { id: id.clone(), answer };
                vec![Event::Ask(clean(preview.text("sentence")), action)]
            })
        }
        Action::Answer { id, answer } => {
            let params = object([("id", string(id)), ("answer", string(answer))]);
            shell
                .call("request.answer", params)
                .and_then(|_| Ok(vec![requests(shell)?, Event::Done("Answered.".to_owned())]))
        }
        Action::Cancel { task } => shell
            .call_keyed("task.cancel", [("taskId", string(task))])
            .map(|_| vec![Event::Done("Asked to stop; its state changes when the agent has.".to_owned())]),
        Action::Seen { ids } if ids.is_empty() => Ok(Vec::new()),
        Action::Seen { ids } => {
            let params = object([("ids", array(ids.iter().map(|id| string(id))))]);
            shell.call("notice.ack", params).and_then(|_| notices(shell)).map(|list| vec![list])
        }
        Action::Reconnect | Action::Quit => Ok(Vec::new()),
    };
    result.unwrap_or_else(|failure| {
        let lost = matches!(failure.code.as_str(), "daemon_unavailable" | "daemon_mismatch");
        let mut events =
            vec![if lost { Event::Lost(words(&failure)) } else { Event::Failed(words(&failure)) }];
        if let Action::Write { room, text } = action {
            events.push(Event::Unsent(room.clone(), text.clone()));
        }
        events
    })
}

fn reload(shell: &mut Shell) -> Result<Vec<Event>, Failure> {
    let status = shell.call("daemon.status", object([]))?;
    let mut events = vec![Event::Summary(summary(&status))];
    if status.get("team").is_none() {
        events.push(Event::Failed(
            "no_identity: this machine is in no team. Next: `messaging team join`.".to_owned(),
        ));
        return Ok(events);
    }
    for list in [chats, agents, requests, tasks, notices, team] {
        events.push(list(shell)?);
    }
    Ok(events)
}

fn summary(status: &Value) -> Summary {
    let identity = status.get("identity");
    let member = |name| identity.map(|identity| clean(identity.text(name))).unwrap_or_default();
    let at = time_text(time_now());
    let alarm = match status.get("divergence") {
        Some(_) => Some("roster".to_owned()),
        None => status.maybe("alarm").map(clean),
    };
    Summary {
        me: format!("{}@{}", member("person"), member("label")),
        team: status.get("team").map(|team| clean(team.text("name"))).unwrap_or_default(),
        relay: status.get("relay").map(|relay| clean(relay.text("state"))).unwrap_or_default(),
        at: at.get(11..19).unwrap_or_default().to_owned(),
        alarm,
    }
}

fn age(at: Option<u64>) -> String {
    at.map(|at| span(time_now().saturating_sub(at))).unwrap_or_default()
}

fn chats(shell: &mut Shell) -> Result<Event, Failure> {
    let list = shell.call("conv.list", object([]))?;
    let items = list.items("conversations").iter().map(|one| {
        let unread = one.int("unread").unwrap_or_default();
        Item {
            key: one.text("conversation").to_owned(),
            text: room_name(one.text("conversation")),
            tag: if unread > 0 { unread.to_string() } else { age(one.int("lastAt")) },
            tone: if unread > 0 { Tone::Waiting } else { Tone::Plain },
        }
    });
    Ok(Event::List(Tab::Chats, items.collect()))
}

fn agents(shell: &mut Shell) -> Result<Event, Failure> {
    let list = shell.call("agents.list", object([]))?;
    let items = list.items("agents").iter().map(|one| Item {
        key: one.text("agent").to_owned(),
        text: clean(one.text("agent")),
        tag: format!("{} {}", one.text("state"), one.int("unread").unwrap_or_default()),
        tone: Tone::Plain,
    });
    Ok(Event::List(Tab::Agents, items.collect()))
}

fn requests(shell: &mut Shell) -> Result<Event, Failure> {
    let list = shell.call("request.list", object([]))?;
    let items = list.items("asks").iter().map(|ask| Item {
        key: ask.text("id").to_owned(),
        text: format!("{} {}", ask.text("kind"), clean(ask.text("address"))),
        tag: age(ask.int("at")),
        tone: Tone::Waiting,
    });
    Ok(Event::List(Tab::Requests, items.collect()))
}

/// The tasks of every agent of the person, from what each exchanged, and those of this terminal.
fn tasks(shell: &mut Shell) -> Result<Event, Failure> {
    let mut items: Vec<(u64, Item)> = Vec::new();
    let agents = shell.call("agents.list", object([]))?;
    for agent in agents.items("agents") {
        let name = agent.text("agent");
        let list = shell.call("agents.read", object([("agent", string(name))]))?;
        for conversation in list.items("conversations").iter().take(20) {
            let params = [
                ("agent", string(name)),
                ("conversation", string(conversation.text("conversation"))),
                ("limit", number(PAGE)),
            ];
            let page = shell.call("agents.read", object(params))?;
            for entry in page.items("entries").iter().filter(|entry| entry.text("type") == "task") {
                let state = short(entry.text("state"));
                let over = matches!(state.as_str(), "completed" | "failed" | "canceled" | "rejected");
                let item = Item {
                    key: entry.text("id").to_owned(),
                    text: clean(entry.text("preview")),
                    tag: state,
                    tone: if over { Tone::Faint } else { Tone::Plain },
                };
                items.push((entry.int("at").unwrap_or_default(), item));
            }
        }
    }
    items.sort_by(|one, other| (other.0, &other.1.key).cmp(&(one.0, &one.1.key)));
    items.dedup_by(|one, other| one.1.key == other.1.key);
    Ok(Event::List(Tab::Tasks, items.into_iter().map(|(_, item)| item).collect()))
}

fn notices(shell: &mut Shell) -> Result<Event, Failure> {
    let list = match shell.call("notice.list", object([("lines", Value::Bool(true))])) {
        Ok(list) => list,
        // A daemon that keeps none.
        Err(failure) if failure.code == "not_found" => object([]),
        Err(failure) => return Err(failure),
    };
    let items = list.items("notices").iter().map(|notice| Item {
        key: notice.text("id").to_owned(),
        text: notice_text(notice),
        tag: age(notice.int("at")),
        tone: if notice.text("category") == "alert" { Tone::Bad } else { Tone::Waiting },
    });
    Ok(Event::List(Tab::Notices, items.collect()))
}

fn notice_text(notice: &Value) -> String {
    let from = notice.get("from").map(|from| clean(from.text("name"))).unwrap_or_default();
    let line = clean(notice.maybe("line").unwrap_or(notice.text("category")));
    if from.is_empty() { line } else { format!("{from}: {line}") }
}

fn team(shell: &mut Shell) -> Result<Event, Failure> {
    let info = shell.call("team.info", object([]))?;
    let mut items: Vec<Item> = info
        .items("members")
        .iter()
        .map(|member| Item {
            key: format!("{}@{}", member.text("person"), member.text("label")),
            text: clean(&format!("{}@{}", member.text("person"), member.text("label"))),
            tag: if member.flag("self") { "this".to_owned() } else { member.text("role").to_owned() },
            tone: Tone::Plain,
        })
        .collect();
    items.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(Event::List(Tab::Team, items))
}

fn short(state: &str) -> String {
    state.trim_start_matches("TASK_STATE_").to_ascii_lowercase()
}

/// The right-hand side of an item.
fn open(shell: &mut Shell, tab: Tab, key: &str) -> Result<Vec<Event>, Failure> {
    let (lines, seq) = match tab {
        Tab::Chats => chat(shell, key)?,
        Tab::Agents => (agent(shell, key)?, 0),
        Tab::Requests => (request(shell, key)?, 0),
        Tab::Tasks => (task(shell, key)?, 0),
        Tab::Notices => (notice(shell, key)?, 0),
        Tab::Team => (member(shell, key)?, 0),
    };
    Ok(vec![Event::Detail(tab, Detail { key: key.to_owned(), lines, seq })])
}

fn clock(at: Option<u64>) -> String {
    at.map(time_text).and_then(|text| text.get(11..16).map(str::to_owned)).unwrap_or_default()
}

fn chat(shell: &mut Shell, room: &str) -> Result<(Vec<Row>, u64), Failure> {
    let page = shell.call("conv.read", object([("conversation", string(room)), ("limit", number(PAGE))]))?;
    let mut lines = Vec::new();
    if page.flag("more") {
        lines.push(Row::own(Tone::Faint, "Earlier lines are not shown."));
    }
    let mut seq = 0;
    for line in page.items("lines") {
        seq = seq.max(line.int("seq").unwrap_or_default());
        let (mark, tone) = match line.maybe("state") {
            Some("sent") => ("·", Tone::Waiting),
            Some("delivered") => ("✓", Tone::Plain),
            Some("held") => ("?", Tone::Waiting),
            Some("refused") => ("✗", Tone::Bad),
            _ => (" ", Tone::Plain),
        };
        let who = match line.maybe("agent") {
            Some(agent) => format!("{}/{agent}", line.text("person")),
            None => line.text("person").to_owned(),
        };
        let lead = format!("{} {mark} {}: ", clock(line.int("at")), clean(&who));
        lines.push(Row::said(tone, lead, line.text("text")));
    }
    Ok((lines, seq))
}

fn agent(shell: &mut Shell, name: &str) -> Result<Vec<Row>, Failure> {
    let list = shell.call("agents.read", object([("agent", string(name))]))?;
    let mut lines = Vec::new();
    for conversation in list.items("conversations").iter().take(10) {
        let with = conversation.text("conversation");
        lines.push(Row::own(Tone::Strong, clean(with.strip_prefix("agent:").unwrap_or(with))));
        let params = [("agent", string(name)), ("conversation", string(with)), ("limit", number(10))];
        let page = shell.call("agents.read", object(params))?;
        for entry in page.items("entries") {
            let arrow = if entry.text("direction") == "out" { "→" } else { "←" };
            let state = entry.maybe("state").map(short).or_else(|| entry.maybe("stage").map(str::to_owned));
            let lead = format!(
                "{} {arrow} {} {}: ",
                clock(entry.int("at")),
                entry.text("type"),
                state.unwrap_or_default()
            );
            lines.push(Row::said(Tone::Plain, lead, entry.maybe("preview").unwrap_or(entry.text("id"))));
        }
        lines.push(Row::own(Tone::Plain, ""));
    }
    if lines.is_empty() {
        lines.push(Row::own(Tone::Faint, "No traffic yet."));
    }
    Ok(lines)
}

fn request(shell: &mut Shell, id: &str) -> Result<Vec<Row>, Failure> {
    let list = shell.call("request.list", object([]))?;
    let Some(ask) = list.items("asks").iter().find(|ask| ask.text("id") == id) else { return Ok(Vec::new()) };
    Ok(vec![
        Row::own(Tone::Strong, format!("{} from {}", ask.text("kind"), clean(ask.text("address")))),
        Row::own(Tone::Plain, format!("for your agent {}", clean(ask.text("session")))),
        Row::own(Tone::Faint, format!("expires {}", ask.int("exp").map(time_text).unwrap_or_default())),
        Row::own(Tone::Plain, ""),
        Row::said(Tone::Plain, "", ask.text("preview")),
        Row::own(Tone::Plain, ""),
        Row::own(Tone::Faint, "It does not run before you answer."),
    ])
}

fn task(shell: &mut Shell, id: &str) -> Result<Vec<Row>, Failure> {
    // A task of another agent of the person is that agent's to read in full.
    let task = match shell.call_keyed("task.get", [("taskId", string(id))]) {
        Ok(result) => result.get("task").cloned().unwrap_or(Value::Null),
        Err(failure) if failure.code == "not_found" => {
            return Ok(vec![
                Row::own(Tone::Strong, id),
                Row::own(
                    Tone::Faint,
                    "A task of one of your agents; the Agents list shows its conversation.",
                ),
            ]);
        }
        Err(failure) => return Err(failure),
    };
    let mut lines = vec![
        Row::own(Tone::Strong, format!("{} {}", short(task.text("state")), id)),
        Row::own(Tone::Plain, format!("{} with {}", task.text("role"), crate::cli::peer(task.get("peer")))),
        Row::own(Tone::Plain, ""),
    ];
    let mut say = |head: Row, parts: &[Value]| {
        lines.push(head);
        let said = crate::cli::parts_said(parts);
        lines.extend(said.into_iter().map(|(lead, text)| Row::said(Tone::Plain, lead, text)));
    };
    let head = |who, at: Option<u64>| Row::own(Tone::Faint, format!("{} {who}", clock(at)));
    for entry in task.items("history") {
        let parts = entry.get("message").map(|message| message.items("parts")).unwrap_or_default();
        say(head("requester", entry.int("at")), parts);
    }
    if let Some(status) = task.get("status").filter(|status| !status.items("message").is_empty()) {
        say(head("executor", status.int("at")), status.items("message"));
    }
    for artifact in task.items("artifacts") {
        say(Row::said(Tone::Faint, "artifact ", artifact.text("name")), artifact.items("parts"));
    }
    Ok(lines)
}

fn notice(shell: &mut Shell, id: &str) -> Result<Vec<Row>, Failure> {
    let list = shell.call("notice.list", object([("lines", Value::Bool(true))]))?;
    let Some(notice) = list.items("notices").iter().find(|notice| notice.text("id") == id) else {
        return Ok(Vec::new());
    };
    let mut lines = vec![
        Row::own(Tone::Strong, notice.text("category")),
        Row::own(Tone::Faint, notice.int("at").map(time_text).unwrap_or_default()),
        Row::said(Tone::Plain, "", notice_text(notice)),
    ];
    if let Some(room) = notice.maybe("conversation") {
        lines.push(Row::own(Tone::Plain, format!("in {}", room_name(room))));
    }
    if let Some(device) = notice.get("device") {
        lines.push(Row::own(
            Tone::Waiting,
            format!("machine {}: {}", clean(device.text("label")), device.text("change")),
        ));
    }
    Ok(lines)
}

fn member(shell: &mut Shell, key: &str) -> Result<Vec<Row>, Failure> {
    let contacts = shell.call("contacts.list", object([]))?;
    let mut lines = vec![Row::own(Tone::Strong, clean(key))];
    let here = |entry: &&Value| {
        entry
            .text("address")
            .split_once('/')
            .and_then(|(person, rest)| rest.split_once('@').map(|(_, label)| format!("{person}@{label}")))
            .as_deref()
            == Some(key)
    };
    for entry in contacts.items("entries").iter().filter(here) {
        let tone = if entry.flag("online") || entry.flag("local") { Tone::Good } else { Tone::Waiting };
        let agent = clean(entry.text("agent"));
        let lead = format!("{agent} {} ({})", entry.text("state"), clean(entry.text("client")));
        lines.push(match entry.maybe("doing") {
            Some(doing) => Row::said(tone, format!("{lead} "), doing),
            None => Row::own(tone, lead),
        });
    }
    if lines.len() == 1 {
        lines.push(Row::own(Tone::Faint, "No agents are known there."));
    }
    Ok(lines)
}
