//! The simulated world: the real relay machine and daemon machines in memory, with virtual clocks, and faults on demand.
//!
//! - [`world`]: the machines, their stores and clocks; clients' calls; the log of every effect.
//! - [`node`]: one daemon with its store and files, and crashes at any event.
//! - `net`: the connections between them, as further methods of [`World`].
//! - [`chaos`]: random teams under random faults, run from a seed, and what must hold at the end.
//! - [`plan`]: explicit plans of actions and faults, drawn from a seed or from bytes, or written by hand.
//! - [`run`]: plays a plan and holds the world to every invariant of [`invariants`]; [`shrink`] makes a failing one small.
//! - [`large`]: a world of hundreds of sessions, to compare runs by.
//! - [`replay`]: plays the capture of a real service.
//! - [`fuzzing`]: the bodies of the fuzz targets over machines.
//! - [`mod@json`]: reading the values that clients see.
//!
//! All is a function of the seed: no clock, no threads, no randomness of the system.

pub mod chaos;
pub mod coverage;
pub mod explain;
pub mod fuzzing;
pub mod invariants;
pub mod json;
pub mod large;
mod net;
pub mod node;
pub mod plan;
pub mod replay;
pub mod run;
pub mod shrink;
pub mod source;
pub mod world;

pub use json::{at, json, text};
pub use node::{Crash, Node};
pub use plan::{Plan, Profile};
pub use world::{Commit, RelayNode, START, URL, Watch, Who, World};
