//! The relay (`messaging/1 §7`): store-and-forward for sealed envelopes, one signed roster per team.

pub mod io;
