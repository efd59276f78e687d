//! How far a delivery has come, as its sender sees it (`messaging/1 §8.4`).

use crate::payload;
use serde::{Deserialize, Serialize};

/// A delivery's stage. It only moves forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The sending daemon has stored it.
    Accepted,
    /// The relay has it.
    Relayed,
    /// The recipient's daemon has stored it.
    Delivered,
    /// The recipient's daemon holds it for its person to answer.
    Held,
    /// A client handed it to the agent.
    HandedToAgent,
    /// The agent has read it.
    Read,
    /// A message that answers it arrived.
    Replied,
    /// It was refused, with a code.
    Rejected,
    /// Its lifetime was over before it arrived.
    Expired,
}

use Stage::{Accepted, Delivered, Expired, HandedToAgent, Held, Read, Rejected, Relayed, Replied};

impl Stage {
    /// Every stage, in order; the two ends last.
    pub const ALL: [Self; 9] =
        [Accepted, Relayed, Delivered, Held, HandedToAgent, Read, Replied, Rejected, Expired];

    /// The stage's text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Accepted => "accepted",
            Relayed => "relayed",
            Delivered => "delivered",
            Held => "held",
            HandedToAgent => "handed_to_agent",
            Read => "read",
            Replied => "replied",
            Rejected => "rejected",
            Expired => "expired",
        }
    }

    /// The stage with this text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == text)
    }

    /// Whether nothing moves a delivery any more: answered, refused or expired.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Replied | Rejected | Expired)
    }

    /// The stage after news of `new` (`messaging/1 §8.4`): never an earlier one.
    ///
    /// Steps may be missing, since receipts travel on their own. The ends follow every stage but the final ones.
    #[must_use]
    pub fn advance(self, new: Self) -> Self {
        if !self.is_final() && new.rank() > self.rank() { new } else { self }
    }

    /// The place in the order. The two ends come after everything that can still end.
    const fn rank(self) -> u8 {
        match self {
            Accepted => 0,
            Relayed => 1,
            Delivered => 2,
            Held => 3,
            HandedToAgent => 4,
            Read => 5,
            Replied | Rejected | Expired => 6,
        }
    }
}

/// The stage a receipt proves.
impl From<payload::Stage> for Stage {
    fn from(stage: payload::Stage) -> Self {
        match stage {
            payload::Stage::Delivered => Delivered,
            payload::Stage::Held => Held,
            payload::Stage::HandedToAgent => HandedToAgent,
            payload::Stage::Read => Read,
            payload::Stage::Rejected => Rejected,
        }
    }
}
