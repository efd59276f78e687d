//! `messaging-mcp`: the MCP server.

fn main() -> std::process::ExitCode {
    messaging_mcp::main(std::env::args_os().collect())
}
