//! The story. Every step of it can be made again, as somebody does whose daemon died in the middle.

use crate::actor::Actor;
use crate::world::{PATIENCE, World};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

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
    /// Session, text and envelope of everything a session sent.
    sent: RefCell<Vec<(&'static str, String, String)>>,
}

impl Story {
    /// The daemons and the relay, before anything happens.
    pub(crate) fn new() -> Self {
        let mut world = World::new();
        for (home, ..) in MACHINES {
            world.start_daemon(home);
        }
        let people = MACHINES.iter().map(|(home, ..)| (*home, Actor::person(world.home(home)))).collect();
        Self {
            people,
            planner: Actor::session(world.home("laptop"), "planner"),
            builder: Actor::session(world.home("desk"), "builder"),
            tester: Actor::session(world.home("nas"), "tester"),
            sent: RefCell::default(),
            world: Arc::new(Mutex::new(world)),
        }
    }

    /// The person at this machine.
    pub(crate) fn at(&self, home: &str) -> &Actor {
        &self.people[home]
    }

    pub(crate) fn sessions(&self) -> [(&'static str, &Actor); 3] {
        [&self.planner, &self.builder, &self.tester].map(|actor| (actor.name(), actor))
    }

    /// Texts and envelopes of what this session sent.
    pub(crate) fn sent_by(&self, name: &str) -> Vec<(String, String)> {
        let sent = self.sent.borrow();
        sent.iter().filter(|(by, ..)| *by == name).map(|(_, text, id)| (text.clone(), id.clone())).collect()
    }

    pub(crate) fn tell(&self) {
        self.team();
        self.requests();
        self.tasks();
        self.lines();
        self.channel();
        self.machines();
        self.away();
    }

    /// Sends mail or asks for a task. The envelope's and the task's id.
    fn send(&self, from: &Actor, to: &str, text: &str, more: &Value) -> (String, String) {
        let mut params = json!({"to": to, "parts": [{"text": text}], "idempotencyKey": text});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        let sent = from.call("msg.send", &params, &[]);
        let result = &sent["results"][0];
        assert!(result["stage"] != "rejected", "{result}");
        let id = |name: &str| result[name].as_str().unwrap_or_default().to_owned();
        self.sent.borrow_mut().push((from.name(), text.to_owned(), id("envelopeId")));
        (id("envelopeId"), id("taskId"))
    }

    /// Calls until this machine is in the team, whatever became of the calls before.
    fn enter(&self, home: &str, method: &str, params: &Value) {
        let end = Instant::now() + 2 * PATIENCE;
        while Instant::now() < end {
            let status = self.at(home).call("device.status", &json!({}), &[]);
            if status["binding"] == "bound" {
                return;
            }
            let _ = self.at(home).attempt(method, params.clone());
        }
        panic!("{home} never came into the team");
    }

    /// Alice founds the team and invites the others.
    fn team(&self) {
        let relay = self.world.lock().unwrap().relay_url();
        let (founder, person, label) = MACHINES[0];
        let create = json!({"relay": relay, "name": "Blue", "person": person, "label": label});
        self.enter(founder, "team.create", &create);
        for (home, person, label) in &MACHINES[1..] {
            let invite = self.at(founder).call("team.invite", &json!({"person": person}), &[]);
            self.enter(home, "team.join", &json!({"ticket": invite["ticket"], "label": label}));
        }
        // Everybody has the whole roster, and knows whom they will write to.
        for actor in self.people.values() {
            actor.until("team.info", &json!({}), &[], |info| info["members"].as_array().unwrap().len() == 5);
        }
        for actor in [&self.planner, &self.builder, &self.tester] {
            actor.call("inbox.list", &json!({}), &[]);
        }
    }

    /// A question to bob's builder that bob is asked about, how he answers, and how far it comes.
    fn question(&self, from: &Actor, text: &str, answer: &str) {
        let (id, _) = self.send(from, "bob/builder@desk", text, &json!({}));
        self.at("desk").until("request.list", &json!({}), &[], |listed| {
            listed["asks"].as_array().unwrap().iter().any(|ask| ask["id"] == id.as_str())
        });
        self.at("desk").call("request.answer", &json!({"id": id, "answer": answer}), &["not_found"]);
        let passes = ["once", "always"].contains(&answer);
        if passes {
            self.builder.call("item.read", &json!({"id": id}), &[]);
        }
        let stage = if passes { "read" } else { "rejected" };
        from.until("item.read", &json!({"id": id}), &[], |sent| sent["stage"] == stage);
    }

    /// A request answered each way, and then no more questions.
    fn requests(&self) {
        self.question(&self.planner, "first question", "once");
        self.question(&self.planner, "second question", "decline");
        self.question(&self.tester, "carol's question", "always");
        let (id, _) = self.send(&self.tester, "bob/builder@desk", "and one more", &json!({}));
        self.builder.until("item.read", &json!({"id": id}), &[], |_| true);
        self.question(&self.planner, "one too many", "block");
        let (id, _) = self.send(&self.planner, "bob/builder@desk", "after the block", &json!({}));
        self.planner.until("item.read", &json!({"id": id}), &[], |sent| sent["stage"] == "rejected");
        for (home, persons) in
            [("laptop", ["bob", "carol"]), ("desk", ["alice", "carol"]), ("nas", ["alice", "bob"])]
        {
            for person in persons {
                let open = json!({"subject": {"person": person}, "ask": "open"});
                self.at(home).call("grant.set", &open, &[]);
            }
        }
        // The person's other machine has it, too, and the block is gone.
        for home in ["phone", "tower"] {
            let all = |listed: &Value| {
                let grants = listed["grants"].as_array().unwrap();
                grants.len() == 2
                    && grants.iter().all(|grant| grant["ask"] == "open" && grant["chat"].is_null())
            };
            self.at(home).until("grant.list", &json!({}), &[], all);
        }
        let (id, _) = self.send(&self.planner, "bob/builder@desk", "third question", &json!({}));
        self.builder.until("item.read", &json!({"id": id}), &[], |_| true);
        let reply = json!({"replyTo": id});
        let (reply, _) = self.send(&self.builder, "alice/planner@laptop", "an answer", &reply);
        self.planner.until("item.read", &json!({"id": reply}), &[], |_| true);
        self.planner.until("item.read", &json!({"id": id}), &[], |sent| sent["stage"] == "replied");
    }

    /// Moves a task on, unless an earlier attempt did.
    fn update(actor: &Actor, task: &str, state: &str, text: &str) {
        let params = json!({"taskId": task, "state": state, "message": [{"text": text}]});
        let get = json!({"taskId": task});
        let end = Instant::now() + 2 * PATIENCE;
        while Instant::now() < end {
            let now = actor.until("task.get", &get, &[], |_| true);
            if now["task"]["state"] == state {
                return;
            }
            let _ = actor.attempt("task.update", params.clone());
        }
        panic!("{task} never became {state}");
    }

    /// Alice's planner asks bob's builder, who asks carol's tester on her behalf.
    fn tasks(&self) {
        let (_, build) = self.send(&self.planner, "bob/builder@desk", "build it", &json!({"kind": "task"}));
        self.builder.until("task.get", &json!({"taskId": build}), &[], |_| true);
        Self::update(&self.builder, &build, "TASK_STATE_WORKING", "on it");
        let behalf = json!({"kind": "task", "onBehalfOf": {"taskId": build}});
        let (_, test) = self.send(&self.builder, "carol/tester@nas", "test it", &behalf);
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
        for home in ["tower", "desk", "phone", "nas"] {
            has(self.at(home), true);
        }
        // "nas" is last: it hears no more in the end.
        let everywhere = ["laptop", "tower", "desk", "phone", "nas"].map(|home| (home, eng));
        self.line("nas", eng, "carol is here", &everywhere);
        self.line("desk", eng, "so is bob", &everywhere);
        let remove = json!({"name": "eng", "persons": ["carol"]});
        self.at("laptop").call("channel.remove", &remove, &["not_found"]);
        has(self.at("nas"), false);
        let told = |read: &Value| {
            let lines = read["lines"].as_array().unwrap();
            lines.iter().any(|line| line["text"] == "alice removed carol from #eng")
        };
        for home in ["tower", "desk", "phone"] {
            self.at(home).until("conv.read", &json!({"conversation": eng}), &[], told);
        }
        self.line("laptop", eng, "just us two", &everywhere[..4]);
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
        let end = Instant::now() + 2 * PATIENCE;
        loop {
            let now = self.at("tower").call("team.info", &json!({}), &[]);
            if rekeyed(&now) {
                break;
            }
            assert!(Instant::now() < end, "no new key");
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
        let (id, _) = self.send(&self.planner, "carol/tester@nas", "while you were away", &json!({}));
        let params = json!({"conversation": "dm:carol", "text": "are you there?", "clientId": "away"});
        self.at("desk").call("person.send", &params, &[]);
        self.planner.until("item.read", &json!({"id": id}), &[], |sent| sent["stage"] == "relayed");
        self.world.lock().unwrap().start_daemon("nas");
        self.tester.until("item.read", &json!({"id": id}), &[], |_| true);
        self.line("nas", "dm:bob", "back again", &[("desk", "dm:carol")]);
    }
}
