//! The seal itself (`messaging/1 §5`, "Sealing"): X25519, HKDF-SHA256 and AES-256-GCM.

use crate::key::EncKey;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};

/// HKDF's info string.
const INFO: &[u8] = b"messaging/1/seal";

/// Bytes of the tag after the ciphertext.
pub(super) const TAG_BYTES: usize = 16;

/// The key of one envelope's seal.
pub(super) struct SealKey(LessSafeKey);

impl SealKey {
    /// Derives the key both sides reach from their shared secret. Nothing when a primitive refuses, which none
    /// of these lengths makes it do.
    pub(super) fn derive(shared: &[u8; 32], epk: &EncKey, recipient: &EncKey) -> Option<Self> {
        let mut salt = [0; 64];
        let (first, second) = salt.split_at_mut(32);
        first.copy_from_slice(epk.as_bytes());
        second.copy_from_slice(recipient.as_bytes());
        let derived = Salt::new(HKDF_SHA256, &salt).extract(shared);
        let key = derived.expand(&[INFO], &AES_256_GCM).ok().map(UnboundKey::from)?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// Encrypts `text` in place and appends the tag.
    pub(super) fn seal(&self, nonce: [u8; 12], aad: &[u8], text: &mut Vec<u8>) -> Option<()> {
        self.0.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(aad), text).ok()
    }

    /// Decrypts `text` in place; nothing when it does not authenticate.
    pub(super) fn open<'a>(&self, nonce: [u8; 12], aad: &[u8], text: &'a mut [u8]) -> Option<&'a [u8]> {
        self.0
            .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(aad), text)
            .ok()
            .map(|plain| &*plain)
    }
}
