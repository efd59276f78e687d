//! Simulated world.
