//! `messagingd`: the daemon. `messagingd cli …` is the command line.

fn main() -> std::process::ExitCode {
    messaging::messagingd::main(std::env::args_os().collect())
}
