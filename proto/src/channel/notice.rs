//! What a machine writes about a change (contract delegation-consent §3.2). Made of names and codes only, never of
//! text a peer wrote.

use crate::name::{ChannelName, PersonId};
use crate::payload::CodeText;

/// `by` created the channel with the other `persons`.
pub(super) fn created(local: &ChannelName, by: &PersonId, persons: &[PersonId]) -> String {
    let others = names(persons.iter().filter(|person| *person != by));
    if others.is_empty() {
        format!("{by} created #{local}")
    } else {
        format!("{by} created #{local} with {others}")
    }
}

/// `by` added these persons.
pub(super) fn added(local: &ChannelName, by: &PersonId, persons: &[PersonId]) -> String {
    format!("{by} added {} to #{local}", names(persons))
}

/// `by` left.
pub(super) fn left(local: &ChannelName, by: &PersonId) -> String {
    format!("{by} left #{local}")
}

/// `by` put these persons out.
pub(super) fn removed(local: &ChannelName, by: &PersonId, persons: &[PersonId]) -> String {
    format!("{by} removed {} from #{local}", names(persons))
}

/// A change did not reach `person`.
pub(super) fn refused(local: &ChannelName, person: &PersonId, code: &CodeText) -> String {
    format!("{person} did not get a change of #{local}: {code}")
}

fn names<'a>(persons: impl IntoIterator<Item = &'a PersonId>) -> String {
    persons.into_iter().map(PersonId::as_str).collect::<Vec<_>>().join(", ")
}
