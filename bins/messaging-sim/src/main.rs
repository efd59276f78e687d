//! Runs simulated worlds.
fn main() {}
