//! A page of a conversation, oldest first, with opaque cursors (`§11`, "Conversations").

use super::{Agent, Context, Place, items, short_state, word};
use crate::failure::Failure;
use crate::text::{Author, Object, Source, time};
use messaging_proto::address::ToolAddress;
use messaging_proto::b64u;
use messaging_proto::name::ChannelName;
use messaging_proto::ulid::Ulid;
use serde_json::{Value, json};

/// Where a page begins.
pub(crate) struct Page {
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
    pub(crate) limit: Option<u64>,
    pub(crate) thread: Option<Ulid>,
}

impl Page {
    pub(crate) fn is_default(&self) -> bool {
        self.before.is_none() && self.after.is_none() && self.limit.is_none() && self.thread.is_none()
    }

    /// Puts the page into the params of `conv.read`. `fits` says whether a cursor is of this kind of conversation.
    fn into_params(self, mut params: Value, fits: fn(&Value) -> bool) -> Result<Value, Failure> {
        if self.before.is_some() && self.after.is_some() {
            return Err(Failure::invalid("before", "and after exclude each other"));
        }
        params["limit"] = json!(self.limit.unwrap_or(20));
        for (name, cursor) in [("before", self.before), ("after", self.after)] {
            let Some(cursor) = cursor else { continue };
            let read = b64u::decode(&cursor).and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
            let read = read.filter(fits);
            params[name] = read.ok_or_else(|| Failure::invalid(name, "is no cursor of this conversation"))?;
        }
        if let Some(thread) = self.thread {
            params["thread"] = json!(thread.as_str());
        }
        Ok(params)
    }
}

/// A cursor. Its numbers never reach a reader as numbers (user report 39).
fn cursor(place: &Value) -> String {
    b64u::encode(place.to_string().as_bytes())
}

pub(crate) async fn read(cx: &Context<'_>, with: ToolAddress, page: Page) -> Result<Value, Failure> {
    cx.allowed(&with)?;
    if page.thread.is_some() && !matches!(with, ToolAddress::Channel(_)) {
        return Err(Failure::invalid("thread", "needs a channel in with"));
    }
    match cx.place(with).await? {
        Place::Channel(name) => lines(cx, &name, page).await,
        Place::Agent(agent) => mail(cx, &agent, page).await,
    }
}

async fn lines(cx: &Context<'_>, name: &ChannelName, page: Page) -> Result<Value, Failure> {
    let threaded = page.thread.is_some();
    let forward = page.after.is_some();
    let params = page.into_params(json!({"conversation": format!("channel:{name}")}), Value::is_u64)?;
    let read = match cx.session.call("conv.read", params).await {
        Err(failure) => return Err(cx.of_channel(failure, name, threaded).await),
        Ok(read) => read,
    };
    let lines = items(&read, "lines");
    let entries: Vec<Value> = lines.iter().map(line).collect();
    Ok(paged(&format!("#{name}"), entries, &read, forward, lines.first(), lines.last(), |line| {
        line["seq"].clone()
    }))
}

/// One line of a channel.
fn line(line: &Value) -> Value {
    let id = word(line, "id");
    let from = author_of(line);
    let author = Author::of(line["out"] == true);
    let source = Source { author, from: &from, id: Some(id) };
    Object::new()
        .set("id", id)
        .set("at", time(&line["at"]))
        .set("author", author.as_str())
        .set("text", source.show("line", word(line, "text")))
        .set("from", from.as_str())
        .set("type", "line")
        .maybe("state", line["state"].as_str())
        .set("direction", if line["out"] == true { "out" } else { "in" })
        .maybe("notice", (line["notice"] == true).then_some(true))
        .into()
}

/// Who wrote a line: a person, or one of their agents.
pub(crate) fn author_of(line: &Value) -> String {
    let person = word(line, "person");
    match (line["agent"].as_str(), line["label"].as_str()) {
        (Some(agent), Some(label)) => format!("{person}/{agent}@{label}"),
        (Some(agent), None) => format!("{person}/{agent}"),
        _ => person.to_owned(),
    }
}

async fn mail(cx: &Context<'_>, agent: &Agent, page: Page) -> Result<Value, Failure> {
    let forward = page.after.is_some();
    let with = format!("{}/{}", agent.person, agent.agent);
    let fits = |cursor: &Value| cursor["at"].is_u64() && cursor["id"].is_string();
    let params = page.into_params(json!({"conversation": format!("agent:{with}")}), fits)?;
    let read = cx.call("conv.read", params).await.map_err(Failure::of_address)?;
    let me = cx.session.ready(true).await?.me.to_string();
    let entries = items(&read, "entries");
    let shown: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let out = entry["direction"] == "out";
            let (id, kind) = (word(entry, "id"), word(entry, "type"));
            let author = Author::of(out);
            let from = if out { me.as_str() } else { with.as_str() };
            let source = Source { author, from: &with, id: Some(id) };
            let state = entry["state"].as_str().map(|_| short_state(&entry["state"]));
            Object::new()
                .set("id", id)
                .set("at", time(&entry["at"]))
                .set("from", from)
                .set("author", author.as_str())
                .maybe("text", entry["preview"].as_str().map(|text| source.show(kind, text)))
                .set("type", kind)
                .maybe("state", state)
                .maybe("stage", entry["stage"].as_str())
                .set("direction", if out { "out" } else { "in" })
                .into()
        })
        .collect();
    Ok(paged(
        &with,
        shown,
        &read,
        forward,
        entries.first(),
        entries.last(),
        |entry| json!({"at": entry["at"], "id": entry["id"]}),
    ))
}

/// The page and its cursors: `before` where older entries may be, `after` to go on from its end.
fn paged(
    with: &str,
    entries: Vec<Value>,
    read: &Value,
    forward: bool,
    first: Option<&Value>,
    last: Option<&Value>,
    place: fn(&Value) -> Value,
) -> Value {
    let older = forward || read["more"] == true;
    Object::new()
        .set("kind", "conversation")
        .set("with", with)
        .set("entries", entries)
        .maybe("before", first.filter(|_| older).map(|entry| cursor(&place(entry))))
        .maybe("after", last.map(|entry| cursor(&place(entry))))
        .into()
}
