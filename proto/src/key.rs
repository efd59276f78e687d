//! Machine and encryption keys (`messaging/1 §3`; contract wire-core §1.5).

use crate::b64u;
use crate::domain::{Domain, signed_bytes};
use crate::json::{Invalid, Value};
use crate::text_form::bytes_type;
use curve25519_dalek::{EdwardsPoint, Scalar, edwards::CompressedEdwardsY};
use ring::digest::{Context, SHA512};
use ring::signature::{Ed25519KeyPair, KeyPair};
use std::cmp::Ordering;
use std::fmt;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

bytes_type! {
    /// A machine's id: its raw Ed25519 public key. Any 32 bytes; [`MachineId::is_usable`] says whether it can
    /// sign.
    MachineId, 32, "a machine id"
}

bytes_type! {
    /// A machine's raw X25519 public key: any 32 bytes.
    EncKey, 32, "an encryption key"
}

bytes_type! {
    /// An Ed25519 signature.
    Sig, 64, "a signature"
}

/// K2: the encodings of small order, sign bit cleared. Under such a key one signature fits every message.
const SMALL_ORDER: [[u8; 32]; 7] = [
    low(0),
    low(1),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5,
        0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a,
        0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
    high(0xec),
    high(0xed),
    high(0xee),
];

/// The little-endian form of a small number.
const fn low(byte: u8) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[0] = byte;
    bytes
}

/// The little-endian form of 2^255 − 256 + `byte`: with 0xed, the prime p.
const fn high(byte: u8) -> [u8; 32] {
    let mut bytes = [0xff; 32];
    bytes[0] = byte;
    bytes[31] = 0x7f;
    bytes
}

impl MachineId {
    /// Whether this is the canonical encoding of a curve point that is not of small order (§3).
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.is_plain() && CompressedEdwardsY(self.0).decompress().is_some()
    }

    /// K1 and K2: canonical, and not of small order. Whether it is a point at all is not asked.
    fn is_plain(&self) -> bool {
        let mut y = self.0;
        if let Some(last) = y.last_mut() {
            *last &= 0x7f;
        }
        // K1, as big-endian order of the reversed bytes.
        let below_p = y.iter().rev().lt(high(0xed).iter().rev());
        below_p && !SMALL_ORDER.contains(&y)
    }
}

/// A machine id in the order of its text: what "ascending" means for ids on the wire (contract wire-core §7.2, §7.3). The
/// order of [`MachineId`] itself is that of its bytes, which is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByText(pub MachineId);

impl PartialOrd for ByText {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByText {
    fn cmp(&self, other: &Self) -> Ordering {
        b64u::cmp_texts(&self.0.0, &other.0.0)
    }
}

/// A public key that was checked to be usable: the only way to a verification. Holds the curve point as well, which an
/// eighth of a verification goes into: who checks many signatures of one machine keeps its key. Equal and ordered as ids.
#[derive(Clone, Copy)]
pub struct VerifyKey {
    id: MachineId,
    /// The point, negated: the equation wants it so.
    minus: EdwardsPoint,
}

impl VerifyKey {
    /// The key of this id, when it is usable.
    #[must_use]
    pub fn new(id: &MachineId) -> Option<Self> {
        let minus = if id.is_plain() { -CompressedEdwardsY(id.0).decompress()? } else { return None };
        Some(Self { id: *id, minus })
    }

    /// The id of this key.
    #[must_use]
    pub const fn machine(&self) -> MachineId {
        self.id
    }

    /// Whether this key signed exactly these bytes. S must be reduced and R canonical; the equation is the
    /// cofactorless one.
    #[must_use]
    pub fn verify(&self, message: &[u8], sig: &Sig) -> bool {
        self.holds(message, sig.as_bytes()).is_some_and(|holds| holds)
    }

    /// Whether R is the encoding of `S·B − k·A` (RFC 8032 §5.1.7, without the cofactor): the bytes are compared, so R
    /// must be canonical. Nothing when S is not reduced. `tests/verify.rs` holds this to ring's answers; the vector
    /// arithmetic here takes two thirds of ring's time, and less than half where the processor has AVX-512.
    fn holds(&self, message: &[u8], sig: &[u8; 64]) -> Option<bool> {
        let (r, s) = sig.split_first_chunk::<32>()?;
        let s = Option::<Scalar>::from(Scalar::from_canonical_bytes(s.try_into().ok()?))?;
        let mut hash = Context::new(&SHA512);
        hash.update(r);
        hash.update(&self.id.0);
        hash.update(message);
        let k = Scalar::from_bytes_mod_order_wide(hash.finish().as_ref().try_into().ok()?);
        // Everything here is public: time may vary with it.
        Some(
            EdwardsPoint::vartime_double_scalar_mul_basepoint(&k, &self.minus, &s).compress().as_bytes() == r,
        )
    }
}

impl fmt::Debug for VerifyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyKey({})", self.id)
    }
}

impl PartialEq for VerifyKey {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for VerifyKey {}

impl PartialOrd for VerifyKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for VerifyKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.id.cmp(&other.id)
    }
}

/// Whether the machine signed exactly these bytes; false for an unusable key.
#[must_use]
pub fn verify(machine: &MachineId, sig: &Sig, message: &[u8]) -> bool {
    VerifyKey::new(machine).is_some_and(|key| key.verify(message, sig))
}

/// Whether the machine signed this value for this purpose; false for an unusable key or a value that is not
/// I-JSON.
#[must_use]
pub fn verify_value(machine: &MachineId, sig: &Sig, domain: Domain, value: &Value) -> bool {
    signed_bytes(domain, value).is_ok_and(|message| verify(machine, sig, &message))
}

/// An Ed25519 private key. Prints only its public half and is erased on drop.
#[derive(Clone)]
pub struct SigningKey {
    seed: Zeroizing<[u8; 32]>,
    machine: MachineId,
}

impl SigningKey {
    /// The key of a seed (a JWK's `d`).
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> Self {
        let seed = Zeroizing::new(seed);
        let mut machine = [0; 32];
        if let Some(pair) = pair(&seed) {
            machine.iter_mut().zip(pair.public_key().as_ref()).for_each(|(to, from)| *to = *from);
        }
        Self { seed, machine: MachineId(machine) }
    }

    /// The public half.
    #[must_use]
    pub const fn machine(&self) -> MachineId {
        self.machine
    }

    /// The seed: only for where the identity is stored.
    #[must_use]
    pub const fn seed(&self) -> &Zeroizing<[u8; 32]> {
        &self.seed
    }

    /// Signs these bytes.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Sig {
        // The pair is made anew for each signature: ring keeps the expanded key in memory it does not erase.
        let mut sig = [0; 64];
        if let Some(pair) = pair(&self.seed) {
            sig.iter_mut().zip(pair.sign(message).as_ref()).for_each(|(to, from)| *to = *from);
        }
        Sig(sig)
    }

    /// Signs a value for a purpose.
    ///
    /// # Errors
    /// [`Invalid`] when the value is not I-JSON.
    pub fn sign_value(&self, domain: Domain, value: &Value) -> Result<Sig, Invalid> {
        signed_bytes(domain, value).map(|message| self.sign(&message))
    }
}

/// Always there: every 32 bytes are a seed.
fn pair(seed: &[u8; 32]) -> Option<Ed25519KeyPair> {
    Ed25519KeyPair::from_seed_unchecked(seed).ok()
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.machine)
    }
}

/// Equal when the public halves are.
impl PartialEq for SigningKey {
    fn eq(&self, other: &Self) -> bool {
        self.machine == other.machine
    }
}

impl Eq for SigningKey {}

/// An X25519 private key. Prints only its public half and is erased on drop.
#[derive(Clone)]
pub struct EncSecret {
    secret: StaticSecret,
    public: EncKey,
}

impl EncSecret {
    /// The key of these bytes (a JWK's `d`).
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        let secret = StaticSecret::from(*Zeroizing::new(bytes));
        let public = EncKey(PublicKey::from(&secret).to_bytes());
        Self { secret, public }
    }

    /// The public half.
    #[must_use]
    pub const fn public(&self) -> EncKey {
        self.public
    }

    /// The bytes: only for where the identity is stored.
    #[must_use]
    pub fn bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.secret.to_bytes())
    }

    /// The secret shared with the holder of `other`; nothing when it is all zero, as it is for a key of small
    /// order.
    #[must_use]
    pub fn agree(&self, other: &EncKey) -> Option<Zeroizing<[u8; 32]>> {
        let shared = self.secret.diffie_hellman(&PublicKey::from(other.0));
        shared.was_contributory().then(|| Zeroizing::new(shared.to_bytes()))
    }
}

impl fmt::Debug for EncSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncSecret({})", self.public)
    }
}

/// Equal when the public halves are.
impl PartialEq for EncSecret {
    fn eq(&self, other: &Self) -> bool {
        self.public == other.public
    }
}

impl Eq for EncSecret {}
