//! What a daemon owes the machine it runs on: a private home, one owner, sockets with modes, exit statuses with one
//! line, and a store that others may damage (contract ipc §1.1, §6.2, §11.1; `messaging/1 §8.1`, `§8.8`).

#![allow(clippy::unwrap_used)]

mod daemon;
#[path = "../world/disk.rs"]
#[allow(dead_code, reason = "a helper of tests, each of which uses a part of it")]
mod disk;
mod exits;
mod full;
mod home;
mod owner;
mod snapshot;
mod sockets;
mod store;
#[path = "../world/mod.rs"]
mod world;
