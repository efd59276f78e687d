//! What every test of the relay needs: machines with keys, and a world that drives the relay.

mod client;
mod envelope;
mod world;

pub(crate) use client::Client;
pub(crate) use envelope::{Draft, presence_payload};
pub(crate) use world::{Crash, DAY, World, closes, counts, frames, nacks};
