//! Verbs about the services of this machine.

use argh::FromArgs;

/// run a whole team on this machine for a few seconds and show what happens
#[derive(FromArgs)]
#[argh(subcommand, name = "demo", example = "messaging demo\nmessaging demo --keep")]
pub(crate) struct Demo {
    /// leave it running and print the commands to look around
    #[argh(switch)]
    pub(crate) keep: bool,
}

/// start, stop and ask the daemon of this machine
#[derive(FromArgs)]
#[argh(subcommand, name = "daemon", example = "messaging daemon start\nmessaging daemon status")]
pub(crate) struct Daemon {
    #[argh(subcommand)]
    pub(crate) verb: DaemonVerb,
}

#[derive(FromArgs)]
#[argh(subcommand)]
pub(crate) enum DaemonVerb {
    Start(DaemonStart),
    Stop(DaemonStop),
    Status(DaemonStatus),
    Health(DaemonHealth),
    Snapshot(DaemonSnapshot),
}

/// start the daemon in the background, unless one answers already
#[derive(FromArgs)]
#[argh(subcommand, name = "start")]
pub(crate) struct DaemonStart {
    /// how long to wait until it serves, in milliseconds (default 10000)
    #[argh(option, default = "10_000")]
    pub(crate) wait: u64,
}

/// stop the daemon and wait until its process has ended
#[derive(FromArgs)]
#[argh(subcommand, name = "stop")]
pub(crate) struct DaemonStop {}

/// what the daemon is doing, in full
#[derive(FromArgs)]
#[argh(subcommand, name = "status")]
pub(crate) struct DaemonStatus {}

/// one line of health, without names or counts
#[derive(FromArgs)]
#[argh(subcommand, name = "health")]
pub(crate) struct DaemonHealth {}

/// write a consistent copy of the home while the daemon runs
#[derive(FromArgs)]
#[argh(subcommand, name = "snapshot")]
pub(crate) struct DaemonSnapshot {
    /// delete the copy that is held
    #[argh(switch)]
    pub(crate) done: bool,
}

/// who you are, whether the relay is connected, what waits
#[derive(FromArgs)]
#[argh(subcommand, name = "status", example = "messaging status\nmessaging status --watch")]
pub(crate) struct Status {
    /// show it again whenever it changes, until interrupted
    #[argh(switch)]
    pub(crate) watch: bool,
}
