//! The roles of `messaging/1` as deterministic machines.
//!
//! A machine consumes events and emits effects; it does no I/O. Time and randomness arrive with each event in
//! a [`Step`], durable state lives behind a [`Txn`], and everything a machine says waits until what it wrote
//! is durable. [`relay`] is the relay, [`daemon`] the daemon; each is composed of smaller roles. [`client`] is the
//! other end of the daemon's API: one connection, which keeps nothing. [`capture`] is the form in which a machine's inputs
//! are kept, to be played again.

pub mod capture;
pub mod client;
pub mod daemon;
pub mod machine;
pub mod relay;
pub mod store;

pub use machine::{Label, Machine, Out, Step};
pub use store::{Base, StoreDown, Table, Txn, Writes};
