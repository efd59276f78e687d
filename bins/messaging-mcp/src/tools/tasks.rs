//! `tasks`: what was asked, both ways.

use super::{Agent, Context, Place, is_done, items, long_state, parts, word};
use crate::args::Args;
use crate::failure::Failure;
use crate::schema::{LIMIT, STATES};
use crate::text::Object;
use messaging_proto::Code;
use messaging_proto::address::ToolAddress;
use serde_json::{Value, json};

pub(crate) async fn run(cx: &Context<'_>, mut args: Args) -> Result<Value, Failure> {
    let role = args.one_of("role", &["mine", "asked"])?;
    let state = args.one_of("state", &[&STATES[..], &["open", "done"]].concat())?;
    let with = args.address("with")?;
    let limit = args.int("limit", 1..=LIMIT)?.unwrap_or(20);
    let cursor = args.text("cursor", 1..=512)?;
    args.finish()?;
    let mut params = json!({ "limit": limit });
    if let Some(role) = role {
        params["role"] = json!(if role == "mine" { "requester" } else { "executor" });
    }
    if let Some(state) = state {
        let wanted = |known: &&&str| match state {
            "open" => !is_done(known),
            "done" => is_done(known),
            one => **known == one,
        };
        params["state"] = STATES.iter().filter(wanted).map(|state| json!(long_state(state))).collect();
    }
    if let Some(with) = with {
        params["peer"] = json!(peer(cx, with).await?);
    }
    if let Some(cursor) = cursor {
        params["cursor"] = json!(cursor);
    }
    let page = cx.call("task.list", params).await?;
    let mut tasks = Vec::new();
    for task in items(&page, "tasks") {
        tasks.push(parts::task(cx, task).await?);
        cx.session.tally.seen(word(task, "taskId"));
    }
    Ok(Object::new()
        .set("tasks", tasks)
        .set("total", page["total"].clone())
        .maybe("cursor", page["nextCursor"].as_str())
        .into())
}

/// The qualified address the daemon filters by. An agent named without its machine must be on one only.
async fn peer(cx: &Context<'_>, with: ToolAddress) -> Result<String, Failure> {
    if matches!(with, ToolAddress::Channel(_) | ToolAddress::Own | ToolAddress::Person(_)) {
        return Err(Failure::invalid("with", "must be an agent"));
    }
    let Place::Agent(agent) = cx.place(with).await? else {
        return Err(Failure::invalid("with", "must be an agent"));
    };
    if agent.label.is_some() {
        return Ok(agent.address());
    }
    let contacts = cx.session.call("contacts.list", json!({})).await?;
    let of = |agent: &Agent, entry: &Value| {
        word(entry, "person") == agent.person.as_str() && word(entry, "agent") == agent.agent.as_str()
    };
    let mut found = items(&contacts, "entries")
        .iter()
        .filter(|entry| of(&agent, entry))
        .map(|entry| word(entry, "address"));
    match (found.next(), found.next()) {
        (Some(address), None) => Ok(address.to_owned()),
        (None, _) => {
            Err(Failure::new(Code::NoRecipients, "with is no agent that is known here").of_address())
        }
        _ => Err(Failure::new(Code::AmbiguousAddress, "with is an agent on several machines")),
    }
}
