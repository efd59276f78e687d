//! Credentials in what is about to be sent (`messaging/1 §8.7`; contract ipc §10).
//!
//! Each kind is a format that a provider issues: a fixed start, an alphabet, a length, and for most a tail that
//! mixes kinds of characters as issued keys do. The check guards against accidents; it is no data-loss prevention.
//! A finding names where and which kind, never any of the text.

mod matcher;
mod pem;
mod table;
mod walk;

pub use walk::{Field, Finding, find};

/// The kind of credential a text holds, by the first row of the table that matches anywhere in it.
///
/// Linear in the text.
#[must_use]
pub fn kind_of(text: &str) -> Option<&'static str> {
    table::ROWS.iter().find(|row| row.is_in(text)).map(|row| row.kind)
}
