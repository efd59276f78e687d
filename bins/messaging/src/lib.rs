//! Wiring shared by the three executables: arguments in, one call, an exit status out.
//!
//! [`cli`] is `messaging`, [`messagingd`] the daemon and [`relay`] the relay. One executable can be all three:
//! `messaging relay …` and `messaging daemon run …` parse the same flags as the others.

pub mod cli;
mod demo;
mod flags;
pub mod messagingd;
pub mod relay;
mod ui;
