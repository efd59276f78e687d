//! Calls methods on sockets and remembers what came back.

use crate::mail::SECRET;
use crate::shapes;
use crate::world::{PATIENCE, World};
use messaging_smol::client::{Client, ClientError, Options};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// The key of alice's session `lead`, of bob's `agent`.
pub(crate) const LEAD: &str = "lead-0123456789abcdefghijklmnop";
pub(crate) const AGENT: &str = "agent-0123456789abcdefghijklmnop";

pub(crate) struct Probe {
    pub(crate) world: World,
    pub(crate) alice: Client,
    pub(crate) bob: Client,
    pub(crate) carol: Client,
    seen: BTreeMap<String, BTreeSet<String>>,
}

impl Probe {
    pub(crate) fn new(world: World) -> Self {
        let (alice, bob, carol) = (world.admin("alice"), world.admin("bob"), world.admin("carol"));
        let mut probe = Self { world, alice, bob, carol, seen: BTreeMap::new() };
        // How the world made alice's and bob's team.
        for method in ["team.create", "team.invite", "team.join"] {
            probe.note(method, "ok");
        }
        probe
    }

    /// A connection of the agent socket.
    pub(crate) fn agent(&self, name: &str) -> Client {
        Client::connect(&Options::agent(self.world.home(name))).unwrap()
    }

    fn client(&self, who: &str) -> &Client {
        match who {
            "alice" => &self.alice,
            "bob" => &self.bob,
            _ => &self.carol,
        }
    }

    fn note(&mut self, method: &str, outcome: &str) {
        self.seen.entry(method.to_owned()).or_default().insert(outcome.to_owned());
    }

    /// What a method gave so far: `ok` and codes.
    pub(crate) fn seen(&self, method: &str) -> BTreeSet<String> {
        self.seen.get(method).cloned().unwrap_or_default()
    }

    pub(crate) fn raw(&mut self, who: &str, method: &str, params: Value) -> Result<Value, ClientError> {
        let result = self.client(who).call(method, params);
        self.remember(method, &result);
        result
    }

    /// Notes what a call gave. A result must have the contract's members.
    pub(crate) fn remember(&mut self, method: &str, result: &Result<Value, ClientError>) {
        match result {
            Ok(value) => {
                shapes::check(method, value).unwrap_or_else(|wrong| panic!("{wrong}"));
                self.note(method, "ok");
            }
            Err(error) => {
                let code = error.code.as_str();
                self.note(method, code);
            }
        }
    }

    /// A call that succeeds.
    pub(crate) fn ok(&mut self, who: &str, method: &str, params: Value) -> Value {
        let text = params.to_string();
        self.raw(who, method, params).unwrap_or_else(|error| panic!("{who} {method} {text}: {error}"))
    }

    /// A call that is refused: `code`, or `code (why)` where the contract gives a method one code for several reasons.
    pub(crate) fn err(&mut self, who: &str, method: &str, params: Value, outcome: &str) {
        let result = self.client(who).call(method, params.clone());
        self.refused(method, &params, result, outcome);
    }

    /// Notes a refusal that a client outside the story's three got.
    pub(crate) fn refused(
        &mut self,
        method: &str,
        params: &Value,
        result: Result<Value, ClientError>,
        outcome: &str,
    ) {
        let code = outcome.split(' ').next().unwrap();
        let Err(error) = &result else { panic!("{method} {params} is not refused: {result:?}") };
        assert_eq!(error.code.as_str(), code, "{method} {params}: {error}");
        match code {
            "rate_limited" => assert!(error.retry_after_ms.is_some(), "{method} {params}: {error}"),
            "secret_refused" => {
                let field = error.field.as_deref().unwrap();
                assert!(error.message.starts_with(field) && !error.message.contains(SECRET), "{error}");
            }
            _ => {}
        }
        self.remember(method, &result);
        self.note(method, outcome);
    }

    /// Makes a call until it is refused with `rate_limited`, at most a hundred times.
    pub(crate) fn refusal(&mut self, who: &str, method: &str, params: &Value) -> ClientError {
        for _ in 0..100 {
            if let Err(error) = self.raw(who, method, params.clone()) {
                assert_eq!(error.code.as_str(), "rate_limited", "{error}");
                return error;
            }
        }
        panic!("{who} {method}: never refused");
    }

    /// A call that is made again until it succeeds with a result that will do.
    pub(crate) fn until(
        &mut self,
        who: &str,
        method: &str,
        params: &Value,
        will_do: impl Fn(&Value) -> bool,
    ) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let result = self.raw(who, method, params.clone());
            match result {
                Ok(value) if will_do(&value) => return value,
                other => assert!(Instant::now() < end, "{who} {method} {params}: {other:?}"),
            }
            std::thread::sleep(std::time::Duration::from_millis(25));
        }
    }

    /// The types of the events that came to alice's and bob's connections so far, each held to its shape.
    pub(crate) fn events(&self) -> BTreeSet<String> {
        let mut types = BTreeSet::new();
        for client in [&self.alice, &self.bob] {
            while let Some(event) = client.next_event(Some(std::time::Duration::ZERO)).unwrap() {
                shapes::check_event(&event).unwrap_or_else(|wrong| panic!("{wrong}"));
                types.insert(event["type"].as_str().unwrap().to_owned());
            }
        }
        types
    }

    /// Alice's lead writes to bob's agent. The envelope's id.
    pub(crate) fn mail(&mut self, more: &Value) -> String {
        let mut params = json!({"key": LEAD, "to": "bob/agent@desk", "parts": [{"text": "hello"}]});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        let sent = self.ok("alice", "msg.send", params);
        sent["results"][0]["envelopeId"].as_str().unwrap().to_owned()
    }

    /// Waits until bob's agent has an item, and returns it.
    pub(crate) fn arrived(&mut self, id: &str) -> Value {
        let params = json!({"key": AGENT, "id": id});
        self.until("bob", "inbox.get", &params, |_| true)["item"].clone()
    }
}
