//! How far an outgoing line has come (contract delegation-consent §3.4).

use crate::Code;
use crate::name::PersonId;
use crate::payload::CodeText;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What became of one copy of a line or a change. Settled once: only `Pending` and `Held` change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyResult {
    /// Nothing yet.
    Pending,
    /// Its machine has it.
    Delivered,
    /// A message request that waits for its person.
    Held,
    /// Refused, by its machine or on the way, or its machine is gone.
    Rejected(CodeText),
    /// Its lifetime ended first.
    Expired,
}

impl CopyResult {
    /// The code of a copy that did not arrive and never will.
    fn failure(&self) -> Option<CodeText> {
        match self {
            Self::Rejected(code) => Some(code.clone()),
            Self::Expired => Some(Code::Expired.into()),
            Self::Pending | Self::Delivered | Self::Held => None,
        }
    }

    fn is_declined(&self) -> bool {
        matches!(self, Self::Rejected(code) if code.known() == Some(Code::Declined))
    }
}

/// The delivery state of an outgoing line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineState {
    /// On its way, at least to someone.
    Sent,
    /// Everyone has it.
    Delivered,
    /// A message request that waits for its person.
    Held,
    /// These persons will not have it, in the order of the copies.
    Refused(Vec<PersonId>),
}

impl LineState {
    /// The state's name in the daemon's API.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Delivered => "delivered",
            Self::Held => "held",
            Self::Refused(_) => "refused",
        }
    }
}

/// What the copies to one person have come to.
struct Person<'a> {
    person: &'a PersonId,
    delivered: bool,
    failed: bool,
    declined: bool,
}

/// The state of a line from its copies to other persons; `request` when it is a message request. A line with no
/// such copy has none.
#[must_use]
pub fn line_state<'a>(
    request: bool,
    copies: impl IntoIterator<Item = (&'a PersonId, &'a CopyResult)>,
) -> Option<LineState> {
    let mut places = BTreeMap::new();
    let mut persons: Vec<Person<'a>> = Vec::new();
    let (mut pending, mut held) = (false, false);
    for (person, result) in copies {
        let place = *places.entry(person).or_insert_with(|| {
            persons.push(Person { person, delivered: false, failed: true, declined: false });
            persons.len() - 1
        });
        pending |= *result == CopyResult::Pending;
        held |= *result == CopyResult::Held;
        if let Some(one) = persons.get_mut(place) {
            one.delivered |= *result == CopyResult::Delivered;
            one.failed &= result.failure().is_some();
            // §6.9 one device's "no" to a request is its person's.
            one.declined |= request && result.is_declined();
        }
    }
    if persons.is_empty() {
        return None;
    }
    let refused: Vec<_> = persons.iter().filter(|one| one.failed || one.declined).collect();
    Some(if !refused.is_empty() {
        LineState::Refused(refused.into_iter().map(|one| one.person.clone()).collect())
    } else if persons.iter().all(|one| one.delivered) {
        LineState::Delivered
    } else if request && held && !pending {
        LineState::Held
    } else {
        LineState::Sent
    })
}

/// The code for the notice that one person did not get a change, from all copies to that person: the first one's,
/// once every copy has failed (`messaging/1 §6.8`, "Delivery"). The notice is [`super::Line::refused`].
#[must_use]
pub fn refused_change<'a>(copies: impl IntoIterator<Item = &'a CopyResult>) -> Option<CodeText> {
    let codes: Option<Vec<CodeText>> = copies.into_iter().map(CopyResult::failure).collect();
    codes?.into_iter().next()
}
