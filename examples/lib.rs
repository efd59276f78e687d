//! Two complete programs of the client library; the library itself is empty.
//!
//! - `echo_agent.rs`: an agent that answers messages and executes tasks, over `messaging_smol::client`.
//! - `tokio_agent.rs`: the same API with `messaging_machines::client` driven by tokio.
//!
//! Run one against the daemon of a home that is in a team:
//!
//! ```text
//! cargo run -p messaging-examples --example echo_agent
//! ```
