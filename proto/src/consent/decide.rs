//! What happens to something that arrived (`messaging/1 §6.9`, "Evaluation").

use super::{AskPolicy, ChatPolicy, MailPolicy, Policy, Relation, Source};
use crate::Code;
use crate::name::PersonId;
use serde::{Deserialize, Serialize};

/// What arrived.
#[derive(Clone, Copy, Debug)]
pub enum Kind<'a> {
    /// An answer to the person's own traffic: see [`crate::task::Bound::Answer`].
    Answer,
    /// A DM line or a channel post by the person.
    PersonLine,
    /// A DM line or a channel post by one of the person's agents.
    AgentLine,
    /// Any other change of a channel.
    Change,
    /// Mail or a task request to an agent, and the persons of its delegation chain: for mail, the sender alone.
    Ask(&'a [&'a PersonId]),
    /// A message request.
    Request,
}

/// Everything [`decide`] reads.
#[derive(Clone, Copy, Debug)]
pub struct DecideInput<'a> {
    /// How the sender relates to the receiver.
    pub relation: Relation,
    /// What arrived.
    pub kind: Kind<'a>,
    /// The sending person.
    pub sender: &'a PersonId,
    /// The receiving person.
    pub receiver: &'a PersonId,
    /// The policy for the sender now.
    pub policy: &'a Policy,
}

/// With whose permissions something is handled. Clients take it from here, never from the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The person's own.
    #[serde(rename = "self")]
    Own,
    /// A peer's turn: no shell, quarantined writes, replies to the asker only.
    Guarded,
    /// The agent's own permissions.
    Trusted,
}

/// What to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Deliver it.
    Deliver {
        /// With whose permissions.
        class: Class,
        /// Without a notification.
        silent: bool,
    },
    /// Keep it for the person to answer.
    Hold,
    /// Refuse it with this code.
    Refuse(Code),
}

impl Decision {
    const fn deliver(class: Class) -> Self {
        Self::Deliver { class, silent: false }
    }
}

/// Decides (`messaging/1 §6.9`). The first rule that fits wins, in the specification's order.
#[must_use]
pub fn decide(input: DecideInput<'_>) -> Decision {
    let DecideInput { relation, kind, policy, .. } = input;
    if relation == Relation::Own {
        return Decision::deliver(Class::Own);
    }
    let trusted = policy.trusted_until.is_some();
    let stranger = relation == Relation::Stranger;
    match kind {
        // §6.9 before the block: a grant change never strands what the person started.
        Kind::Answer => Decision::deliver(if trusted { Class::Trusted } else { Class::Guarded }),
        _ if policy.chat == ChatPolicy::Blocked => Decision::Refuse(Code::Refused),
        Kind::Request if stranger => Decision::Hold,
        Kind::Request | Kind::PersonLine => person_line(policy.chat),
        Kind::AgentLine => match policy.agent_mail {
            MailPolicy::Always | MailPolicy::Open => Decision::deliver(Class::Guarded),
            MailPolicy::Blocked if stranger && policy.source.agent_mail == Source::Default => {
                Decision::Refuse(Code::RequestRequired)
            }
            MailPolicy::Blocked => Decision::Refuse(Code::Refused),
        },
        Kind::Change if stranger => Decision::Refuse(Code::RequestRequired),
        Kind::Change => Decision::deliver(Class::Guarded),
        Kind::Ask(chain) => match policy.ask {
            // §6.9 the chain rule: no third person gets in through a trusted one's agent.
            AskPolicy::Always | AskPolicy::Open => {
                let between = chain.iter().all(|person| *person == input.sender || *person == input.receiver);
                Decision::deliver(if trusted && between { Class::Trusted } else { Class::Guarded })
            }
            AskPolicy::Request => Decision::Hold,
            AskPolicy::No
                if policy.source.ask == Source::Default
                    && matches!(relation, Relation::Contact | Relation::Stranger) =>
            {
                Decision::Refuse(Code::RequestRequired)
            }
            AskPolicy::No => Decision::Refuse(Code::Refused),
        },
    }
}

const fn person_line(chat: ChatPolicy) -> Decision {
    match chat {
        ChatPolicy::Always | ChatPolicy::Open => Decision::deliver(Class::Guarded),
        ChatPolicy::Muted => Decision::Deliver { class: Class::Guarded, silent: true },
        ChatPolicy::Blocked => Decision::Refuse(Code::Refused),
        ChatPolicy::RequestRequired => Decision::Refuse(Code::RequestRequired),
    }
}
