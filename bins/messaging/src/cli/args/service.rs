//! Verbs about the services of this machine.

use argh::{ArgsInfo, FromArgs};
use std::path::PathBuf;

/// run a whole team on this machine for a few seconds and show what happens
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "demo", example = "messaging demo\nmessaging demo --keep")]
pub(crate) struct Demo {
    /// leave it running and print the commands to look around
    #[argh(switch)]
    pub(crate) keep: bool,
}

/// start, stop and ask the daemon of this machine
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "daemon", example = "messaging daemon start\nmessaging daemon status")]
pub(crate) struct Daemon {
    #[argh(subcommand)]
    pub(crate) verb: DaemonVerb,
}

#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand)]
pub(crate) enum DaemonVerb {
    Start(DaemonStart),
    Stop(DaemonStop),
    Status(DaemonStatus),
    Health(DaemonHealth),
    Snapshot(DaemonSnapshot),
}

/// start the daemon in the background, unless one answers already
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "start", example = "messaging daemon start\nmessaging daemon start --wait 60000")]
pub(crate) struct DaemonStart {
    /// how long to wait until it serves, in milliseconds (default 10000)
    #[argh(option, default = "10_000", arg_name = "ms")]
    pub(crate) wait: u64,
}

/// stop the daemon and wait until its process has ended
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "stop", example = "messaging daemon stop")]
pub(crate) struct DaemonStop {}

/// what the daemon is doing, in full
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "status", example = "messaging daemon status\nmessaging daemon status --json")]
pub(crate) struct DaemonStatus {}

/// one line of health, without names or counts
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "health", example = "messaging daemon health --json")]
pub(crate) struct DaemonHealth {}

/// write a consistent copy of the home while the daemon runs
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "snapshot",
    example = "messaging daemon snapshot\nmessaging daemon snapshot --done"
)]
pub(crate) struct DaemonSnapshot {
    /// delete the copy that is held
    #[argh(switch)]
    pub(crate) done: bool,
}

/// who you are, whether the relay is connected, what waits
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "status", example = "messaging status\nmessaging status --watch")]
pub(crate) struct Status {
    /// show it again whenever it changes, until interrupted
    #[argh(switch)]
    pub(crate) watch: bool,
}

/// check this machine's set-up and name a fix for everything that is wrong
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "doctor",
    example = "messaging doctor\nmessaging doctor --json",
    note = "Checks the home and who may write it, the daemon and its release, the store, the team, the relay, and \
            the clock against the relay's. Exit 0 when nothing is wrong, else 1."
)]
pub(crate) struct Doctor {}

/// the daemon's log, readable
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "log",
    example = "messaging log\nmessaging log --lines 200 --level warn\nmessaging log --follow"
)]
pub(crate) struct Log {
    /// how many lines (default 40)
    #[argh(option, default = "40", arg_name = "n")]
    pub(crate) lines: usize,
    /// only lines as serious as this: error, warn, info or debug
    #[argh(option, default = "String::from(\"debug\")")]
    pub(crate) level: String,
    /// print new lines as they come
    #[argh(switch)]
    pub(crate) follow: bool,
}

/// have the system start the daemon of this home (systemd user unit, launchd agent)
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "service",
    example = "messaging service install\nmessaging service show\nmessaging service uninstall"
)]
pub(crate) struct Service {
    #[argh(subcommand)]
    pub(crate) verb: ServiceVerb,
}

#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand)]
pub(crate) enum ServiceVerb {
    Install(ServiceInstall),
    Uninstall(ServiceUninstall),
    Show(ServiceShow),
}

/// write the service's file and say how to start it
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "install",
    example = "messaging service install\nmessaging service install --start"
)]
pub(crate) struct ServiceInstall {
    /// start it now, and at every login
    #[argh(switch)]
    pub(crate) start: bool,
}

/// stop the service and remove its file
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "uninstall", example = "messaging service uninstall")]
pub(crate) struct ServiceUninstall {}

/// print the service's file without writing it
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "show", example = "messaging service show\nmessaging service show --kind launchd")]
pub(crate) struct ServiceShow {
    /// systemd or launchd (default: what this system has)
    #[argh(option, arg_name = "name")]
    pub(crate) kind: Option<String>,
}

/// a completion script for your shell
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "completions",
    example = "messaging completions bash > ~/.local/share/bash-completion/completions/messaging",
    example = "messaging completions zsh > ~/.zfunc/_messaging",
    example = "messaging completions fish > ~/.config/fish/completions/messaging.fish"
)]
pub(crate) struct Completions {
    /// bash, zsh or fish
    #[argh(positional)]
    pub(crate) shell: String,
}

/// write the manual pages into a folder
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "man", example = "messaging man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// the folder; it is made when missing
    #[argh(positional)]
    pub(crate) folder: PathBuf,
}

/// what an error code asks of you, and whether trying again helps
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "explain", example = "messaging explain unknown_session\nmessaging explain")]
pub(crate) struct Explain {
    /// the code, as the first word after `messaging:` said it; all of them when left out
    #[argh(positional)]
    pub(crate) code: Option<String>,
}

/// run an agent that answers every message with what it said, to try a team with
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "echo", example = "messaging echo\nmessaging echo --name parrot")]
pub(crate) struct Echo {
    /// the agent's name (default echo)
    #[argh(option, default = "String::from(\"echo\")")]
    pub(crate) name: String,
}

/// the person's full-screen view: chats, agents, requests, tasks, notices, team
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "ui",
    example = "messaging ui",
    note = "Works from 80 columns and 24 lines. In it, ? shows the keys and q leaves."
)]
pub(crate) struct Ui {}
