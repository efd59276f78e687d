//! messaging
fn main() {}
