//! What a daemon owes the machine it runs on: a private home, one owner, sockets with modes, exit statuses with one
//! line, and a store that others may damage (contract ipc §1.1, §6.2, §11.1; `messaging/1 §8.1`, `§8.8`).

#![allow(clippy::unwrap_used)]

mod daemon;
mod exits;
mod home;
mod owner;
mod sockets;
mod store;
#[path = "../world/mod.rs"]
mod world;
