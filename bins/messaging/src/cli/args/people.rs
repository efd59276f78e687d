//! Verbs about people, consent and agents.

use argh::{ArgsInfo, FromArgs};

/// the agents you can reach, and when each would see a message
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "contacts", example = "messaging contacts\nmessaging contacts --json")]
pub(crate) struct Contacts {}

/// find people by name
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "people", example = "messaging people bo")]
pub(crate) struct People {
    /// part of a name
    #[argh(positional)]
    pub(crate) query: String,
}

/// one person: machines, agents, what you may send them
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "person", example = "messaging person bob")]
pub(crate) struct Person {
    /// the person's name
    #[argh(positional)]
    pub(crate) person: String,
}

/// what you let people and channels do
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "grants",
    example = "messaging grants\nmessaging grants bob\nmessaging grants \"#eng\""
)]
pub(crate) struct Grants {
    /// only for this person or #channel
    #[argh(positional)]
    pub(crate) subject: Option<String>,
}

/// set what a person or a channel's members may do
#[derive(ArgsInfo, FromArgs)]
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
    #[argh(option, arg_name = "level")]
    pub(crate) chat: Option<String>,
    /// lines from their agents: open or blocked
    #[argh(option, arg_name = "level")]
    pub(crate) agent_mail: Option<String>,
    /// mail and tasks to your agents: open, request or no
    #[argh(option, arg_name = "level")]
    pub(crate) ask: Option<String>,
    /// run their requests with your agents' own permissions, for this many days, at most 90; alone, for 30
    /// (needs --ask open)
    #[argh(option, arg_name = "days")]
    pub(crate) trust: Option<String>,
    /// whether people find you by email: yes or no (only on yourself)
    #[argh(option, arg_name = "answer")]
    pub(crate) discoverable: Option<String>,
    /// back to the defaults
    #[argh(switch)]
    pub(crate) clear: bool,
    /// do not ask
    #[argh(switch)]
    pub(crate) yes: bool,
}

/// what waits for your answer; with --answer, answer one after the other
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "requests", example = "messaging requests\nmessaging requests --answer")]
pub(crate) struct Requests {
    /// show each and ask what to do with it
    #[argh(switch)]
    pub(crate) answer: bool,
}

/// whether your signed contact card went to a person (only with a hosted directory, which this build does not have)
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "card", example = "messaging card bob")]
pub(crate) struct Card {
    /// the person's name
    #[argh(positional)]
    pub(crate) person: String,
}

/// ask a person of another organisation to accept messages from you (only with a hosted directory, which this build does not have)
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "contact",
    example = "messaging contact carol@example.org \"Hello, this is alice\""
)]
pub(crate) struct Contact {
    /// the person's email address
    #[argh(positional)]
    pub(crate) email: String,
    /// what to tell them
    #[argh(positional)]
    pub(crate) text: String,
}

/// answer a request that is held for you
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "answer",
    example = "messaging answer 01M7… once\nmessaging answer 01M7… always --yes",
    note = "`once` and `always` let the request through, and the agent is told to treat it with care (it is \"guarded\"): only `messaging grant <person> --ask open --trust` lets somebody's requests run with your agents' own permissions."
)]
pub(crate) struct Answer {
    /// the request's id (`messaging requests` lists them)
    #[argh(positional)]
    pub(crate) id: String,
    /// once, always, decline or block (accept: a contact request)
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
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "agents", example = "messaging agents")]
pub(crate) struct Agents {}

/// one of your agents
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "agent",
    example = "messaging agent planner\nmessaging agent planner --with agent:bob/builder"
)]
pub(crate) struct Agent {
    /// the agent's name
    #[argh(positional)]
    pub(crate) name: String,
    /// one conversation of it: agent:<person>/<agent>
    #[argh(option, arg_name = "conversation")]
    pub(crate) with: Option<String>,
}

/// news for you: lines others wrote, requests, and what changed about your machines
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "notices",
    example = "messaging notices\nmessaging notices --ack\nmessaging notices --follow"
)]
pub(crate) struct Notices {
    /// mark them seen
    #[argh(switch)]
    pub(crate) ack: bool,
    /// print new ones as they come
    #[argh(switch)]
    pub(crate) follow: bool,
}
