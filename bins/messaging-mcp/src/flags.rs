//! The arguments.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a usage error, the help and the version are printed"
)]

use crate::serve;
use argh::FromArgs;
use messaging_proto::name::{ChannelName, SessionName};
use messaging_smol::home::Home;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Gives an agent the Messaging tools over MCP on standard input and output.
#[derive(FromArgs)]
struct Flags {
    /// home of the daemon (default: $MESSAGING_HOME, else ~/.messaging)
    #[argh(option)]
    home: Option<PathBuf>,
    /// name of the agent's session (default: mcp)
    #[argh(option, default = "String::from(\"mcp\")")]
    name: String,
    /// channel the agent may read and write; may be repeated (default: none)
    #[argh(option)]
    channel: Vec<String>,
    /// print the version and exit
    #[argh(switch)]
    version: bool,
}

/// What the process was asked to be.
pub(crate) struct Settings {
    pub(crate) home: Home,
    pub(crate) name: SessionName,
    /// The channels its person opened to it, by their local names.
    pub(crate) channels: BTreeSet<ChannelName>,
}

/// Runs `messaging-mcp` with the process's arguments, the program's name first.
#[must_use]
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let mut texts = Vec::new();
    for argument in arguments.into_iter().skip(1) {
        match argument.into_string() {
            Ok(text) => texts.push(text),
            Err(_) => return usage("an argument is not UTF-8 text"),
        }
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let flags = match Flags::from_args(&["messaging-mcp"], &texts) {
        Ok(flags) => flags,
        Err(early) if early.status.is_ok() => {
            println!("{}", early.output.trim_end());
            return ExitCode::SUCCESS;
        }
        Err(early) => return usage(early.output.trim_end()),
    };
    if flags.version {
        println!("messaging-mcp {} (protocol messaging/1)", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    match settings(flags) {
        Ok(settings) => serve::run(settings),
        Err(message) => usage(message),
    }
}

fn settings(flags: Flags) -> Result<Settings, &'static str> {
    let home = flags.home.as_deref().map(Home::new).or_else(Home::from_env);
    let mut channels = BTreeSet::new();
    for channel in &flags.channel {
        let name = ChannelName::parse(channel.strip_prefix('#').unwrap_or(channel));
        channels.insert(name.ok_or("--channel is not the name of a channel")?);
    }
    Ok(Settings {
        home: home.ok_or("there is no home folder: neither --home, $MESSAGING_HOME nor $HOME is set")?,
        name: SessionName::parse(&flags.name).ok_or("--name is not the name of a session")?,
        channels,
    })
}

fn usage(message: &str) -> ExitCode {
    eprintln!("messaging-mcp: usage: {message}\nNext: run `messaging-mcp --help`.");
    ExitCode::from(2)
}
