//! The simulated world of `adapters/sim`, under the name the tests use.

// Each test binary uses some of it.
#![allow(dead_code, unused_imports, unreachable_pub)]

pub mod shapes;

pub use messaging_sim::{Crash, Node, START, URL, World, at, json, text};
