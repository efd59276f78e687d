//! The verb that agents run, not people.

use argh::{ArgsInfo, FromArgs};

/// tell an agent, from its own hooks, what waits for it; prints nothing when nothing does
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "hook",
    example = "messaging hook claude-code --print-config\nmessaging hook codex --print-config",
    note = "The agent runs it with the hook's JSON on standard input, beside messaging-mcp. It never fails and never waits: with no daemon, no server or nothing new it prints nothing. At the end of a turn it says only how much waits, and once."
)]
pub(crate) struct Hook {
    /// which agent's hooks: claude-code or codex
    #[argh(positional)]
    pub(crate) agent: String,
    /// the session, where the agent runs several messaging-mcp
    #[argh(option)]
    pub(crate) name: Option<String>,
    /// print the configuration that runs it, and exit
    #[argh(switch)]
    pub(crate) print_config: bool,
}
