//! The clients of the tests' daemons.

use super::{World, at, json, key, text};
use crate::daemon::io::{Event, IpcId, Tier};
use messaging_proto::json::{FromValue, Object, Value, canonicalize};

impl World {
    /// A connection of the admin socket.
    pub(crate) fn connect(&mut self, number: usize) -> IpcId {
        self.open_socket(number, Tier::Admin)
    }

    /// A connection of the agent socket.
    pub(crate) fn agent(&mut self, number: usize) -> IpcId {
        self.open_socket(number, Tier::Agent)
    }

    fn open_socket(&mut self, number: usize, tier: Tier) -> IpcId {
        self.nodes[number].conns += 1;
        let conn = IpcId(self.nodes[number].conns);
        self.handle(number, Event::IpcOpened { conn, tier });
        conn
    }

    /// Closes a connection.
    pub(crate) fn close(&mut self, number: usize, conn: IpcId) {
        self.handle(number, Event::IpcClosed { conn });
    }

    /// Sends a request. Its id.
    pub(crate) fn asks(&mut self, number: usize, conn: IpcId, method: &str, params: &str) -> u64 {
        self.nodes[number].calls += 1;
        let id = self.nodes[number].calls;
        let params = json(params);
        let request: Object = [
            ("jsonrpc".to_owned(), Value::text("2.0")),
            ("id".to_owned(), Value::int(id)),
            ("method".to_owned(), Value::text(method)),
            ("params".to_owned(), params),
        ]
        .into_iter()
        .collect();
        let line = canonicalize(&request.into()).unwrap().into_bytes();
        self.handle(number, Event::IpcLine { conn, line });
        id
    }

    /// The reply to a request, once it came.
    pub(crate) fn answer(&self, number: usize, conn: IpcId, id: u64) -> Option<Value> {
        let mine = |line: &&(IpcId, Value)| {
            line.0 == conn && line.1.get("id").is_some_and(|value| u64::from_value(value).ok() == Some(id))
        };
        self.nodes[number].lines.iter().rfind(mine).map(|(_, reply)| reply.clone())
    }

    /// Calls a method. The result, or the error object.
    pub(crate) fn call(
        &mut self,
        number: usize,
        conn: IpcId,
        method: &str,
        params: &str,
    ) -> Result<Value, Value> {
        // A machine that failed since has forgotten the connection.
        let failed = self.fault.is_some();
        let id = self.asks(number, conn, method, params);
        let Some(reply) = self.answer(number, conn, id) else {
            assert!(failed, "{method} was not answered");
            return Err(Value::Null);
        };
        match (reply.get("result"), reply.get("error")) {
            (Some(result), None) => Ok(result.clone()),
            (None, Some(error)) => Err(error.clone()),
            _ => panic!("no reply: {reply:?}"),
        }
    }

    /// Calls a method that succeeds.
    pub(crate) fn ok(&mut self, number: usize, conn: IpcId, method: &str, params: &str) -> Value {
        self.call(number, conn, method, params).unwrap_or_else(|error| panic!("{method} {params}: {error:?}"))
    }

    /// Calls a method that is refused: its code.
    pub(crate) fn refused(&mut self, number: usize, conn: IpcId, method: &str, params: &str) -> String {
        match self.call(number, conn, method, params) {
            Ok(result) => panic!("{method} {params}: {result:?}"),
            Err(error) => text(&error, "data.code").to_owned(),
        }
    }

    /// Registers a push session and subscribes its events on a new connection.
    pub(crate) fn session(&mut self, number: usize, letter: char, name: &str, agent: &str) -> IpcId {
        let conn = self.connect(number);
        let key = key(letter);
        self.ok(
            number,
            conn,
            "session.register",
            &format!(r#"{{"key":"{key}","name":"{name}","agent":"{agent}","tier":"push"}}"#),
        );
        self.ok(number, conn, "events.subscribe", &format!(r#"{{"key":"{key}"}}"#));
        self.pass(2_000);
        conn
    }

    /// The events of a type a machine has sent, and forgets them.
    pub(crate) fn events(&mut self, number: usize, of: &str) -> Vec<Value> {
        let is = |line: &Value| {
            line.get("params").is_some_and(|event| event.get("type").and_then(Value::as_str) == Some(of))
        };
        let (taken, kept) =
            std::mem::take(&mut self.nodes[number].lines).into_iter().partition(|(_, line)| is(line));
        self.nodes[number].lines = kept;
        let taken: Vec<(IpcId, Value)> = taken;
        taken.into_iter().filter_map(|(_, line)| line.get("params").cloned()).collect()
    }

    /// The stages of a sent envelope, as its session sees them.
    pub(crate) fn stages(&mut self, number: usize, conn: IpcId, letter: char, envelope: &str) -> Vec<String> {
        let params = format!(r#"{{"key":"{}","id":"{envelope}"}}"#, key(letter));
        let read = self.ok(number, conn, "item.read", &params);
        at(&read, "history")
            .as_array()
            .unwrap()
            .iter()
            .map(|reached| text(reached, "stage").to_owned())
            .collect()
    }

    /// The unread items of a session, newest first.
    pub(crate) fn unread(&mut self, number: usize, conn: IpcId, letter: char) -> Vec<Value> {
        let params = format!(r#"{{"key":"{}","unreadOnly":true}}"#, key(letter));
        at(&self.ok(number, conn, "inbox.list", &params), "items").as_array().unwrap().to_vec()
    }
}
