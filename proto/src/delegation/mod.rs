//! Delegation chains (`messaging/1 §6.7`): who asked whom, for which task, hop by hop.
//!
//! A grant is one signed statement by the machine that delegates. A chain is the grants from the first asker to
//! the session now asked. Every later grant may only narrow what the one before it allowed.
//!
//! [`create_grant`] makes the next grant, [`verify_chain`] checks a whole chain for the hop it arrived on, and
//! [`Summary`] is what a client shows of it.

mod create;
mod error;
mod shape;
mod summary;
mod verify;

pub use create::{NewGrant, create_grant};
pub use error::DelegationError;
pub use shape::Grant;
pub use summary::Summary;
pub use verify::{Hop, grant_hash, verify_chain};
