//! Verbs about people, consent and agents.

use argh::FromArgs;

/// the agents you can reach, and when each would see a message
#[derive(FromArgs)]
#[argh(subcommand, name = "contacts")]
pub(crate) struct Contacts {}

/// find people by name
#[derive(FromArgs)]
#[argh(subcommand, name = "people")]
pub(crate) struct People {
    /// part of a name
    #[argh(positional)]
    pub(crate) query: String,
}

/// one person: machines, agents, what you may send them
#[derive(FromArgs)]
#[argh(subcommand, name = "person")]
pub(crate) struct Person {
    /// the person's name
    #[argh(positional)]
    pub(crate) person: String,
}

/// what you let people and channels do
#[derive(FromArgs)]
#[argh(subcommand, name = "grants")]
pub(crate) struct Grants {
    /// only for this person or #channel
    #[argh(positional)]
    pub(crate) subject: Option<String>,
}

/// set what a person or a channel's members may do
#[derive(FromArgs)]
#[argh(
    subcommand,
    name = "grant",
    example = "messaging grant bob --ask open\nmessaging grant bob --chat blocked --yes\nmessaging grant bob --clear",
    note = "Levels you leave out fall back to the defaults of the team."
)]
pub(crate) struct Grant {
    /// a person or #channel
    #[argh(positional)]
    pub(crate) subject: String,
    /// lines from them: open, muted or blocked
    #[argh(option)]
    pub(crate) chat: Option<String>,
    /// lines from their agents: open or blocked
    #[argh(option)]
    pub(crate) agent_mail: Option<String>,
    /// mail and tasks to your agents: open, request or no
    #[argh(option)]
    pub(crate) ask: Option<String>,
    /// run their requests with your agents' own permissions, for this many days (needs --ask open)
    #[argh(option)]
    pub(crate) trust: Option<u64>,
    /// whether people find you by email: yes or no (only on yourself)
    #[argh(option)]
    pub(crate) discoverable: Option<String>,
    /// back to the defaults
    #[argh(switch)]
    pub(crate) clear: bool,
    /// do not ask
    #[argh(switch)]
    pub(crate) yes: bool,
}

/// what waits for your answer
#[derive(FromArgs)]
#[argh(subcommand, name = "requests")]
pub(crate) struct Requests {}

/// answer a request that is held for you
#[derive(FromArgs)]
#[argh(
    subcommand,
    name = "answer",
    example = "messaging answer 01M7… once\nmessaging answer 01M7… always --yes"
)]
pub(crate) struct Answer {
    /// the request's id (`messaging requests` lists them)
    #[argh(positional)]
    pub(crate) id: String,
    /// once, always, decline or block
    #[argh(positional)]
    pub(crate) answer: String,
    /// every request held from that person
    #[argh(switch)]
    pub(crate) all: bool,
    /// do not ask
    #[argh(switch)]
    pub(crate) yes: bool,
}

/// your agents on this machine and their traffic
#[derive(FromArgs)]
#[argh(subcommand, name = "agents")]
pub(crate) struct Agents {}

/// one of your agents
#[derive(FromArgs)]
#[argh(subcommand, name = "agent")]
pub(crate) struct Agent {
    /// the agent's name
    #[argh(positional)]
    pub(crate) name: String,
    /// one conversation of it: agent:<person>/<agent>
    #[argh(option)]
    pub(crate) with: Option<String>,
}

/// what you were told about
#[derive(FromArgs)]
#[argh(subcommand, name = "notices")]
pub(crate) struct Notices {
    /// mark them seen
    #[argh(switch)]
    pub(crate) ack: bool,
    /// print new ones as they come
    #[argh(switch)]
    pub(crate) follow: bool,
}
