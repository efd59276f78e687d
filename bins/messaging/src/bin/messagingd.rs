//! messagingd
fn main() {}
