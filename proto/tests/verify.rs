//! Verification agrees with ring's, on honest signatures and on whatever an attacker can make of small-order parts.

#![allow(clippy::unwrap_used)]

use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
use curve25519_dalek::{EdwardsPoint, Scalar};
use messaging_proto::key::{MachineId, Sig, SigningKey, VerifyKey, verify};
use ring::digest::{Context, SHA512};
use ring::signature::{ED25519, UnparsedPublicKey};

/// Both answers, which must be one.
fn both(key: [u8; 32], message: &[u8], sig: [u8; 64]) -> bool {
    let id = MachineId(key);
    let ours = verify(&id, &Sig(sig), message);
    let ring = UnparsedPublicKey::new(&ED25519, &key).verify(message, &sig).is_ok();
    match VerifyKey::new(&id) {
        Some(usable) => {
            assert_eq!(ours, ring, "{key:?} {sig:?}");
            assert_eq!(usable.verify(message, &Sig(sig)), ring);
        }
        None => assert!(!ours, "no unusable key verifies anything"),
    }
    ours
}

fn challenge(r: &[u8; 32], key: &[u8; 32], message: &[u8]) -> Scalar {
    let mut hash = Context::new(&SHA512);
    hash.update(r);
    hash.update(key);
    hash.update(message);
    Scalar::from_bytes_mod_order_wide(hash.finish().as_ref().try_into().unwrap())
}

fn joined(r: [u8; 32], s: [u8; 32]) -> [u8; 64] {
    let mut sig = [0; 64];
    sig[..32].copy_from_slice(&r);
    sig[32..].copy_from_slice(&s);
    sig
}

#[test]
fn honest_signatures_and_every_flipped_bit_of_them() {
    for n in 0..40_u8 {
        let key = SigningKey::from_seed([n; 32]);
        let message = vec![n; usize::from(n) * 37];
        let sig = key.sign(&message).0;
        assert!(both(key.machine().0, &message, sig));
        let bits = if n == 0 { 0..512 } else { 250..260 };
        for bit in bits {
            let mut other = sig;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!both(key.machine().0, &message, other), "{bit}");
            let mut id = key.machine().0;
            id[bit / 8 % 32] ^= 1 << (bit % 8);
            assert!(!both(id, &message, sig), "{bit}");
        }
        assert!(!both(key.machine().0, b"another", sig));
    }
}

#[test]
fn a_part_of_small_order_in_key_or_signature() {
    let (mut held, mut failed) = (0, 0);
    for torsion in EIGHT_TORSION {
        for other in EIGHT_TORSION {
            for n in 1..8_u8 {
                let (secret, nonce) = (Scalar::from(u64::from(n) + 1_000), Scalar::from(u64::from(n) + 77));
                let point = |scalar: &Scalar| -> EdwardsPoint { ED25519_BASEPOINT_POINT * scalar };
                let key = (point(&secret) + torsion).compress().to_bytes();
                let r = (point(&nonce) + other).compress().to_bytes();
                let s = nonce + challenge(&r, &key, &[n]) * secret;
                if both(key, &[n], joined(r, s.to_bytes())) { held += 1 } else { failed += 1 }
            }
        }
    }
    assert!(held > 0 && failed > 0, "{held} {failed}");
}

#[test]
fn a_scalar_that_is_not_reduced_and_encodings_that_are_not_canonical() {
    // The order of the group.
    let order = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10_u8,
    ];
    for n in 0..20_u8 {
        let key = SigningKey::from_seed([n; 32]);
        let mut sig = key.sign(b"x").0;
        let mut carry = 0_u16;
        for (byte, add) in sig[32..].iter_mut().zip(order) {
            carry += u16::from(*byte) + u16::from(add);
            *byte = carry.to_le_bytes()[0];
            carry >>= 8;
        }
        assert!(!both(key.machine().0, b"x", sig));
        assert!(!both(key.machine().0, b"x", joined(sig[..32].try_into().unwrap(), order)));
    }
    // y = p, p + 1 and the like, with and without the sign, as a key and as R; S is what the identity needs.
    for low in 0xe9..=0xff_u8 {
        for high in [0x7f, 0xff_u8] {
            let mut bytes = [0xff; 32];
            (bytes[0], bytes[31]) = (low, high);
            both(bytes, b"x", [0; 64]);
            both(bytes, b"x", joined(bytes, [0; 32]));
            let key = SigningKey::from_seed([low; 32]).machine().0;
            assert!(!both(key, b"x", joined(bytes, [0; 32])));
        }
    }
}
