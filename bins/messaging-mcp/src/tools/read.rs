//! `read`: one item by its id, or a page of a conversation.

use super::{Context, conversation, items, parts, peer_address, word};
use crate::args::Args;
use crate::failure::Failure;
use crate::schema::LIMIT;
use crate::text::{Author, Object, Source, chain, time};
use messaging_proto::Code;
use serde_json::{Value, json};

pub(crate) async fn run(cx: &Context<'_>, mut args: Args) -> Result<Value, Failure> {
    let id = args.id("id")?;
    let with = args.address("with")?;
    let page = conversation::Page {
        before: args.text("before", 1..=512)?,
        after: args.text("after", 1..=512)?,
        limit: args.int("limit", 1..=LIMIT)?,
        thread: args.id("thread")?,
    };
    args.finish()?;
    match (id, with) {
        (Some(id), None) if page.is_default() => item(cx, id.as_str()).await,
        (Some(_), None) => {
            Err(Failure::invalid("with", "is missing: before, after, limit and thread need it"))
        }
        (None, Some(with)) => conversation::read(cx, with, page).await,
        _ => Err(Failure::invalid("id", "or with is needed, and not both")),
    }
}

async fn item(cx: &Context<'_>, id: &str) -> Result<Value, Failure> {
    let by_id = json!({ "id": id });
    // Looked at first: `item.read` marks what it finds, and finds sent mail too.
    match cx.call("inbox.get", by_id.clone()).await {
        Ok(_) => return message(cx, &cx.call("item.read", by_id).await?).await,
        Err(failure) if failure.is(Code::NotFound) => {}
        Err(failure) => return Err(failure),
    }
    if let Some(task) = cx.task(id).await? {
        cx.session.tally.seen(id);
        return record(cx, &task).await;
    }
    match cx.call("item.read", by_id).await {
        Ok(sent) => Ok(delivery(&sent)),
        Err(failure) if failure.is(Code::NotFound) => {
            Err(Failure::not_found("no message, task or sent message has this id"))
        }
        Err(failure) => Err(failure),
    }
}

async fn message(cx: &Context<'_>, read: &Value) -> Result<Value, Failure> {
    let item = &read["item"];
    let id = word(item, "id");
    let from = peer_address(&item["from"]);
    Ok(Object::new()
        .set("kind", "message")
        .set("id", id)
        .set("from", from)
        .set("at", time(&item["at"]))
        .set("parts", parts::show(items(&read["message"], "parts"), Source::peer(from, Some(id)), id))
        .id("taskId", &item["taskId"])
        .id("replyTo", &item["replyTo"])
        .set("consent", cx.consent(&item["consent"], &item["from"]).await?)
        .maybe("chain", chain(&item["chain"]))
        .into())
}

async fn record(cx: &Context<'_>, task: &Value) -> Result<Value, Failure> {
    let id = word(task, "taskId");
    let asked = parts::is_asked(task);
    let peer = peer_address(&task["peer"]);
    // §11 "Authors": every entry of a record's history is the requester's, whatever its A2A role says.
    let source = Source { author: Author::of(!asked), from: peer, id: Some(id) };
    let entries = items(task, "history");
    let history: Vec<Value> = entries
        .iter()
        .map(|entry| {
            json!({
                "from": "requester", "author": source.author.as_str(), "at": time(&entry["at"]),
                "parts": parts::show(items(&entry["message"], "parts"), source, word(entry, "id")),
            })
        })
        .collect();
    let request = entries.first().map(|entry| items(&entry["message"], "parts")).unwrap_or_default();
    let request_id = entries.first().map(|entry| word(entry, "id")).unwrap_or_default();
    let follow_ups = task.get("followUps").map(|_| {
        items(task, "followUps")
            .iter()
            .map(|up| json!({"id": up["envelopeId"], "at": time(&up["at"]), "stage": up["stage"]}))
            .collect::<Vec<_>>()
    });
    let mut history = history;
    // The executor's full status: a list shows its start only.
    if let Some(said) = task["status"].get("message").and_then(Value::as_array) {
        let status = Source { author: Author::of(asked), ..source };
        history.push(json!({
            "from": "executor", "author": status.author.as_str(), "at": time(&task["status"]["at"]),
            "parts": parts::show(said, status, id),
        }));
    }
    let from = if asked { peer.to_owned() } else { cx.session.ready(true).await?.me.to_string() };
    Ok(Object::new()
        .set("kind", "task")
        .set("task", parts::task(cx, task).await?)
        .set("from", from)
        .set("parts", parts::show(request, source, request_id))
        .set("history", history)
        .set("artifacts", parts::artifacts(task))
        .maybe("followUps", follow_ups)
        .maybe("chain", chain(&task["chain"]))
        .into())
}

fn delivery(sent: &Value) -> Value {
    let history: Vec<Value> = items(sent, "history")
        .iter()
        .map(|step| {
            Object::new()
                .set("stage", word(step, "stage"))
                .set("at", time(&step["at"]))
                .maybe("code", step["code"].as_str())
                .into()
        })
        .collect();
    json!({
        "kind": "delivery", "id": sent["envelopeId"], "to": sent["to"], "stage": sent["stage"], "history": history,
    })
}
