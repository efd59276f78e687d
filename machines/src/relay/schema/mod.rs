//! What the relay stores: tables, keys and values (`messaging/1 §8.8`).
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `meta` | `generation`, `schema`, `min_reader` | u64 ([`opening`]); the adapter keeps rows of its own there |
//! | `relay.count` | `teams`, `queue` | [`TeamCounts`], [`QueueCounts`] |
//! | `relay.team` | team | [`TeamRow`]: the head |
//! | `relay.roster` | team, seq | an entry's canonical text |
//! | `relay.seat` | team, machine | the member's [`Seat`] |
//! | `relay.envelope` | position | [`EnvelopeRow`]: when it came, its canonical text |
//! | `relay.order` | recipient seat, sender seat, position | [`OrderRow`] |
//! | `relay.seen` | sender seat, id | [`SeenRow`]: kept until `exp + clockSkewMs` |
//! | `relay.expiry` | `exp`, sender seat, id | [`PlaceRow`]: one per `relay.seen` row |
//! | `relay.presence` | seat | [`PresenceRow`] |
//! | `relay.sweep` | seat | [`SweepRow`]: a removed machine whose envelopes are not all deleted yet |
//!
//! Integers are big-endian, so keys sort as numbers. Values begin with a version byte and end with a sum (`codec`), entries of
//! a roster excepted: their chain of hashes is checked instead. What becomes of a row that does not read is `damage`'s to
//! say. A queued envelope is one `relay.envelope` row, appended in the order of arrival, and one small `relay.order` row,
//! by which a recipient's queue is counted and read per sender without touching the texts.

mod codec;
pub mod opening;
mod rows;

pub use rows::{
    EnvelopeRow, OrderRow, PlaceRow, PresenceRow, QueueCounts, SeenRow, SweepRow, TeamCounts, TeamRow,
};

use crate::store::Table;
use messaging_proto::hash::RealmId;
use messaging_proto::key::{MachineId, Sig};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;

/// The store's own records.
pub const META: Table = Table("meta");
/// Totals that must not be counted by a scan.
pub const COUNT: Table = Table("relay.count");
/// Known teams.
pub const TEAM: Table = Table("relay.team");
/// Roster entries.
pub const ROSTER: Table = Table("relay.roster");
/// The numbers of current members.
pub const SEAT: Table = Table("relay.seat");
/// Queued envelopes.
pub const ENVELOPE: Table = Table("relay.envelope");
/// Their order per recipient and sender.
pub const ORDER: Table = Table("relay.order");
/// Envelope ids taken.
pub const SEEN: Table = Table("relay.seen");
/// What ends when.
pub const EXPIRY: Table = Table("relay.expiry");
/// The latest presence of each machine.
pub const PRESENCE: Table = Table("relay.presence");
/// Removals under way.
pub const SWEEP: Table = Table("relay.sweep");

/// Every table of the relay.
pub const TABLES: [Table; 11] =
    [META, COUNT, TEAM, ROSTER, SEAT, ENVELOPE, ORDER, SEEN, EXPIRY, PRESENCE, SWEEP];

/// Row of [`COUNT`].
pub const COUNT_TEAMS: &[u8] = b"teams";
/// Row of [`COUNT`].
pub const COUNT_QUEUE: &[u8] = b"queue";

/// A machine's place in one team, numbered from 1 when it becomes a member and never reused. Stands for 64 bytes
/// of team and machine in every key of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat(pub u64);

/// A queue position: later is larger, and none is ever used again (`messaging/1 §7`, "Delivery").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// An envelope id as 16 bytes, which sort as its text does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdKey(pub [u8; 16]);

impl From<&Ulid> for IdKey {
    fn from(id: &Ulid) -> Self {
        let bits = id.as_str().bytes().fold(0_u128, |bits, letter| bits << 5 | u128::from(digit(letter)));
        Self(bits.to_be_bytes())
    }
}

/// Crockford's alphabet, whose letters are in order of value.
const fn digit(letter: u8) -> u8 {
    match letter {
        b'0'..=b'9' => letter - b'0',
        b'A'..=b'H' => letter - b'A' + 10,
        b'J' | b'K' => letter - b'J' + 18,
        b'M' | b'N' => letter - b'M' + 20,
        b'P'..=b'T' => letter - b'P' + 22,
        b'V'..=b'Z' => letter - b'V' + 27,
        _ => 0,
    }
}

/// What stands for an envelope's content when the text is gone: half of the SHA-256 of its signature.
///
/// A verified signature is one signer's over one text: another text under the same key cannot carry it, and
/// another signature is another text, since the text holds it. Two envelopes of one print take the signer 2^64
/// tries and win it an `ack` for an envelope it does not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print(pub [u8; 16]);

impl Print {
    /// The print of a verified signature.
    #[must_use]
    pub fn of(sig: &Sig) -> Self {
        let hash = messaging_proto::hash::sha256(sig.as_bytes());
        let mut half = [0; 16];
        half.iter_mut().zip(hash.as_bytes()).for_each(|(to, from)| *to = *from);
        Self(half)
    }
}

/// Key in [`ROSTER`].
#[must_use]
pub fn roster_key(team: &RealmId, seq: u64) -> [u8; 40] {
    codec::join(&[team.as_bytes(), &seq.to_be_bytes()])
}

/// Key in [`SEAT`].
#[must_use]
pub fn seat_key(team: &RealmId, machine: &MachineId) -> [u8; 64] {
    codec::join(&[team.as_bytes(), machine.as_bytes()])
}

/// Key in [`ENVELOPE`].
#[must_use]
pub const fn envelope_key(position: Position) -> [u8; 8] {
    position.0.to_be_bytes()
}

/// Key in [`PRESENCE`] and [`SWEEP`], prefix in [`ORDER`].
#[must_use]
pub const fn seat_prefix(seat: Seat) -> [u8; 8] {
    seat.0.to_be_bytes()
}

/// Prefix in [`ORDER`] of what one sender has waiting for one recipient.
#[must_use]
pub fn pair_prefix(to: Seat, from: Seat) -> [u8; 16] {
    codec::join(&[&to.0.to_be_bytes(), &from.0.to_be_bytes()])
}

/// Key in [`ORDER`].
#[must_use]
pub fn order_key(to: Seat, from: Seat, position: Position) -> [u8; 24] {
    codec::join(&[&to.0.to_be_bytes(), &from.0.to_be_bytes(), &position.0.to_be_bytes()])
}

/// Sender and position of a key in [`ORDER`].
#[must_use]
pub fn order_of(key: &[u8]) -> Option<(Seat, Seat, Position)> {
    let mut key = codec::Cursor::new(key);
    let parts = (Seat(key.u64()?), Seat(key.u64()?), Position(key.u64()?));
    key.end(parts)
}

/// Key in [`SEEN`].
#[must_use]
pub fn seen_key(from: Seat, id: IdKey) -> [u8; 24] {
    codec::join(&[&from.0.to_be_bytes(), &id.0])
}

/// The parts of a key in [`SEEN`].
#[must_use]
pub fn seen_of(key: &[u8]) -> Option<(Seat, IdKey)> {
    let mut key = codec::Cursor::new(key);
    let parts = (Seat(key.u64()?), IdKey(key.array()?));
    key.end(parts)
}

/// Key in [`EXPIRY`].
pub type ExpiryKey = [u8; 32];

/// Key in [`EXPIRY`].
#[must_use]
pub fn expiry_key(exp: Wall, from: Seat, id: IdKey) -> ExpiryKey {
    codec::join(&[&exp.0.to_be_bytes(), &from.0.to_be_bytes(), &id.0])
}

/// The key in [`EXPIRY`] before every row that ends at `exp` or later.
#[must_use]
pub fn expiry_start(exp: Wall) -> ExpiryKey {
    expiry_key(exp, Seat(0), IdKey([0; 16]))
}

/// The parts of a key in [`EXPIRY`].
#[must_use]
pub fn expiry_of(key: &[u8]) -> Option<(Wall, Seat, IdKey)> {
    let mut key = codec::Cursor::new(key);
    let parts = (Wall(key.u64()?), Seat(key.u64()?), IdKey(key.array()?));
    key.end(parts)
}

#[cfg(test)]
mod tests;
