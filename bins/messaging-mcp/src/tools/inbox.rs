//! `inbox`: what was sent to this agent.

use super::{Context, items, peer_address, word};
use crate::args::Args;
use crate::failure::Failure;
use crate::schema::LIMIT;
use crate::text::{Object, Source, chain, time};
use serde_json::{Value, json};

pub(crate) async fn run(cx: &Context<'_>, mut args: Args) -> Result<Value, Failure> {
    let unread = args.flag("unread")?.unwrap_or(true);
    let limit = args.int("limit", 1..=LIMIT)?.unwrap_or(20);
    let cursor = args.text("cursor", 1..=512)?;
    args.finish()?;
    let mut params = json!({"unreadOnly": unread, "limit": limit});
    if let Some(cursor) = cursor {
        params["cursor"] = json!(cursor);
    }
    let page = cx.call("inbox.list", params).await?;
    let mut shown = Vec::new();
    for item in items(&page, "items") {
        shown.push(preview(cx, item).await?);
    }
    hand_over(cx, items(&page, "items")).await;
    Ok(Object::new()
        .set("items", shown)
        .set("unread", page["unread"].clone())
        .maybe("cursor", page["nextCursor"].as_str())
        .into())
}

async fn preview(cx: &Context<'_>, item: &Value) -> Result<Value, Failure> {
    let (id, kind) = (word(item, "id"), word(item, "kind"));
    let from = peer_address(&item["from"]);
    Ok(Object::new()
        .set("id", id)
        .set("kind", kind)
        .set("from", from)
        .set("preview", Source::peer(from, Some(id)).show(kind, word(item, "preview")))
        .set("at", time(&item["at"]))
        .id("taskId", &item["taskId"])
        .id("replyTo", &item["replyTo"])
        .set("consent", cx.consent(&item["consent"], &item["from"]).await?)
        .maybe("chain", chain(&item["chain"]))
        .into())
}

/// §8.2 "Showing an item": previews that are shown are acknowledged. A failure only means that the sender learns it later.
async fn hand_over(cx: &Context<'_>, shown: &[Value]) {
    let ids: Vec<&str> =
        shown.iter().filter(|item| word(item, "stage") == "delivered").map(|item| word(item, "id")).collect();
    if !ids.is_empty() {
        let _ = cx.call("inbox.ack", json!({"ids": ids, "stage": "handed_to_agent"})).await;
    }
}
