//! `messaging-relay`: the relay.

/// Memory is mostly freed on another thread than took it: glibc's allocator costs a message about 15 µs more.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    messaging::relay::main(std::env::args_os().collect())
}
