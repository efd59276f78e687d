//! The daemon against the real relay machine, in memory.

// A test fails by panicking.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod chaos;
mod config;
mod crash;
mod hostile;
mod identity;
mod ipc;
mod joining;
mod link;
mod roster;
mod status;
mod store;
mod team;
mod vertical;
