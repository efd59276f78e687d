//! `messaging`: the command line. Also the relay (`messaging relay`) and the daemon (`messaging daemon run`).

fn main() -> std::process::ExitCode {
    messaging::cli::main(std::env::args_os().collect())
}
