//! `messaging/1` as pure functions: bytes to values and back, signatures, seals and rules.
//!
//! Nothing here does I/O, reads a clock or draws randomness: time, keys and random bytes are arguments.
//! No input makes it panic, and every check costs time linear in its input.
//!
//! Start at [`json`] for the strict wire grammar, [`roster`] for who is in a team, [`envelope`] for what
//! travels, and [`frame`] for how the relay speaks.

pub mod a2a;
pub mod address;
pub mod b64;
pub mod b64u;
pub mod card;
pub mod channel;
pub mod code;
pub mod consent;
pub mod delegation;
pub mod domain;
pub mod envelope;
pub mod frame;
#[doc(hidden)]
pub mod fuzzing;
pub mod hash;
pub mod identity;
pub mod json;
pub mod key;
pub mod limits;
pub mod meaning;
pub mod name;
pub mod nonce;
pub mod pacing;
pub mod payload;
pub mod provenance;
pub mod realm;
pub mod relay_url;
pub mod roster;
pub mod secret;
pub mod task;
pub mod text;
pub mod ticket;
pub mod time;
pub mod ulid;
pub mod units;
pub mod verified;

mod text_form;
mod wipe;

pub use code::Code;
