//! The relay's machine, driven event by event over a store in memory with really signed envelopes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod apart;
mod clock;
mod connect;
mod damage;
mod delivery;
mod determinism;
mod failing;
mod presence;
mod queue_model;
mod replays;
mod reports;
mod roster;
mod send;
mod stop;
mod support;
mod taken;
