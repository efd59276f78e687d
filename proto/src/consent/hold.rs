//! What waits for the person, and what their answer does (`messaging/1 §6.9`, "Holds", "Message requests").

use super::{Ask, Chat, Levels};
use crate::Code;
use crate::limits::{HELD_PER_SENDER, HELD_TOTAL};
use crate::time::Wall;
use serde::{Deserialize, Serialize};

/// Whether an ask may be held (`messaging/1 §6.9`, "Holds").
///
/// `chain` is the code its delegation chain failed with, if it has one that fails. `from_sender` and `in_all` count
/// what is held already.
///
/// # Errors
/// The code of the refusal.
pub fn hold(session_known: bool, chain: Option<Code>, from_sender: usize, in_all: usize) -> Result<(), Code> {
    if !session_known {
        return Err(Code::UnknownSession);
    }
    if let Some(code) = chain {
        return Err(code);
    }
    if from_sender >= HELD_PER_SENDER || in_all >= HELD_TOTAL {
        return Err(Code::RateLimited);
    }
    Ok(())
}

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// Mail or a task for an agent.
    Ask,
    /// A message request.
    Contact,
    /// An agent's wish for a contact.
    Suggestion,
}

/// The person's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Let this one through.
    Once,
    /// Let this sender's asks through from now on.
    Always,
    /// Take the sender as a contact.
    Accept,
    /// Refuse this one.
    Decline,
    /// Refuse this sender altogether.
    Block,
}

/// What happens to the held thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It passes the inbound policy and is delivered, `guarded`.
    Deliver,
    /// It is refused with `declined`.
    Declined,
    /// Its text becomes the sender's first line, and the sender gets a card.
    File,
    /// It goes, and nothing is sent.
    Dismiss,
}

/// What an answer does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The levels of a new grant for the sender; nothing when the grant stays as it is.
    pub levels: Option<Levels>,
    /// What happens to the held thing.
    pub then: Then,
}

/// Applies an answer (`request.answer`, `messaging/1 §6.9`). `levels` is what the sender's grant sets now.
///
/// # Errors
/// [`Code::InvalidRequest`] for an answer this kind does not take.
pub fn answer(kind: Held, answer: Answer, levels: &Levels, now: Wall) -> Result<Answered, Code> {
    // §6.9 the other levels are kept, but an end of trust that is over.
    let mut kept = levels.clone();
    kept.trusted_until = kept.trusted_until.filter(|until| *until > now);
    let (levels, then) = match (kind, answer) {
        (Held::Ask, Answer::Once) => (None, Then::Deliver),
        (Held::Ask, Answer::Always) => (Some(Levels { ask: Some(Ask::Open), ..kept }), Then::Deliver),
        (Held::Contact, Answer::Accept) => (Some(Levels { chat: Some(Chat::Open), ..kept }), Then::File),
        (Held::Ask | Held::Contact, Answer::Decline) => (None, Then::Declined),
        (Held::Ask | Held::Contact, Answer::Block) => {
            (Some(Levels { chat: Some(Chat::Blocked), ..kept }), Then::Declined)
        }
        (Held::Suggestion, Answer::Decline) => (None, Then::Dismiss),
        _ => return Err(Code::InvalidRequest),
    };
    Ok(Answered { levels, then })
}

/// The `ts` of a new grant: the clock, and later than the grant it replaces, so that it wins over it.
#[must_use]
pub fn next_ts(now: Wall, held: Option<Wall>) -> Wall {
    held.map_or(now, |held| now.max(held.plus(1)))
}
