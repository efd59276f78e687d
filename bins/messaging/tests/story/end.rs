//! What is left of the story on every machine.

use crate::actor::Actor;
use crate::script::{MACHINES, Story};
use crate::world::PATIENCE;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long nothing may change before what is there counts as the end: longer than a link's first waits.
const QUIET: Duration = Duration::from_millis(600);

impl Story {
    /// The end, once it is as expected and stays so; or whatever it is when patience ends.
    pub(crate) fn settled_end(&self, expected: &Value) -> Value {
        let give_up = Instant::now() + 2 * PATIENCE;
        loop {
            let end = self.end();
            if end == *expected {
                std::thread::sleep(QUIET);
                let still = self.end();
                if still == end {
                    return end;
                }
            }
            if Instant::now() > give_up {
                return end;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn end(&self) -> Value {
        let mut end = Map::new();
        for (home, person, label) in MACHINES {
            end.insert(format!("{person}@{label}"), machine(self.at(home)));
        }
        let heads: BTreeSet<_> =
            ["laptop", "tower", "desk", "nas"].map(|home| head(self.at(home))).into_iter().collect();
        end.insert("rosters".to_owned(), json!(heads.len()));
        for (name, actor) in self.sessions() {
            end.insert(name.to_owned(), session(actor, &self.sent_by(name)));
        }
        end.into()
    }
}

/// The roster's head. How long the roster is depends on what was tried twice.
fn head(actor: &Actor) -> String {
    actor.call("team.info", &json!({}), &[])["head"].to_string()
}

fn machine(actor: &Actor) -> Value {
    let status = actor.call("device.status", &json!({}), &[]);
    let mut machine = Map::new();
    machine.insert("binding".to_owned(), status["binding"].clone());
    machine.insert("alarm".to_owned(), status["alarm"].clone());
    if status["binding"] != "bound" {
        return machine.into();
    }
    let status = actor.call("daemon.status", &json!({}), &[]);
    machine.insert("waiting".to_owned(), status["outbox"]["waiting"].clone());
    machine.insert("divergence".to_owned(), status["divergence"].clone());
    let info = actor.call("team.info", &json!({}), &[]);
    let members = texts(&info["members"], |member| {
        format!("{}@{} ({})", text(&member["person"]), text(&member["label"]), text(&member["role"]))
    });
    machine.insert("members".to_owned(), sorted(members));
    machine.insert("rooms".to_owned(), rooms(actor));
    let grants = actor.call("grant.list", &json!({}), &[]);
    let grants = texts(&grants["grants"], |grant| {
        format!("{}: {}", text(&grant["subject"]["person"]), text(&grant["ask"]))
    });
    machine.insert("grants".to_owned(), sorted(grants));
    let requests = actor.call("request.list", &json!({}), &[]);
    machine.insert("asks".to_owned(), json!(requests["asks"].as_array().unwrap().len()));
    let notices = actor.call("notice.list", &json!({"limit": 500, "lines": true}), &[]);
    let told = texts(&notices["notices"], |notice| {
        let (what, device) = (text(&notice["line"]), text(&notice["device"]["label"]));
        let from = text(&notice["from"]["name"]);
        format!("{}: {from} {what} {device}", text(&notice["category"]))
    });
    machine.insert("notices".to_owned(), sorted(told));
    machine.into()
}

/// Every chat of a machine: who said what where, and how far it came.
fn rooms(actor: &Actor) -> Value {
    let mut rooms = BTreeMap::new();
    let listed = actor.call("conv.list", &json!({}), &[]);
    for room in listed["conversations"].as_array().unwrap() {
        let name = room["conversation"].as_str().unwrap();
        let read = actor.call("conv.read", &json!({"conversation": name, "limit": 100}), &["not_found"]);
        let lines = texts(&read["lines"], |line| {
            let who = format!("{}@{}", text(&line["person"]), text(&line["label"]));
            let flag = |name: &str| if line[name] == true { format!(" ({name})") } else { String::new() };
            let state = line["state"].as_str().map(|state| format!(" ({state})")).unwrap_or_default();
            format!("{who}: {}{}{}{state}", text(&line["text"]), flag("out"), flag("notice"))
        });
        let room = json!({"lines": lines, "persons": room["persons"], "unread": room["unread"]});
        rooms.insert(name.to_owned(), room);
    }
    json!(rooms)
}

/// A session's inbox in the order it came, its tasks, and how far what it sent came.
fn session(actor: &Actor, sent: &[(String, String)]) -> Value {
    let inbox = actor.call("inbox.list", &json!({"limit": 200}), &[]);
    let mut items = texts(&inbox["items"], |item| {
        format!(
            "{} of {}: {} ({}, {})",
            text(&item["kind"]),
            text(&item["from"]["address"]),
            text(&item["preview"]),
            text(&item["consent"]),
            text(&item["stage"])
        )
    });
    items.reverse();
    let listed = actor.call("task.list", &json!({"limit": 100}), &[]);
    let tasks: Vec<_> = listed["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| {
            let got = actor.call("task.get", &json!({"taskId": task["taskId"]}), &[]);
            let task = &got["task"];
            json!([
                task["title"],
                task["role"],
                task["state"],
                task["status"]["message"][0]["text"],
                task["chain"]["addresses"],
                task["history"].as_array().unwrap().len(),
                task["artifacts"].as_array().unwrap().len(),
            ])
        })
        .collect();
    let sent: BTreeMap<_, _> = sent
        .iter()
        .map(|(said, id)| {
            let item = actor.call("item.read", &json!({"id": id}), &[]);
            (said.clone(), item["stage"].clone())
        })
        .collect();
    json!({"inbox": items, "tasks": sorted(tasks), "sent": sent})
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(values: &Value, text: impl Fn(&Value) -> String) -> Vec<Value> {
    values.as_array().into_iter().flatten().map(|value| json!(text(value))).collect()
}

fn sorted(mut values: Vec<Value>) -> Value {
    values.sort_by_key(Value::to_string);
    values.into()
}
