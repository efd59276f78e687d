//! What a sender may do: the grants that count, over the defaults of the relation.

use super::{AgentMail, Ask, Chat, Levels};
use crate::time::Wall;
use serde::{Deserialize, Serialize};

/// How a sender relates to the receiving person (`messaging/1 §6.9`, "Relations").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// The receiver's own person.
    #[serde(rename = "self")]
    Own,
    /// Another person of the same roster, or of the same org in a directory.
    Org,
    /// A person of another org to whom the receiver granted something.
    Contact,
    /// Anyone else.
    Stranger,
}

impl Relation {
    /// The relation in a roster realm, which knows only one's own person and the team.
    #[must_use]
    pub fn in_roster(own: bool) -> Self {
        if own { Self::Own } else { Self::Org }
    }
}

/// Where a level of a [`Policy`] comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The grant about the sender.
    Person,
    /// A grant about a channel the sender is in.
    Channel,
    /// The relation's default.
    Default,
}

/// What happens to a person's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatPolicy {
    /// One's own: no question.
    Always,
    /// Delivered.
    Open,
    /// Delivered without a notification.
    Muted,
    /// Refused, with everything else.
    Blocked,
    /// Refused until the sender's message request is accepted.
    RequestRequired,
}

/// What happens to lines by a person's agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailPolicy {
    /// One's own: no question.
    Always,
    /// Delivered.
    Open,
    /// Refused.
    Blocked,
}

/// What happens to mail and tasks for the person's agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskPolicy {
    /// One's own: no question.
    Always,
    /// Delivered.
    Open,
    /// Held for the person.
    Request,
    /// Refused.
    No,
}

/// Where each level of a [`Policy`] comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sources {
    /// Of [`Policy::chat`].
    pub chat: Source,
    /// Of [`Policy::agent_mail`].
    pub agent_mail: Source,
    /// Of [`Policy::ask`].
    pub ask: Source,
}

/// The levels that hold for one sender now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// For the person's lines.
    pub chat: ChatPolicy,
    /// For their agents' lines.
    pub agent_mail: MailPolicy,
    /// For mail and tasks.
    pub ask: AskPolicy,
    /// Until when the sender is trusted; always later than the clock the policy was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_until: Option<Wall>,
    /// Where the levels come from.
    pub source: Sources,
}

impl From<Chat> for ChatPolicy {
    fn from(level: Chat) -> Self {
        match level {
            Chat::Open => Self::Open,
            Chat::Muted => Self::Muted,
            Chat::Blocked => Self::Blocked,
        }
    }
}

impl From<AgentMail> for MailPolicy {
    fn from(level: AgentMail) -> Self {
        match level {
            AgentMail::Open => Self::Open,
            AgentMail::Blocked => Self::Blocked,
        }
    }
}

impl From<Ask> for AskPolicy {
    fn from(level: Ask) -> Self {
        match level {
            Ask::Open => Self::Open,
            Ask::Request => Self::Request,
            Ask::No => Self::No,
        }
    }
}

/// The defaults of a relation (`messaging/1 §6.9`, "Effective policy").
const fn defaults(relation: Relation) -> Policy {
    let source = Sources { chat: Source::Default, agent_mail: Source::Default, ask: Source::Default };
    let (chat, agent_mail, ask) = match relation {
        Relation::Own => (ChatPolicy::Always, MailPolicy::Always, AskPolicy::Always),
        Relation::Org => (ChatPolicy::Open, MailPolicy::Open, AskPolicy::Request),
        Relation::Contact => (ChatPolicy::Open, MailPolicy::Blocked, AskPolicy::No),
        Relation::Stranger => (ChatPolicy::RequestRequired, MailPolicy::Blocked, AskPolicy::No),
    };
    Policy { chat, agent_mail, ask, trusted_until: None, source }
}

/// The policy for a sender (`effectivePolicy`, `messaging/1 §6.9`).
///
/// `person` is what the grant about the sender sets, `channels` what the grants about the channels set that the
/// sender is in, in this receiver's own view; only grants whose signer is a current device are passed.
#[must_use]
pub fn effective_policy(
    relation: Relation,
    person: Option<&Levels>,
    channels: &[&Levels],
    now: Wall,
) -> Policy {
    let mut policy = defaults(relation);
    if relation == Relation::Own {
        return policy;
    }
    let empty = Levels::default();
    let person = person.unwrap_or(&empty);
    if let Some(chat) = person.chat {
        policy.chat = chat.into();
        policy.source.chat = Source::Person;
    }
    if let Some(mail) = person.agent_mail {
        policy.agent_mail = mail.into();
        policy.source.agent_mail = Source::Person;
    } else if let Some(mail) = most_permissive_mail(channels) {
        policy.agent_mail = mail.into();
        policy.source.agent_mail = Source::Channel;
    }
    if let Some(ask) = person.ask {
        policy.ask = ask.into();
        policy.source.ask = Source::Person;
    } else if let Some(ask) = most_permissive_ask(channels) {
        policy.ask = ask.into();
        policy.source.ask = Source::Channel;
    }
    // §6.9 only the person grant trusts, and only while it lets asks in; a past end reads as absent.
    if person.ask == Some(Ask::Open) {
        policy.trusted_until = person.trusted_until.filter(|until| *until > now);
    }
    policy
}

fn most_permissive_mail(channels: &[&Levels]) -> Option<AgentMail> {
    let set = || channels.iter().filter_map(|levels| levels.agent_mail);
    set().find(|mail| *mail == AgentMail::Open).or_else(|| set().next())
}

fn most_permissive_ask(channels: &[&Levels]) -> Option<Ask> {
    let sets = |level| channels.iter().any(|levels| levels.ask == Some(level));
    [Ask::Open, Ask::Request, Ask::No].into_iter().find(|level| sets(*level))
}
