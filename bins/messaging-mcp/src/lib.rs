//! The MCP server that gives an agent the eight Messaging tools over stdio (`messaging/1 §11`; contract ipc §8, §11.8).
//!
//! [`serve`] is the process: standard input and its end, the parent, the last second. [`server`] answers MCP, [`schema`]
//! is the closed shape of every tool, [`tools`] turns a call into calls of the daemon and its answers into a result,
//! [`text`] is the only way by which a peer's words get into one. [`session`] keeps the session registered over the
//! daemon's restarts, and [`link`] drives the client machine of `messaging_machines::client` in tokio.

mod args;
mod failure;
mod files;
mod flags;
mod link;
mod schema;
mod serve;
mod server;
mod session;
mod tally;
mod text;
mod tools;

pub use flags::main;
