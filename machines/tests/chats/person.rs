//! A person's client: it asks again on the connection of a new daemon when the old one dies.

use crate::common::{World, at, text};
use messaging_proto::json::{FromValue, Value};

/// Calls a method, again while its daemon is a new one.
pub(crate) fn call(world: &mut World, node: usize, method: &str, params: &str) -> Result<Value, Value> {
    for _ in 0..5 {
        let conn = world.nodes[node].admin;
        let id = world.ask(node, conn, method, params);
        world.settle();
        if let Some(answer) = world.answer(node, conn, id) {
            return answer;
        }
    }
    panic!("{method} is never answered");
}

/// Calls a method that succeeds.
pub(crate) fn ok(world: &mut World, node: usize, method: &str, params: &str) -> Value {
    call(world, node, method, params).unwrap_or_else(|error| panic!("{method} {params}: {error:?}"))
}

/// Writes a line: as it was filed.
pub(crate) fn say(world: &mut World, node: usize, room: &str, words: &str) -> Value {
    let params = format!(r#"{{"conversation":"{room}","text":"{words}"}}"#);
    at(&ok(world, node, "person.send", &params), "line").clone()
}

/// The lines of a chat, as `text state`.
pub(crate) fn lines(world: &mut World, node: usize, room: &str) -> Vec<String> {
    let read = ok(world, node, "conv.read", &format!(r#"{{"conversation":"{room}","limit":100}}"#));
    let lines = at(&read, "lines").as_array().expect("an array").iter();
    lines
        .map(|line| match line.get("state").and_then(Value::as_str) {
            Some(state) => format!("{} {state}", text(line, "text")),
            None => text(line, "text").to_owned(),
        })
        .collect()
}

/// The chats of a machine, newest first, as `room unread`.
pub(crate) fn chats(world: &mut World, node: usize) -> Vec<String> {
    let list = ok(world, node, "conv.list", "{}");
    let chats = at(&list, "conversations").as_array().expect("an array").iter();
    chats.map(|chat| format!("{} {}", text(chat, "conversation"), number(chat, "unread"))).collect()
}

/// The persons of a channel, as a machine knows them.
pub(crate) fn members(world: &mut World, node: usize, room: &str) -> String {
    let list = ok(world, node, "conv.list", "{}");
    let mut chats = at(&list, "conversations").as_array().expect("an array").iter();
    let chat = chats.find(|chat| text(chat, "conversation") == room).expect("a channel that is held");
    let persons = at(chat, "persons").as_array().expect("an array").iter();
    persons.filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

pub(crate) fn number(value: &Value, path: &str) -> u64 {
    u64::from_value(at(value, path)).expect("a number")
}
