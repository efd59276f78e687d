//! Programs beside the tests of another package than theirs. More than one package's tests include this with `#[path]`.

use std::path::PathBuf;
use std::process::Command;

/// A program of the package `messaging`, beside the programs of this test run.
pub(crate) fn program(name: &str) -> PathBuf {
    // target/debug/deps/<test> -> target/debug/<name>
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().parent().unwrap().join(name);
    if !program.is_file() {
        // `cargo test --workspace` made it; a test of one package alone did not.
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        assert!(cargo.args(["build", "-p", "messaging", "--bins"]).status().unwrap().success());
    }
    program
}
