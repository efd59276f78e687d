//! `search`: lines in the channels that were opened to this agent.

use super::{Context, conversation, items, word};
use crate::args::Args;
use crate::failure::Failure;
use crate::schema::LIMIT;
use crate::text::{Author, Source, time};
use messaging_proto::Code;
use messaging_proto::address::ToolAddress;
use messaging_proto::name::ChannelName;
use serde_json::{Value, json};

pub(crate) async fn run(cx: &Context<'_>, mut args: Args) -> Result<Value, Failure> {
    let query = args.needed("query", 1..=200)?;
    let with = args.address("with")?;
    let limit = args.int("limit", 1..=LIMIT)?.unwrap_or(10);
    args.finish()?;
    let named = with.is_some();
    let channels: Vec<&ChannelName> = match &with {
        Some(ToolAddress::Agent { .. } | ToolAddress::OwnAgent { .. }) => {
            return Err(Failure::invalid("with", "must be a channel: mail between agents is not searched"));
        }
        Some(address) => {
            cx.allowed(address)?;
            let name = |name: &&ChannelName| *address == ToolAddress::Channel((*name).clone());
            cx.channels.iter().filter(name).collect()
        }
        None => cx.channels.iter().collect(),
    };
    if channels.is_empty() {
        return Err(Failure::forbidden(
            "no channel was opened to this agent: your person starts messaging-mcp with --channel and its name",
        ));
    }
    let mut hits = Vec::new();
    for name in channels {
        let params = json!({"query": query, "conversation": format!("channel:{name}"), "limit": limit});
        match cx.session.call("search", params).await {
            Ok(found) => hits.extend(items(&found, "hits").to_vec()),
            // One of several channels its person is not in, or no longer.
            Err(failure) if !named && failure.is(Code::NotFound) => {}
            Err(failure) => return Err(failure.of_address()),
        }
    }
    hits.sort_by_key(|hit| std::cmp::Reverse(hit["at"].as_u64()));
    let hits: Vec<Value> = hits.iter().take(usize::try_from(limit).unwrap_or(usize::MAX)).map(show).collect();
    Ok(json!({ "hits": hits }))
}

fn show(hit: &Value) -> Value {
    let id = word(hit, "id");
    let from = conversation::author_of(hit);
    let name = word(hit, "conversation").trim_start_matches("channel:");
    // §11 "Authors": this side's own lines are neutralised, everybody else's fenced.
    let source = Source { author: Author::of(hit["out"] == true), from: &from, id: Some(id) };
    let text = source.show("line", word(hit, "text"));
    json!({"with": format!("#{name}"), "id": id, "at": time(&hit["at"]), "from": from, "text": text})
}
