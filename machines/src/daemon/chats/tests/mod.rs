//! Chats between daemons in memory, through the lines of their clients.

mod direct;

use crate::daemon::io::IpcId;
use crate::daemon::testing::{World, at, text};
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
