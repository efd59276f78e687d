//! The story, and what is left of it on every machine.

use crate::actor::Actor;
use crate::world::World;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Home, person and label of every machine. The first founds the team.
pub(crate) const MACHINES: [(&str, &str, &str); 5] = [
    ("laptop", "alice", "laptop"),
    ("tower", "alice", "tower"),
    ("desk", "bob", "desk"),
    ("phone", "bob", "phone"),
    ("nas", "carol", "nas"),
];

pub(crate) struct Story {
    pub(crate) world: Arc<Mutex<World>>,
    people: BTreeMap<&'static str, Actor>,
    planner: Actor,
    builder: Actor,
    tester: Actor,
}

impl Story {
    /// The team, before anything happens.
    pub(crate) fn new() -> Self {
        let mut world = World::new();
        let relay = world.relay_url();
        for (home, ..) in MACHINES {
            world.start_daemon(home);
        }
        let admin = world.admin("laptop");
        admin
            .call(
                "team.create",
                json!({"relay": relay, "name": "Blue", "person": "alice", "label": "laptop"}),
            )
            .unwrap();
        for (home, person, label) in &MACHINES[1..] {
            let invite = admin.call("team.invite", json!({"person": person})).unwrap();
            let join = json!({"ticket": invite["ticket"], "label": label});
            world.admin(home).call("team.join", join).unwrap();
        }
        let people = MACHINES.iter().map(|(home, ..)| (*home, Actor::person(world.home(home)))).collect();
        let story = Self {
            people,
            planner: Actor::session(world.home("laptop"), "planner"),
            builder: Actor::session(world.home("desk"), "builder"),
            tester: Actor::session(world.home("nas"), "tester"),
            world: Arc::new(Mutex::new(world)),
        };
        // Everybody has the whole roster, and knows whom they will write to.
        for actor in story.people.values() {
            actor.until("team.info", &json!({}), &[], |info| info["members"].as_array().unwrap().len() == 5);
        }
        for actor in [&story.planner, &story.builder, &story.tester] {
            actor.call("inbox.list", &json!({}), &[]);
        }
        story
    }

    fn at(&self, home: &str) -> &Actor {
        &self.people[home]
    }

    pub(crate) fn tell(&self) {
        self.requests();
        self.tasks();
        self.lines();
        self.channel();
        self.machines();
        self.away();
    }

    /// Sends mail or asks for a task. The envelope's and the task's id.
    fn send(from: &Actor, to: &str, text: &str, more: &Value) -> (String, String) {
        let mut params = json!({"to": to, "parts": [{"text": text}], "idempotencyKey": text});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        let sent = from.call("msg.send", &params, &[]);
        let result = &sent["results"][0];
        assert!(result["stage"] != "rejected", "{result}");
        let text = |name: &str| result[name].as_str().unwrap_or_default().to_owned();
        (text("envelopeId"), text("taskId"))
    }

    /// A request that is let through, one that is declined, and then no more questions.
    fn requests(&self) {
        for (text, answer, stage) in
            [("first question", "once", "read"), ("second question", "decline", "rejected")]
        {
            let (id, _) = Self::send(&self.planner, "bob/builder@desk", text, &json!({}));
            self.at("desk").until("request.list", &json!({}), &[], |listed| {
                listed["asks"].as_array().unwrap().iter().any(|ask| ask["id"] == id.as_str())
            });
            self.at("desk").call("request.answer", &json!({"id": id, "answer": answer}), &["not_found"]);
            if answer == "once" {
                self.builder.call("item.read", &json!({"id": id}), &[]);
            }
            self.planner.until("item.read", &json!({"id": id}), &[], |sent| sent["stage"] == stage);
        }
        for (home, persons) in
            [("laptop", ["bob", "carol"]), ("desk", ["alice", "carol"]), ("nas", ["alice", "bob"])]
        {
            for person in persons {
                let open = json!({"subject": {"person": person}, "ask": "open"});
                self.at(home).call("grant.set", &open, &[]);
            }
        }
        // The person's other machine has it, too.
        for home in ["phone", "tower"] {
            let all = |listed: &Value| listed["grants"].as_array().unwrap().len() == 2;
            self.at(home).until("grant.list", &json!({}), &[], all);
        }
        let (id, _) = Self::send(&self.planner, "bob/builder@desk", "third question", &json!({}));
        self.builder.until("item.read", &json!({"id": id}), &[], |_| true);
        let reply = json!({"replyTo": id});
        let (reply, _) = Self::send(&self.builder, "alice/planner@laptop", "an answer", &reply);
        self.planner.until("item.read", &json!({"id": reply}), &[], |_| true);
        self.planner.until("item.read", &json!({"id": id}), &[], |sent| sent["stage"] == "replied");
    }

    /// Moves a task on, unless an earlier attempt did.
    fn update(actor: &Actor, task: &str, state: &str, text: &str) {
        let params = json!({"taskId": task, "state": state, "message": [{"text": text}]});
        let get = json!({"taskId": task});
        loop {
            let now = actor.until("task.get", &get, &[], |_| true);
            if now["task"]["state"] == state {
                return;
            }
            let _ = actor.attempt("task.update", params.clone());
        }
    }

    /// Alice's planner asks bob's builder, who asks carol's tester on her behalf.
    fn tasks(&self) {
        let (_, build) = Self::send(&self.planner, "bob/builder@desk", "build it", &json!({"kind": "task"}));
        self.builder.until("task.get", &json!({"taskId": build}), &[], |_| true);
        Self::update(&self.builder, &build, "TASK_STATE_WORKING", "on it");
        let behalf = json!({"kind": "task", "onBehalfOf": {"taskId": build}});
        let (_, test) = Self::send(&self.builder, "carol/tester@nas", "test it", &behalf);
        let chain = self.tester.until("task.get", &json!({"taskId": test}), &[], |_| true);
        assert_eq!(chain["task"]["chain"]["depth"], 2, "{chain}");
        Self::update(&self.tester, &test, "TASK_STATE_COMPLETED", "it works");
        let completed = |got: &Value| got["task"]["state"] == "TASK_STATE_COMPLETED";
        self.builder.until("task.get", &json!({"taskId": test}), &[], completed);
        Self::update(&self.builder, &build, "TASK_STATE_COMPLETED", "built and tested");
        self.planner.until("task.get", &json!({"taskId": build}), &[], completed);
    }

    /// Writes a line, and waits until it is on every one of these machines under these names.
    fn line(&self, from: &str, room: &str, text: &str, seen: &[(&str, &str)]) {
        let params = json!({"conversation": room, "text": text, "clientId": text});
        self.at(from).call("person.send", &params, &[]);
        for (home, room) in seen {
            self.at(home).until("conv.read", &json!({"conversation": room}), &[], |read| {
                read["lines"].as_array().unwrap().iter().any(|line| line["text"] == text)
            });
        }
    }

    fn lines(&self) {
        self.line("laptop", "dm:bob", "hello bob", &[("desk", "dm:alice"), ("phone", "dm:alice")]);
        self.line("phone", "dm:alice", "hello alice", &[("laptop", "dm:bob"), ("tower", "dm:bob")]);
    }

    fn channel(&self) {
        let create = json!({"name": "eng", "persons": ["bob", "carol"]});
        self.at("laptop").call("channel.create", &create, &["invalid_request"]);
        let eng = "channel:eng";
        let has = |actor: &Actor, wanted: bool| {
            actor.until("conv.list", &json!({}), &[], |listed| {
                let rooms = listed["conversations"].as_array().unwrap();
                rooms.iter().any(|room| room["conversation"] == eng) == wanted
            });
        };
        for home in ["desk", "phone", "nas"] {
            has(self.at(home), true);
        }
        let everywhere = [("laptop", eng), ("desk", eng), ("phone", eng), ("nas", eng)];
        self.line("nas", eng, "carol is here", &everywhere);
        self.line("desk", eng, "so is bob", &everywhere);
        let remove = json!({"name": "eng", "persons": ["carol"]});
        self.at("laptop").call("channel.remove", &remove, &["not_found"]);
        has(self.at("nas"), false);
        let told = |read: &Value| {
            let lines = read["lines"].as_array().unwrap();
            lines.iter().any(|line| line["text"] == "alice removed carol from #eng")
        };
        for home in ["desk", "phone"] {
            self.at(home).until("conv.read", &json!({"conversation": eng}), &[], told);
        }
        self.line("laptop", eng, "just us two", &everywhere[..3]);
    }

    /// A machine goes for good, another gets a new key.
    fn machines(&self) {
        let info = self.at("laptop").call("team.info", &json!({}), &[]);
        let machine = |label: &str, of: &str, info: &Value| {
            let members = info["members"].as_array().unwrap();
            members.iter().find(|member| member["label"] == label).unwrap()[of].clone()
        };
        let remove = json!({"machine": machine("phone", "machine", &info)});
        self.at("laptop").call("team.remove", &remove, &["not_found"]);
        self.at("phone").until("device.status", &json!({}), &[], |status| status["binding"] == "removed");
        let old = machine("tower", "enc", &info);
        let rekeyed = |info: &Value| machine("tower", "enc", info) != old;
        loop {
            let now = self.at("tower").call("team.info", &json!({}), &[]);
            if rekeyed(&now) {
                break;
            }
            let _ = self.at("tower").attempt("identity.rotateEnc", json!({}));
        }
        let gone = |info: &Value| info["members"].as_array().unwrap().len() == 4;
        for home in ["laptop", "desk", "nas"] {
            self.at(home).until("team.info", &json!({}), &[], |info| gone(info) && rekeyed(info));
        }
        self.line("desk", "dm:alice", "with the new key", &[("laptop", "dm:bob"), ("tower", "dm:bob")]);
    }

    /// Carol's machine is away, and what was sent meanwhile arrives.
    fn away(&self) {
        self.world.lock().unwrap().kill_daemon("nas");
        let (id, _) = Self::send(&self.planner, "carol/tester@nas", "while you were away", &json!({}));
        let params = json!({"conversation": "dm:carol", "text": "are you there?", "clientId": "away"});
        self.at("desk").call("person.send", &params, &[]);
        self.planner.until("item.read", &json!({"id": id}), &[], |sent| sent["stage"] == "relayed");
        self.world.lock().unwrap().start_daemon("nas");
        self.tester.until("item.read", &json!({"id": id}), &[], |_| true);
        self.line("nas", "dm:bob", "back again", &[("desk", "dm:carol")]);
    }

    /// The end, once nothing moves any more.
    pub(crate) fn settled_end(&self) -> Value {
        let mut last = self.end();
        for _ in 0..600 {
            let unsettled = last.to_string().contains(" sent\"");
            std::thread::sleep(std::time::Duration::from_millis(if unsettled { 100 } else { 300 }));
            let now = self.end();
            if now == last && !unsettled {
                break;
            }
            last = now;
        }
        last
    }

    fn end(&self) -> Value {
        let mut end = Map::new();
        for (home, person, label) in MACHINES {
            let actor = self.at(home);
            let mut machine = Map::new();
            let status = actor.call("device.status", &json!({}), &[]);
            machine.insert("binding".to_owned(), status["binding"].clone());
            machine.insert("alarm".to_owned(), status["alarm"].clone());
            if status["binding"] == "bound" {
                machine.insert("rooms".to_owned(), rooms(actor));
                let grants = actor.call("grant.list", &json!({}), &[]);
                let mut grants: Vec<_> = grants["grants"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|grant| json!([grant["subject"], grant["ask"]]))
                    .collect();
                grants.sort_by_key(Value::to_string);
                machine.insert("grants".to_owned(), grants.into());
                let requests = actor.call("request.list", &json!({}), &[]);
                machine.insert("asks".to_owned(), json!(requests["asks"].as_array().unwrap().len()));
            }
            end.insert(format!("{person}@{label}"), machine.into());
        }
        for (name, actor) in
            [("planner", &self.planner), ("builder", &self.builder), ("tester", &self.tester)]
        {
            end.insert(name.to_owned(), session(actor));
        }
        end.into()
    }
}

/// Every chat of a machine: who said what, and how far it came.
fn rooms(actor: &Actor) -> Value {
    let mut rooms = BTreeMap::new();
    let listed = actor.call("conv.list", &json!({}), &[]);
    for room in listed["conversations"].as_array().unwrap() {
        let name = room["conversation"].as_str().unwrap();
        let read = actor.call("conv.read", &json!({"conversation": name, "limit": 100}), &["not_found"]);
        let Some(lines) = read["lines"].as_array() else { continue };
        let lines: Vec<_> = lines
            .iter()
            .map(|line| {
                let state = line.get("state").and_then(Value::as_str).unwrap_or("");
                json!(
                    format!(
                        "{}: {} {state}",
                        line["person"].as_str().unwrap(),
                        line["text"].as_str().unwrap()
                    )
                    .trim()
                )
            })
            .collect();
        rooms.insert(name.to_owned(), (lines, room["persons"].clone()));
    }
    json!(rooms)
}

/// A session's inbox and tasks, in the order they came.
fn session(actor: &Actor) -> Value {
    let inbox = actor.call("inbox.list", &json!({"limit": 200}), &[]);
    let mut items: Vec<_> = inbox["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            json!([item["kind"], item["from"]["address"], item["preview"], item["consent"], item["stage"]])
        })
        .collect();
    items.reverse();
    let tasks = actor.call("task.list", &json!({"limit": 100}), &[]);
    let mut tasks: Vec<_> = tasks["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| json!([task["title"], task["role"], task["state"], task["statusPreview"]]))
        .collect();
    tasks.sort_by_key(Value::to_string);
    json!({"inbox": items, "tasks": tasks})
}
