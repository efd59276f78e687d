//! Chats between daemons in memory, through the lines of their clients.

mod channels;
mod consent;
mod delivery;
mod direct;
mod errors;
mod events;
mod limits;
mod reading;
mod rules;
mod search;

use crate::daemon::io::IpcId;
use crate::daemon::testing::{Forged, World, at, text};
use messaging_proto::envelope::Kind;
use messaging_proto::json::{FromValue, Value};

/// A team whose machines each have an admin connection that hears `conv` events.
struct Chat {
    world: World,
    admin: Vec<IpcId>,
}

impl Chat {
    fn new(machines: &[&str]) -> Self {
        let world = World::new(machines);
        let mut chat = Self { world, admin: Vec::new() };
        for number in 0..machines.len() {
            let conn = chat.world.connect(number);
            chat.admin.push(conn);
            chat.ok(number, "conv.subscribe", "{}");
        }
        chat
    }

    fn ok(&mut self, number: usize, method: &str, params: &str) -> Value {
        let conn = self.admin[number];
        let result = self.world.ok(number, conn, method, params);
        self.world.run();
        result
    }

    fn refused(&mut self, number: usize, method: &str, params: &str) -> String {
        let conn = self.admin[number];
        self.world.refused(number, conn, method, params)
    }

    /// The person's own line: what the call returned.
    fn say(&mut self, number: usize, room: &str, words: &str, more: &str) -> Value {
        let params = format!(r#"{{"conversation":"{room}","text":"{words}"{more}}}"#);
        at(&self.ok(number, "person.send", &params), "line").clone()
    }

    /// An agent's line, through its connection: the result.
    fn agent_says(&mut self, number: usize, conn: IpcId, letter: char, to: &str, words: &str) -> Value {
        let key = crate::daemon::testing::key(letter);
        let params = format!(r#"{{"key":"{key}","to":"{to}","parts":[{{"text":"{words}"}}]}}"#);
        let sent = self.world.ok(number, conn, "msg.send", &params);
        self.world.run();
        at(&sent, "results.0").clone()
    }

    fn lines(&mut self, number: usize, room: &str) -> Vec<Value> {
        let read = self.ok(number, "conv.read", &format!(r#"{{"conversation":"{room}","limit":100}}"#));
        assert_eq!(text(&read, "kind"), "lines");
        at(&read, "lines").as_array().unwrap().to_vec()
    }

    fn texts(&mut self, number: usize, room: &str) -> Vec<String> {
        self.lines(number, room).iter().map(|line| text(line, "text").to_owned()).collect()
    }

    fn conversations(&mut self, number: usize) -> Vec<Value> {
        at(&self.ok(number, "conv.list", "{}"), "conversations").as_array().unwrap().to_vec()
    }

    /// The persons of a channel, as a machine knows them.
    fn members(&mut self, number: usize, room: &str) -> Vec<String> {
        let list = self.conversations(number);
        let channel = list.iter().find(|one| text(one, "conversation") == room).unwrap_or_else(|| {
            panic!("machine {number} holds no {room}: {list:?}");
        });
        let persons = at(channel, "persons").as_array().unwrap().iter();
        persons.map(|person| person.as_str().unwrap().to_owned()).collect()
    }

    /// The id of a channel.
    fn channel_id(&mut self, number: usize, room: &str) -> String {
        let list = self.conversations(number);
        let channel = list.iter().find(|one| text(one, "conversation") == room).unwrap();
        text(channel, "id").to_owned()
    }

    /// Delivers a chat envelope made by hand. What its sender is told: the stage, or the code of a refusal.
    fn forged(&mut self, from: usize, to: usize, agent: Option<&str>, message: &str, conv: &str) -> String {
        let conv = if conv.is_empty() { String::new() } else { format!(r#","conv":{conv}"#) };
        let payload = format!(r#"{{"kind":"message","message":{message}{conv}}}"#);
        let mut forged = Forged::new(Kind::Message, &payload);
        forged.from_agent = agent;
        let envelope = self.world.forge(from, to, &forged);
        self.world.link(from, false);
        self.world.nodes[from].clear_queue();
        assert!(self.world.deliver(to, envelope), "it is acked");
        let receipt = self.world.nodes[from].first_queued();
        assert_eq!(self.world.nodes[from].queued(), 1, "one receipt");
        let receipt = self.world.open(from, &receipt);
        self.world.nodes[from].clear_queue();
        self.world.link(from, true);
        let stage = text(&receipt, "stage");
        receipt.get("code").and_then(Value::as_str).unwrap_or(stage).to_owned()
    }

    /// The `conv` events since the last call, as `change seq`.
    fn events(&mut self, number: usize) -> Vec<String> {
        let events = self.world.events(number, "conv");
        events.iter().map(|event| format!("{} {}", text(event, "change"), number_at(event, "seq"))).collect()
    }
}

fn number_at(value: &Value, path: &str) -> u64 {
    u64::from_value(at(value, path)).unwrap_or_else(|_| panic!("{path} of {value:?}"))
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name) == Some(&Value::Bool(true))
}

fn id(line: &Value) -> String {
    text(line, "id").to_owned()
}

/// A message of one text with the n-th of these tests' ids.
fn message(n: usize, words: &str) -> String {
    format!(r#"{{"messageId":"{}","role":"ROLE_USER","parts":[{{"text":"{words}"}}]}}"#, ulid(n))
}

/// The n-th id.
fn ulid(n: usize) -> String {
    format!("01ARZ3NDEKTSV4RRFFQ69{n:05}")
}

/// `conv` of an operation on a channel.
fn op(op: &str, id: &str, name: &str, more: &str) -> String {
    format!(r#"{{"kind":"channel","op":"{op}","id":"{id}","name":"{name}"{more}}}"#)
}
