//! `messaging-relay`: the relay.

fn main() -> std::process::ExitCode {
    messaging::relay::main(std::env::args_os().collect())
}
