//! Agents and persons: clients that call and never wait for a daemon that died.

use super::Play;
use crate::json::{at, text};
use messaging_machines::daemon::io::{IpcId, Tier};
use messaging_proto::json::Value;

/// The agent of a machine: always called `agent`.
pub(super) struct Agent {
    pub(super) key: String,
    conn: IpcId,
    /// The admin connection of the daemon it registered with: another one is another process.
    with: Option<IpcId>,
}

impl Agent {
    pub(super) fn new(number: usize) -> Self {
        Self { key: format!("{number}").repeat(24), conn: IpcId(0), with: None }
    }

    /// It has to register again.
    pub(super) const fn forget(&mut self) {
        self.with = None;
    }
}

impl Play {
    /// Calls on an agent's connection, which registers first when its daemon is a new one. Nothing when the daemon died
    /// of it, or answers later.
    pub(super) fn agent(&mut self, number: usize, method: &str, more: &str) -> Option<Result<Value, Value>> {
        self.world.settle();
        let process = self.world.nodes[number].admin;
        if self.agents[number].with != Some(process) {
            let conn = self.world.connect(number, Tier::Agent);
            self.agents[number].conn = conn;
            self.agents[number].with = Some(process);
            self.call(number, conn, "session.register", r#","name":"agent","agent":"codex","tier":"push""#);
            self.call(number, conn, "events.subscribe", "");
        }
        let conn = self.agents[number].conn;
        self.call(number, conn, method, more)
    }

    fn call(&mut self, number: usize, conn: IpcId, method: &str, more: &str) -> Option<Result<Value, Value>> {
        let params = format!(r#"{{"key":"{}"{more}}}"#, self.agents[number].key);
        self.asked(number, conn, method, &params)
    }

    fn asked(
        &mut self,
        number: usize,
        conn: IpcId,
        method: &str,
        params: &str,
    ) -> Option<Result<Value, Value>> {
        let id = self.world.ask(number, conn, method, params);
        self.world.settle();
        self.world.answer(number, conn, id)
    }

    /// Calls as the person of a machine, without waiting.
    pub(super) fn admin(
        &mut self,
        number: usize,
        method: &str,
        params: &str,
    ) -> Option<Result<Value, Value>> {
        self.world.settle();
        self.asked(number, self.world.nodes[number].admin, method, params)
    }

    /// One of the entries of a list that an agent's daemon gives.
    pub(super) fn pick(
        &mut self,
        number: usize,
        method: &str,
        more: &str,
        list: &str,
        pick: usize,
    ) -> Option<Value> {
        let answer = self.agent(number, method, more)?.ok()?;
        let all = at(&answer, list).as_array()?;
        all.get(pick % all.len().max(1)).cloned()
    }

    /// Words nobody but the two ends may see.
    pub(super) fn words(&mut self) -> String {
        self.words += 1;
        format!("{}{}", super::SECRET, self.words)
    }

    /// The address of a machine's agent.
    pub(super) fn address(&self, number: usize) -> String {
        let label = format!("{}/agent", self.persons[number]);
        // Two machines of one person have an agent of one name.
        format!("{label}@{}", self.labels(number))
    }

    fn labels(&self, number: usize) -> &'static str {
        // The labels of the generator's machines, by their order among the machines of their person.
        ["laptop", "desk", "tower", "phone", "phone"][number % 5]
    }

    /// An agent sends; what was accepted is remembered.
    pub(super) fn send(&mut self, from: usize, to: usize, address: &str, more: &str) {
        let words = self.words();
        let params =
            format!(r#","to":"{address}","parts":[{{"text":"{words}"}}],"idempotencyKey":"{words}"{more}"#);
        let mut answer = self.agent(from, "msg.send", &params);
        if answer.is_none() {
            // Its daemon died of it: the same call again sends once.
            answer = self.agent(from, "msg.send", &params);
        }
        let Some(Ok(sent)) = answer else { return };
        for result in at(&sent, "results").as_array().unwrap_or_default() {
            if let Some(id) = result.get("envelopeId").and_then(Value::as_str) {
                self.sends.push(super::Sent { from, to, id: id.to_owned() });
            }
        }
    }

    /// The machine that wrote an item.
    pub(super) fn sender_of(&self, item: &Value) -> Option<usize> {
        let device = text(item, "from.device");
        self.machines.iter().position(|machine| machine == device)
    }
}
