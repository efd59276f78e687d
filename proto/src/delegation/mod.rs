//! Delegation chains: who asked whom, for which task (`messaging/1 §6.7`).

mod shape;

pub use shape::Grant;
