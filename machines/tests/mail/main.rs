//! Mail, tasks and consent between daemons over the real relay machine, in memory.

#[path = "../common/mod.rs"]
mod common;

mod clients;
mod crash;
mod exchange;
mod relay;
