//! The team, what passed between its honest members before, and what of it anybody can see.

use crate::mallory::{Draft, MARK, Mallory, Said};
use crate::world::{Agent, World, contains, wait};
use serde_json::{Value, json};

/// What becomes of an envelope.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// The relay refuses it with this code.
    Relay(&'static str),
    /// Bob takes it off the relay and says nothing.
    Silent,
    /// Bob says that it was rejected, with this code.
    Rejected(&'static str),
    /// Bob says that he has it.
    Delivered,
}

pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) alice: Agent,
    pub(crate) bob: Agent,
    pub(crate) mallory: Mallory,
    /// Mail of alice's to bob, and of bob's to alice.
    pub(crate) mail: [String; 2],
    /// A task of alice's for bob: its id and its request.
    pub(crate) task: (String, String),
    /// Mail of bob's to mallory, and a task: its id and its request.
    pub(crate) mine: String,
    pub(crate) my_task: (String, String),
    /// A channel without mallory, and one with her.
    pub(crate) channels: [String; 2],
}

impl Stage {
    pub(crate) fn new() -> Self {
        let mut world = World::new();
        world.pair();
        let mut alice = Agent::new(&world, "alice", "planner");
        let mut bob = Agent::new(&world, "bob", "builder");
        bob.inbox();
        let mut mallory = Mallory::join(&world);
        let admin = world.admin("bob");
        let open = json!({"subject": {"person": "mallory"}, "ask": "open"});
        wait("mallory in bob's roster", || admin.call("grant.set", open.clone()).ok());

        let first = alice.send("bob/builder@desk", "honest", "first");
        alice.wait_stage(&first, "delivered");
        let back = bob.send("alice/planner@laptop", "honest", "back");
        bob.wait_stage(&back, "delivered");
        let asked = |agent: &mut Agent, to: &str| {
            let params = json!({"to": to, "kind": "task", "parts": [{"text": "honest"}]});
            let sent = agent.call("msg.send", params).unwrap()["results"][0].clone();
            let id = |name: &str| sent[name].as_str().unwrap().to_owned();
            agent.wait_stage(&id("envelopeId"), "relayed");
            (id("taskId"), id("envelopeId"))
        };
        let task = asked(&mut alice, "bob/builder@desk");
        alice.wait_stage(&task.1, "delivered");
        let mine = bob.send("mallory/agent@evil", "honest", "mine");
        bob.wait_stage(&mine, "relayed");
        let my_task = asked(&mut bob, "mallory/agent@evil");
        let person = world.admin("alice");
        let mut channels = Vec::new();
        for (name, persons) in [("eng", vec!["bob"]), ("all", vec!["bob", "mallory"])] {
            person.call("channel.create", json!({"name": name, "persons": persons})).unwrap();
            let listed = wait("the channel at bob's", || {
                let chats = admin.call("conv.list", json!({})).unwrap();
                let chats = chats["conversations"].as_array().unwrap().clone();
                chats.into_iter().find(|chat| chat["conversation"] == format!("channel:{name}"))
            });
            channels.push(listed["id"].as_str().unwrap().to_owned());
        }
        mallory.sync();
        Self {
            world,
            alice,
            bob,
            mallory,
            mail: [first, back],
            task,
            mine,
            my_task,
            channels: channels.try_into().unwrap(),
        }
    }

    /// Everything at bob's that an envelope could change, and alice's tasks.
    pub(crate) fn seen(&mut self) -> Value {
        let admin = self.world.admin("bob");
        let call = |method: &str| admin.call(method, json!({})).unwrap();
        let mut chats = call("conv.list");
        for chat in chats["conversations"].as_array_mut().unwrap() {
            let read = json!({"conversation": chat["conversation"], "limit": 100});
            chat["lines"] = admin.call("conv.read", read).unwrap()["lines"].take();
        }
        let (mine, my_task) = (self.mine.clone(), self.my_task.0.clone());
        let sent = self.bob.read(&mine);
        let back = self.bob.stage(&self.mail[1].clone());
        json!({
            "inbox": self.bob.inbox(), "sent": [sent["stage"], back],
            "tasks": self.bob.call("task.list", json!({})).unwrap(),
            "task": self.bob.call("task.get", json!({"taskId": my_task})).unwrap(),
            "alice": self.alice.call("task.list", json!({})).unwrap(),
            "chats": chats, "grants": call("grant.list"), "requests": call("request.list"),
            "agents": call("agents.list"), "notices": call("notice.list"),
        })
    }

    /// Sends each, and looks at what becomes of it.
    pub(crate) fn try_all(&mut self, cases: Vec<(&str, Draft, Fate)>) {
        let mut open = Vec::new();
        for (name, draft, fate) in cases {
            let (id, text) = self.mallory.make(&draft);
            let said = self.mallory.send(&id, &text);
            match fate {
                Fate::Relay(code) => assert_eq!(said, Said::Refused(code.to_owned()), "{name}"),
                _ => {
                    assert_eq!(said, Said::Relayed, "{name}");
                    open.push((name, id, fate));
                }
            }
        }
        // What bob decided before this is answered before it.
        self.mallory.settle();
        for (name, id, fate) in open {
            let said = self.mallory.said(&id);
            let wanted: Vec<(String, Option<String>)> = match fate {
                Fate::Silent | Fate::Relay(_) => Vec::new(),
                Fate::Rejected(code) => vec![("rejected".to_owned(), Some(code.to_owned()))],
                Fate::Delivered => vec![("delivered".to_owned(), None)],
            };
            assert_eq!(said, wanted, "{name}");
        }
    }

    /// Sends each, and nothing of it is to be seen at bob's, before a kill and after one.
    pub(crate) fn nothing_comes_of(&mut self, cases: Vec<(&str, Draft, Fate)>) {
        let before = self.seen();
        self.try_all(cases);
        assert_eq!(self.seen(), before);
        self.world.kill_daemon("bob");
        self.world.start_daemon("bob");
        assert_eq!(self.seen(), before);
    }

    /// That everybody still works for each other, and that no log holds a peer's text.
    pub(crate) fn all_is_well(&mut self) {
        assert!(self.world.daemon("bob").is_running() && self.world.relay().is_running());
        let id = self.alice.send("bob/builder@desk", "still honest", "last");
        self.alice.wait_stage(&id, "delivered");
        assert_eq!(self.bob.read(&id)["message"]["parts"][0]["text"], "still honest");
        for log in ["bob.log", "alice.log", "relay.log", "bob/logs", "alice/logs"] {
            assert!(!contains(&self.world.path(log), MARK.as_bytes()), "{log} holds what a peer wrote");
        }
    }
}
