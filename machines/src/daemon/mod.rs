//! The daemon (`messaging/1 §8`): one machine's identity, sessions, mail, tasks and consent.

pub mod io;
