//! A session's client, as a host would be one: it registers, and registers again when its daemon is new.

use crate::common::{World, at, json, text};
use messaging_machines::daemon::io::{IpcId, Tier};
use messaging_proto::json::{Object, Value, canonicalize};

/// One agent.
pub(crate) struct Agent {
    pub(crate) node: usize,
    pub(crate) key: String,
    pub(crate) name: &'static str,
    pub(crate) conn: IpcId,
}

impl Agent {
    /// An agent of a machine. `letter` makes its key.
    pub(crate) fn new(world: &mut World, node: usize, letter: char, name: &'static str) -> Self {
        let mut agent = Self { node, key: letter.to_string().repeat(24), name, conn: IpcId(0) };
        agent.register(world);
        agent
    }

    /// Connects and registers, as often as it takes.
    pub(crate) fn register(&mut self, world: &mut World) {
        for _ in 0..5 {
            self.conn = world.connect(self.node, Tier::Agent);
            let name = self.name;
            let more = format!(r#","name":"{name}","agent":"codex","tier":"push""#);
            if self.once(world, "session.register", &more).is_some_and(|answer| answer.is_ok())
                && self.once(world, "events.subscribe", "").is_some_and(|answer| answer.is_ok())
            {
                return;
            }
        }
        panic!("{} cannot register", self.name);
    }

    /// Calls a method once. Nothing when the daemon forgot the connection, or died of the call.
    fn once(&mut self, world: &mut World, method: &str, more: &str) -> Option<Result<Value, Value>> {
        let params = format!(r#"{{"key":"{}"{more}}}"#, self.key);
        let id = world.ask(self.node, self.conn, method, &params);
        world.settle();
        world.answer(self.node, self.conn, id)
    }

    /// Calls a method, again on a new connection while its daemon is a new one.
    pub(crate) fn call(&mut self, world: &mut World, method: &str, more: &str) -> Result<Value, Value> {
        for _ in 0..5 {
            if let Some(answer) = self.once(world, method, more) {
                return answer;
            }
            self.register(world);
        }
        panic!("{method} is never answered");
    }

    /// Calls a method that succeeds.
    pub(crate) fn ok(&mut self, world: &mut World, method: &str, more: &str) -> Value {
        self.call(world, method, more).unwrap_or_else(|error| panic!("{method} {more}: {error:?}"))
    }

    /// Sends to an address: the result.
    pub(crate) fn send(&mut self, world: &mut World, to: &str, words: &str, more: &str) -> Value {
        let sent =
            self.ok(world, "msg.send", &format!(r#","to":"{to}","parts":[{{"text":"{words}"}}]{more}"#));
        at(&sent, "results.0").clone()
    }

    /// The stages of a sent envelope.
    pub(crate) fn stages(&mut self, world: &mut World, id: &str) -> Vec<String> {
        let read = self.ok(world, "item.read", &format!(r#","id":"{id}""#));
        at(&read, "history")
            .as_array()
            .expect("an array")
            .iter()
            .map(|one| text(one, "stage").to_owned())
            .collect()
    }

    /// The previews of its inbox, oldest first.
    pub(crate) fn inbox(&mut self, world: &mut World) -> Vec<String> {
        let list = self.ok(world, "inbox.list", r#","limit":200"#);
        let items = at(&list, "items").as_array().expect("an array").iter().rev();
        items.map(|item| text(item, "preview").to_owned()).collect()
    }

    /// A task's record.
    pub(crate) fn task(&mut self, world: &mut World, id: &str) -> Value {
        at(&self.ok(world, "task.get", &format!(r#","taskId":"{id}""#)), "task").clone()
    }
}

/// Lets a person's requests in.
pub(crate) fn open(world: &mut World, node: usize, person: &str) {
    let mut levels = Object::new();
    levels.set("subject", json(&format!(r#"{{"person":"{person}"}}"#)));
    levels.set("ask", Value::text("open"));
    let params = canonicalize(&levels.into()).expect("I-JSON");
    world.ok(node, "grant.set", &params);
    world.settle();
}
