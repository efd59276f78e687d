//! Somebody who calls a daemon and does not mind that it dies: every call is made again until its outcome is known.

use crate::world::PATIENCE;
use messaging_smol::client::{Client, ClientError, Options};
use messaging_smol::home::Home;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A person at a machine, or a session of it.
pub(crate) struct Actor {
    home: Home,
    /// The session's name.
    name: Option<&'static str>,
    client: RefCell<Option<Client>>,
}

impl Actor {
    pub(crate) const fn person(home: Home) -> Self {
        Self { home, name: None, client: RefCell::new(None) }
    }

    pub(crate) const fn session(home: Home, name: &'static str) -> Self {
        Self { home, name: Some(name), client: RefCell::new(None) }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name.unwrap_or_default()
    }

    fn key(&self) -> Option<String> {
        self.name.map(|name| format!("{name}-0123456789abcdefghijklmnop"))
    }

    /// One attempt.
    pub(crate) fn attempt(&self, method: &str, mut params: Value) -> Result<Value, ClientError> {
        let client = match self.client.borrow_mut().take() {
            Some(client) => client,
            None => self.connect()?,
        };
        if let Some(key) = self.key() {
            params["key"] = json!(key);
        }
        let result = client.call_within(method, params, Duration::from_secs(10));
        let gone = result.as_ref().is_err_and(|error| error.code.as_str() == "daemon_unavailable");
        if !gone {
            *self.client.borrow_mut() = Some(client);
        }
        result
    }

    fn connect(&self) -> Result<Client, ClientError> {
        let Some(name) = self.name else { return Client::connect(&Options::admin(self.home.clone())) };
        let client = Client::connect(&Options::agent(self.home.clone()))?;
        let key = self.key();
        client
            .call("session.register", json!({"key": key, "name": name, "agent": "test", "tier": "push"}))?;
        Ok(client)
    }

    /// Calls until it succeeds. `done` are the codes that say that an earlier attempt did.
    pub(crate) fn call(&self, method: &str, params: &Value, done: &[&str]) -> Value {
        self.until(method, params, done, |_| true)
    }

    /// Calls until it succeeds with a result that will do.
    pub(crate) fn until(
        &self,
        method: &str,
        params: &Value,
        done: &[&str],
        will_do: impl Fn(&Value) -> bool,
    ) -> Value {
        let end = Instant::now() + 2 * PATIENCE;
        loop {
            let result = self.attempt(method, params.clone());
            match &result {
                Ok(value) if will_do(value) => return value.clone(),
                Err(error) if done.contains(&error.code.as_str()) => return Value::Null,
                _ => {}
            }
            assert!(Instant::now() < end, "{method} {params}: {result:?}");
            std::thread::sleep(Duration::from_millis(40));
        }
    }
}
