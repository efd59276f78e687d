//! `contacts`: who there is, and what reaches them.

use super::{Context, items, word};
use crate::args::Args;
use crate::failure::Failure;
use crate::session::Me;
use crate::text::{Object, Source, time};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(crate) async fn run(cx: &Context<'_>, mut args: Args) -> Result<Value, Failure> {
    let query = args.text("query", 1..=100)?.map(|query| query.to_lowercase());
    let asking = args.one_of("can", &["ask"])?.is_some();
    args.finish()?;
    let me = cx.session.ready(true).await?.me;
    let contacts = cx.session.call("contacts.list", json!({})).await?;
    let status = cx.session.call("daemon.status", json!({})).await?;
    let matches = |address: &str| query.as_ref().is_none_or(|query| address.to_lowercase().contains(query));

    let mut people: BTreeMap<&str, Person<'_>> = BTreeMap::new();
    for entry in items(&contacts, "entries") {
        people.entry(word(entry, "person")).or_default().entries.push(entry);
    }
    for reach in items(&contacts, "reach") {
        people.entry(word(reach, "person")).or_default().reach = Some(reach);
    }
    for room in items(&contacts, "conversations") {
        if word(room, "kind") == "dm" && !word(room, "person").is_empty() {
            people.entry(word(room, "person")).or_default();
        }
    }
    let people: Vec<Value> =
        people.into_iter().filter_map(|(name, person)| person.show(name, &me, &matches, asking)).collect();
    let channels: Vec<Value> = items(&contacts, "conversations")
        .iter()
        .filter_map(|room| Some((room, room["conversation"].as_str()?.strip_prefix("channel:")?)))
        // §11: the channels that `contacts.list` names. Which of them are open is for send, read and search to say.
        .filter(|(_, name)| !asking && matches(&format!("#{name}")))
        .map(|(room, name)| {
            let unread = room["unread"].as_u64().unwrap_or(0);
            json!({"address": format!("#{name}"), "unread": unread, "can": "default", "presence": "unknown"})
        })
        .collect();
    let connected = status["relay"]["state"] == "connected";
    Ok(json!({
        "me": {
            "address": me.to_string(), "person": me.person.as_str(), "agent": me.session.as_str(),
            "device": me.label.as_str(), "relay": if connected { "connected" } else { "offline" },
        },
        "people": people,
        "channels": channels,
    }))
}

#[derive(Default)]
struct Person<'a> {
    entries: Vec<&'a Value>,
    reach: Option<&'a Value>,
}

impl Person<'_> {
    fn show(&self, name: &str, me: &Me, matches: &impl Fn(&str) -> bool, asking: bool) -> Option<Value> {
        let can = self.can();
        let whole = matches(name);
        let agents: Vec<Value> = self
            .entries
            .iter()
            .filter(|entry| whole || matches(word(entry, "address")))
            .map(|entry| agent(entry, &can))
            .filter(|agent| !asking || agent["can"]["ask"] != "no")
            .collect();
        let own = name == me.person.as_str();
        let shown = if asking { can["ask"] != "no" && (whole || !agents.is_empty()) } else { whole };
        if !shown && agents.is_empty() {
            return None;
        }
        let online = own || self.entries.iter().any(|entry| entry["online"] == true);
        let changed = self.reach.map(|reach| &reach["devicesChangedAt"]).filter(|at| at.is_u64()).map(time);
        Some(
            Object::new()
                .set("address", name)
                .set("org", "same")
                .set("presence", if online { "online" } else { "offline" })
                .set("can", can)
                .maybe("devicesChanged", changed)
                .set("agents", agents)
                .into(),
        )
    }

    /// What their person lets this agent do. A chat is never open to it.
    fn can(&self) -> Value {
        let reach = self.reach.unwrap_or(&Value::Null);
        let ask = match word(&reach["can"], "ask") {
            "" => "open",
            known => known,
        };
        let until = Some(&reach["can"]["trustedUntil"]).filter(|at| at.is_u64()).map(time);
        Object::new()
            .set("chat", false)
            .set("ask", ask)
            .set("source", if word(reach, "source") == "card" { "card" } else { "default" })
            .maybe("trustedUntil", until)
            .into()
    }
}

fn agent(entry: &Value, of_person: &Value) -> Value {
    let address = word(entry, "address");
    let mut can = of_person.clone();
    // §8.3: a terminal takes no task.
    if word(entry, "client") == "cli" {
        can["ask"] = json!("no");
    }
    let said = |name: &str| entry[name].as_str().map(|text| Source::peer(address, None).show(name, text));
    Object::new()
        .set("address", address)
        .set("state", word(entry, "state"))
        .set("presence", if entry["online"] == true { "online" } else { "offline" })
        .maybe("expect", entry["expect"].as_str())
        .set("can", can)
        .maybe("repo", said("repo"))
        .maybe("branch", said("branch"))
        .maybe("doing", said("doing"))
        .into()
}
