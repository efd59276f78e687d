//! The bodies of the fuzz targets, here so that every build compiles them.
//!
//! One file and one function for each target of `fuzz/`. A function takes any bytes and panics only when a
//! property of this crate is broken. The same functions run in the crate's tests over small inputs.

mod draw;
mod edit;
mod envelope_open;
mod jcs;
mod samples;
mod wire;
mod world;

pub use draw::Draw;
pub use edit::edited;
pub use envelope_open::envelope_open;
pub use jcs::jcs;
pub use wire::wire;
pub use world::{Machine, World};
