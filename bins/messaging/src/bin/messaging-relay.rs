//! messaging-relay
fn main() {}
