//! Wiring shared by the three executables.
