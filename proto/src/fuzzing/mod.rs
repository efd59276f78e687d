//! The bodies of the fuzz targets, here so that every build compiles them.
//!
//! One file and one function for each target of `fuzz/`. A function takes any bytes and panics only when a
//! property of this crate is broken. The same functions run in the crate's tests over small inputs.

mod draw;
mod jcs;
mod wire;

pub use draw::Draw;
pub use jcs::jcs;
pub use wire::wire;
