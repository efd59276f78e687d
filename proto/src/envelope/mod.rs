//! What travels between machines (`messaging/1 §5`): the envelope, its checks, its seal.
//!
//! A received envelope goes through three hands. [`Inspected`] does the work that needs no realm and no clock,
//! once: schema, canonical text, signature. [`verify_envelope`] judges it against a realm and a clock.
//! [`open_envelope`] opens the seal and checks what was in it. The way out is [`seal_envelope`] and
//! [`seal_presence`].

mod crypt;
mod cut;
mod ends;
mod error;
mod header;
mod inspect;
mod loose;
mod open;
mod seal;
mod verify;

pub use crate::realm::Anchor;
pub use ends::{End, To};
pub use error::{EnvelopeError, TimeFault};
pub use header::{Body, Class, Envelope, Header, Kind, SealParams};
pub use inspect::Inspected;
pub use loose::{Loose, LooseType, LooseVersion};
pub use open::{open_envelope, stale_seal};
pub use seal::{HeaderParts, Sealed, seal_envelope, seal_header, seal_presence, sign_presence_header};
pub use verify::{check_time, signed_head, verify_envelope};
