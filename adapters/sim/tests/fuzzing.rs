//! The fuzz targets over machines, over bytes that a seed gives.
#![allow(clippy::unwrap_used)]

use messaging_proto::hash::sha256;
use messaging_sim::fuzzing::{daemon_machine, relay_machine};

/// Bytes of a seed.
fn bytes(seed: u32, length: usize) -> Vec<u8> {
    let blocks = (0_u32..).flat_map(|block| sha256(format!("{seed} {block}").as_bytes()).0);
    blocks.take(length).collect()
}

#[test]
fn the_relay_stands_any_sequence() {
    for seed in 0..150 {
        relay_machine(&bytes(seed, 100 + usize::try_from(seed).unwrap() * 3));
    }
    relay_machine(&[]);
}

/// Sequences that the fuzzer found, each for a fault of the relay or of the checks.
#[test]
fn what_was_found_stays_mended() {
    // A presence ended and was purged; the next one, with a lower number, is above nothing.
    relay_machine(include_bytes!("sequences/presence-after-its-end"));
}

#[test]
fn the_daemon_stands_any_sequence() {
    for seed in 0..25 {
        daemon_machine(&bytes(seed, 150 + usize::try_from(seed).unwrap() * 8));
    }
    daemon_machine(&[]);
}
