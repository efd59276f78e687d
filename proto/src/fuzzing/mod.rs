//! The bodies of the fuzz targets, here so that every build compiles them.
//!
//! One file and one function for each target of `fuzz/`. A function takes any bytes and panics only when a
//! property of this crate is broken. The same functions run in the crate's tests over small inputs.

mod chain_verify;
mod draw;
mod edit;
mod envelope_open;
mod fence;
mod frame;
mod grant_verify;
mod jcs;
mod roster_apply;
mod samples;
mod ticket;
mod wire;
mod world;

pub use chain_verify::chain_verify;
pub use draw::Draw;
pub use edit::edited;
pub use envelope_open::envelope_open;
pub use fence::fence;
pub use frame::frame;
pub use grant_verify::grant_verify;
pub use jcs::jcs;
pub use roster_apply::roster_apply;
pub use ticket::ticket;
pub use wire::wire;
pub use world::{Machine, World};
