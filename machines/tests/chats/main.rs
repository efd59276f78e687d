//! Chats between daemons over the real relay machine, in memory.

#[path = "../common/mod.rs"]
mod common;

mod chaos;
mod crash;
mod exchange;
mod person;
mod store;
