//! `send`: one message, task or line.

use super::{Agent, Context, Place, is_done, items, peer_address, short_state, word};
use crate::args::{ANY, Args};
use crate::failure::Failure;
use crate::files;
use crate::text::Object;
use messaging_proto::Code;
use messaging_proto::address::ToolAddress;
use messaging_proto::name::ChannelName;
use messaging_proto::ulid::Ulid;
use serde_json::{Value, json};

struct Input {
    text: String,
    ask: bool,
    reply_to: Option<Ulid>,
    on_behalf_of: Option<Ulid>,
    files: Vec<Value>,
    key: String,
}

pub(crate) async fn run(cx: &Context<'_>, mut args: Args) -> Result<Value, Failure> {
    let to = args.address("to")?.ok_or_else(|| Failure::invalid("to", "is missing"))?;
    let text = args.needed("text", ANY)?;
    let ask = args.flag("ask")?.unwrap_or(false);
    let reply_to = args.id("replyTo")?;
    let on_behalf_of = args.id("onBehalfOf")?;
    let key = args.text("key", 1..=128)?;
    let request = args.take("request");
    let line = matches!(to, ToolAddress::Own | ToolAddress::Person(_) | ToolAddress::Channel(_));
    if ask && line {
        return Err(Failure::invalid("ask", "needs an agent in to"));
    }
    if on_behalf_of.is_some() && !ask {
        return Err(Failure::invalid("onBehalfOf", "needs ask"));
    }
    if let Some(request) = request {
        let mut request = Args::inside(request, "request")?;
        request.needed("contact", 3..=254)?;
        request.finish()?;
        if to != ToolAddress::Own {
            return Err(Failure::invalid("request", "needs to: me"));
        }
    }
    if line && args.take("files").is_some() {
        return Err(Failure::invalid("files", "need an agent in to"));
    }
    // Before any file is read: what is not allowed reads none.
    cx.allowed(&to)?;
    let files = files::parts(&mut args, cx.session.home())?;
    args.finish()?;
    let key = key.unwrap_or_else(|| call_key(&cx.call));
    let input = Input { text, ask, reply_to, on_behalf_of, files, key };
    match cx.place(to).await? {
        Place::Channel(name) => to_channel(cx, &name, input).await,
        Place::Agent(agent) => to_agent(cx, &agent, input).await,
    }
}

/// The key of a call that has none: the host's name of the call, or its hash where that is longer than a key may be. Two
/// calls never share one.
fn call_key(call: &str) -> String {
    let key = format!("tool:{call}");
    if messaging_proto::units::utf16_len(&key) <= 128 {
        return key;
    }
    format!("tool:{}", messaging_proto::hash::sha256(call.as_bytes()))
}

async fn to_channel(cx: &Context<'_>, name: &ChannelName, input: Input) -> Result<Value, Failure> {
    let mut params = json!({
        "to": format!("#{name}"), "parts": [{"text": input.text}], "idempotencyKey": input.key,
    });
    if let Some(thread) = input.reply_to {
        params["replyTo"] = json!(thread.as_str());
    }
    let sent = match cx.call("msg.send", params).await {
        Err(failure) => return Err(cx.of_channel(failure, name, input.reply_to.is_some()).await),
        Ok(sent) => sent,
    };
    Ok(json!({"results": [result(&items(&sent, "results").first().cloned().unwrap_or_default(), true)]}))
}

async fn to_agent(cx: &Context<'_>, agent: &Agent, input: Input) -> Result<Value, Failure> {
    let mut parts = vec![json!({"text": input.text})];
    parts.extend(input.files);
    let mut params = json!({
        "to": agent.address(), "parts": parts, "idempotencyKey": input.key,
        "kind": if input.ask { "task" } else { "message" },
    });
    if let Some(id) = input.reply_to {
        reply(cx, agent, &id, input.ask, &mut params).await?;
    }
    if input.ask {
        takes_tasks(cx, agent).await?;
    }
    if let Some(id) = input.on_behalf_of {
        let task = cx.task(id.as_str()).await?.filter(super::parts::is_asked);
        let task = task.ok_or_else(|| Failure::not_found("onBehalfOf is no task this agent does"))?;
        if is_done(&short_state(&task["state"])) {
            return Err(Failure::new(Code::InvalidState, "the task of onBehalfOf is finished"));
        }
        params["onBehalfOf"] = json!({"taskId": id.as_str()});
    }
    let sent = cx.call("msg.send", params).await.map_err(Failure::of_recipient)?;
    Ok(json!({"results": [result(&items(&sent, "results").first().cloned().unwrap_or_default(), false)]}))
}

/// A task to a terminal is always refused (§8.3). Of one on another machine the send itself would not tell at once, so it is
/// not sent; of one on this machine the result says it (contract ipc §3.1).
async fn takes_tasks(cx: &Context<'_>, agent: &Agent) -> Result<(), Failure> {
    let contacts = cx.session.call("contacts.list", json!({})).await?;
    let mut meant = items(&contacts, "entries").iter().filter(|entry| same_agent(agent, entry)).peekable();
    if meant.peek().is_some() && meant.all(|entry| word(entry, "client") == "cli" && entry["local"] != true) {
        return Err(Failure::new(
            Code::Refused,
            "to is a person's terminal, which takes no tasks; nothing was sent, and a message without ask would be",
        ));
    }
    Ok(())
}

/// What `replyTo` means to an agent: a message of theirs, else a task they were asked.
async fn reply(
    cx: &Context<'_>,
    agent: &Agent,
    id: &Ulid,
    ask: bool,
    params: &mut Value,
) -> Result<(), Failure> {
    let unlike = || Failure::invalid("replyTo", "is not of the agent in to");
    match cx.call("inbox.get", json!({"id": id.as_str()})).await {
        Ok(found) => {
            let item = &found["item"];
            if !same_agent(agent, &item["from"]) {
                return Err(unlike());
            }
            params["replyTo"] = json!(id.as_str());
            params["contextId"] = item["contextId"].clone();
            return Ok(());
        }
        Err(failure) if failure.is(Code::NotFound) => {}
        Err(failure) => return Err(failure),
    }
    let task = cx.task(id.as_str()).await?.filter(|task| !super::parts::is_asked(task));
    let task = task.ok_or_else(|| Failure::not_found("replyTo is no message or task of this agent"))?;
    if !same_agent(agent, &task["peer"]) {
        return Err(unlike());
    }
    if ask {
        return Err(Failure::invalid("ask", "does not go with a replyTo that is a task"));
    }
    params["taskId"] = json!(id.as_str());
    Ok(())
}

fn same_agent(agent: &Agent, peer: &Value) -> bool {
    let label = agent.label.as_ref().is_none_or(|label| label.as_str() == word(peer, "label"));
    agent.person.as_str() == word(peer, "person")
        && agent.agent.as_str() == word(peer, "agent")
        && label
        && !peer_address(peer).is_empty()
}

fn result(sent: &Value, line: bool) -> Value {
    let stage = word(sent, "stage");
    let expect = if stage == "held" { Some("on_consent") } else { sent["expect"].as_str() };
    let code = sent["code"].as_str();
    Object::new()
        .set("to", word(sent, "to"))
        .set("id", word(sent, "envelopeId"))
        .id("taskId", &sent["taskId"])
        .set("stage", stage)
        .maybe("code", code)
        .maybe("expect", expect)
        .set("note", note(stage, code, expect, line))
        .into()
}

/// What the stage does not promise (contract ipc §8.3).
fn note(stage: &str, code: Option<&str>, expect: Option<&str>, line: bool) -> String {
    match (stage, expect) {
        ("rejected", _) => format!("Not delivered: {}.", code.unwrap_or("rejected")),
        ("expired", _) => "Not delivered: expired.".to_owned(),
        _ if line => "Written to the conversation.".to_owned(),
        (_, Some("offline")) => "Queued; delivered when their machine connects.".to_owned(),
        (_, Some("kept")) => "Queued; nobody holds that agent right now.".to_owned(),
        (_, Some("wake")) => "Delivered; the agent is being woken.".to_owned(),
        (_, Some("on_read")) => "Delivered; the agent sees it when it checks its inbox.".to_owned(),
        (_, Some("next_turn")) => "Delivered; the agent sees it at its next turn.".to_owned(),
        (_, Some("next_prompt")) => "Delivered; the agent sees it when next prompted.".to_owned(),
        (_, Some("on_consent")) => "Their person must agree first.".to_owned(),
        ("delivered", _) => "Delivered; nobody knows yet when the agent sees it.".to_owned(),
        _ => "Queued; read its id to see how far it got.".to_owned(),
    }
}
