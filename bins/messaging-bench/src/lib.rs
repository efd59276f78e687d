//! A client of real relays: connections, teams of synthetic machines, signed envelopes, the relay process.
//!
//! The benchmark program drives a relay with it, and so do the tests of the relay process.

pub mod link;
pub mod relay;
pub mod team;

/// Anything that stops a workload.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;
