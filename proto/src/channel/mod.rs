//! Chats: direct lines and channels (`messaging/1 §6.8`; contract delegation-consent §3).
//!
//! A channel has no key and no server: each machine keeps its own record of it, and changes that record by the same
//! rules. [`apply`] is those rules for one chat envelope that arrived; [`fan_out`] says which machines a change or
//! a line goes to. What is filed is a [`Line`], and [`line_state`] says how far an outgoing one has come.
//!
//! Nothing here holds the chats: they are read through [`Chats`], and an [`Effect`] says what to write. Consent and
//! the inbound rate come before all of it.

mod apply;
mod chats;
mod delivery;
mod error;
mod fan_out;
mod line;
mod notice;

pub use apply::{Arrival, Effect, apply};
pub use chats::{Channel, Chats, People, is_kept, local_name};
pub use delivery::{CopyResult, LineState, line_state, refused_change};
pub use error::ChannelError;
pub use fan_out::{Copy, fan_out, fan_out_direct};
pub use line::{Line, line_text, mark_read};

/// Most channels one machine holds (`channelsHeld`, a policy number).
pub const CHANNELS_HELD: usize = 200;
/// Most lines kept of one person (`personLines`, a policy number); their oldest are deleted first.
pub const PERSON_LINES: usize = 10_000;
/// Most bytes of text kept of one person (`personLineBytes`, a policy number), in UTF-8.
pub const PERSON_LINE_BYTES: usize = 16_777_216;
