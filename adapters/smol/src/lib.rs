//! smol adapters.
