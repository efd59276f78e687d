//! Peer text made safe to show (`messaging/1 §12`, "Peer content is untrusted data").
//!
//! [`create_fence`] wraps it for a model: nothing in it can close the fence, or pose as the host. [`terminal_safe`]
//! and [`clean_peer_text`] show it to a person, who is fooled by points that are not seen rather than by tags.
//! [`preview`] is the one line an inbox shows.
//!
//! A text is a sequence of code points. [`Points`] lets a text with lone surrogates be one too, which a Rust string
//! cannot hold; the result never has one.

mod clean;
mod fence;
mod points;
mod preview;
mod reading;
mod tables;

pub use clean::{clean_peer_text, terminal_safe};
pub use fence::{create_fence, letters, neutralise};
pub use points::Points;
pub use preview::preview;
pub use tables::HOST_TAGS;

#[cfg(test)]
mod tests;
