//! The eight tools: an input becomes calls of the daemon, its answers become a result.

mod contacts;
mod conversation;
mod inbox;
mod parts;
mod read;
mod search;
mod send;
mod tasks;
mod update;

use crate::args::Args;
use crate::failure::Failure;
use crate::session::Session;
use messaging_proto::Code;
use messaging_proto::address::ToolAddress;
use messaging_proto::name::{ChannelName, Label, PersonId, SessionName};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What a tool call has.
pub(crate) struct Context<'a> {
    pub(crate) session: &'a Session,
    pub(crate) channels: &'a BTreeSet<ChannelName>,
    /// The host's name of this call.
    pub(crate) call: String,
}

/// Runs a tool.
pub(crate) async fn run(cx: &Context<'_>, verb: &str, args: Args) -> Result<Value, Failure> {
    match verb {
        "contacts" => contacts::run(cx, args).await,
        "send" => send::run(cx, args).await,
        "inbox" => inbox::run(cx, args).await,
        "read" => read::run(cx, args).await,
        "search" => search::run(cx, args).await,
        "tasks" => tasks::run(cx, args).await,
        "task_update" => update::update(cx, args).await,
        "task_cancel" => update::cancel(cx, args).await,
        _ => Err(Failure::new(Code::NotFound, "there is no such tool")),
    }
}

/// An agent, as an address names it.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) person: PersonId,
    pub(crate) agent: SessionName,
    pub(crate) label: Option<Label>,
}

impl Agent {
    /// `person/agent` with `@label` when it was said.
    pub(crate) fn address(&self) -> String {
        let label = self.label.as_ref().map(|label| format!("@{label}")).unwrap_or_default();
        format!("{}/{}{label}", self.person, self.agent)
    }
}

/// Where a conversation of this server's can be.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Agent(Agent),
    Channel(ChannelName),
}

impl Context<'_> {
    /// Refuses, before any call of the daemon, what MCP never reaches (contract ipc §11.8): persons, the own one
    /// included, and channels its person did not open.
    pub(crate) fn allowed(&self, address: &ToolAddress) -> Result<(), Failure> {
        match address {
            ToolAddress::Own | ToolAddress::Person(_) => Err(Failure::forbidden(
                "conversations with a person are not open to this agent; address one of their agents",
            )),
            ToolAddress::Channel(name) if !self.channels.contains(name) => Err(Failure::forbidden(
                "the channel was not opened to this agent: your person starts messaging-mcp with --channel and its name",
            )),
            _ => Ok(()),
        }
    }

    /// An allowed address as a place, `me` replaced by the own person.
    pub(crate) async fn place(&self, address: ToolAddress) -> Result<Place, Failure> {
        self.allowed(&address)?;
        Ok(match address {
            ToolAddress::Channel(name) => Place::Channel(name),
            ToolAddress::Agent { person, agent, label } => Place::Agent(Agent { person, agent, label }),
            ToolAddress::OwnAgent { agent, label } => {
                Place::Agent(Agent { person: self.session.own().await?, agent, label })
            }
            ToolAddress::Own | ToolAddress::Person(_) => return Err(Failure::forbidden("not open")),
        })
    }

    /// Calls a method with the session's key.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, Failure> {
        self.session.keyed(method, params).await
    }

    /// The error of a call about a channel, and a thread in it when `threaded`: only the channel is an address (§11).
    pub(crate) async fn of_channel(&self, failure: Failure, name: &ChannelName, threaded: bool) -> Failure {
        if !threaded || !failure.is(Code::NotFound) {
            return failure.of_address();
        }
        let room = format!("channel:{name}");
        let held = self.session.call("contacts.list", json!({})).await.is_ok_and(|contacts| {
            items(&contacts, "conversations").iter().any(|one| word(one, "conversation") == room)
        });
        if held { failure } else { failure.of_address() }
    }

    /// A task, or nothing when this session has none of that id.
    pub(crate) async fn task(&self, id: &str) -> Result<Option<Value>, Failure> {
        match self.call("task.get", json!({ "taskId": id })).await {
            Ok(mut found) => Ok(Some(found["task"].take())),
            Err(failure) if failure.is(Code::NotFound) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// How requests of `peer` are treated where the daemon does not say (§11, "MCP server").
    pub(crate) async fn consent(&self, said: &Value, peer: &Value) -> Result<Value, Failure> {
        if said.is_string() {
            return Ok(said.clone());
        }
        let own = peer["person"].as_str() == Some(self.session.own().await?.as_str());
        Ok(json!(if own { "self" } else { "trusted" }))
    }
}

/// The address of a peer: its agent's, or the person who wrote.
pub(crate) fn peer_address(peer: &Value) -> &str {
    peer["address"].as_str().or_else(|| peer["person"].as_str()).unwrap_or_default()
}

/// The list under a name; empty when it is absent.
pub(crate) fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A text of the daemon's; empty when it is absent.
pub(crate) fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The short name of a task's state.
pub(crate) fn short_state(state: &Value) -> String {
    state.as_str().unwrap_or_default().trim_start_matches("TASK_STATE_").to_ascii_lowercase()
}

/// The state's name in the daemon's API.
pub(crate) fn long_state(state: &str) -> String {
    format!("TASK_STATE_{}", state.to_ascii_uppercase())
}

/// Whether a task in this state is finished.
pub(crate) fn is_done(state: &str) -> bool {
    matches!(state, "completed" | "failed" | "canceled" | "rejected")
}
