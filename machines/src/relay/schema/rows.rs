//! The values of the relay's tables. Reading one that is not of its form gives nothing.

use super::codec::{Cursor, join};
use super::{IdKey, Position, Print, Seat};
use messaging_proto::hash::{Hash, RealmId};
use messaging_proto::key::MachineId;
use messaging_proto::realm::Head;
use messaging_proto::time::Wall;

const V: u8 = 1;

/// How many teams there are, and the seat that is given next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamCounts {
    /// Teams stored.
    pub teams: u64,
    /// The next seat.
    pub next_seat: u64,
}

impl Default for TeamCounts {
    fn default() -> Self {
        Self { teams: 0, next_seat: 1 }
    }
}

impl TeamCounts {
    /// The row.
    #[must_use]
    pub fn encode(&self) -> [u8; 17] {
        join(&[&[V], &self.teams.to_be_bytes(), &self.next_seat.to_be_bytes()])
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &[u8]) -> Option<Self> {
        let mut row = Cursor::new(row);
        row.version(V)?;
        let counts = Self { teams: row.u64()?, next_seat: row.u64()? };
        row.end(counts)
    }
}

/// What the whole queue holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Envelopes.
    pub rows: u64,
    /// Bytes of their canonical texts.
    pub bytes: u64,
    /// The next position.
    pub next: u64,
    /// Everything that ended before this has left the queue.
    pub purged: Wall,
}

impl QueueCounts {
    /// The row.
    #[must_use]
    pub fn encode(&self) -> [u8; 33] {
        join(&[
            &[V],
            &self.rows.to_be_bytes(),
            &self.bytes.to_be_bytes(),
            &self.next.to_be_bytes(),
            &self.purged.0.to_be_bytes(),
        ])
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &[u8]) -> Option<Self> {
        let mut row = Cursor::new(row);
        row.version(V)?;
        let counts = Self { rows: row.u64()?, bytes: row.u64()?, next: row.u64()?, purged: Wall(row.u64()?) };
        row.end(counts)
    }
}

/// A known team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamRow {
    /// Its newest entry.
    pub head: Head,
}

impl TeamRow {
    /// The row.
    #[must_use]
    pub fn encode(&self) -> [u8; 41] {
        join(&[&[V], &self.head.seq.to_be_bytes(), self.head.hash.as_bytes()])
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &[u8]) -> Option<Self> {
        let mut row = Cursor::new(row);
        row.version(V)?;
        let team = Self { head: Head { seq: row.u64()?, hash: Hash(row.array()?) } };
        row.end(team)
    }
}

/// A queued envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvelopeRow<'a> {
    /// When it was stored.
    pub at: Wall,
    /// Its canonical text.
    pub text: &'a str,
}

impl<'a> EnvelopeRow<'a> {
    /// The row.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(9 + self.text.len());
        row.push(V);
        row.extend_from_slice(&self.at.0.to_be_bytes());
        row.extend_from_slice(self.text.as_bytes());
        row
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &'a [u8]) -> Option<Self> {
        let mut row = Cursor::new(row);
        row.version(V)?;
        Some(Self { at: Wall(row.u64()?), text: std::str::from_utf8(row.rest()).ok()? })
    }
}

/// What is known of a queued envelope without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderRow {
    /// When it ends.
    pub exp: Wall,
    /// Its id.
    pub id: IdKey,
    /// Bytes of its canonical text.
    pub size: u32,
}

impl OrderRow {
    /// The row.
    #[must_use]
    pub fn encode(&self) -> [u8; 29] {
        join(&[&[V], &self.exp.0.to_be_bytes(), &self.id.0, &self.size.to_be_bytes()])
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &[u8]) -> Option<Self> {
        let mut row = Cursor::new(row);
        row.version(V)?;
        let order = Self { exp: Wall(row.u64()?), id: IdKey(row.array()?), size: row.u32()? };
        row.end(order)
    }
}

/// An envelope that was taken, whether it still waits or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenRow {
    /// When it ends.
    pub exp: Wall,
    /// Its recipient.
    pub to: Seat,
    /// Its place in the queue.
    pub position: Position,
    /// Its content.
    pub print: Print,
}

impl SeenRow {
    /// The row.
    #[must_use]
    pub fn encode(&self) -> [u8; 41] {
        join(&[
            &[V],
            &self.exp.0.to_be_bytes(),
            &self.to.0.to_be_bytes(),
            &self.position.0.to_be_bytes(),
            &self.print.0,
        ])
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &[u8]) -> Option<Self> {
        let mut row = Cursor::new(row);
        row.version(V)?;
        let seen = Self {
            exp: Wall(row.u64()?),
            to: Seat(row.u64()?),
            position: Position(row.u64()?),
            print: Print(row.array()?),
        };
        row.end(seen)
    }
}

/// Where an envelope waits, or waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceRow {
    /// Its recipient.
    pub to: Seat,
    /// Its place in the queue.
    pub position: Position,
}

impl PlaceRow {
    /// The row.
    #[must_use]
    pub fn encode(&self) -> [u8; 17] {
        join(&[&[V], &self.to.0.to_be_bytes(), &self.position.0.to_be_bytes()])
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &[u8]) -> Option<Self> {
        let mut row = Cursor::new(row);
        row.version(V)?;
        let place = Self { to: Seat(row.u64()?), position: Position(row.u64()?) };
        row.end(place)
    }
}

/// A machine's latest presence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresenceRow<'a> {
    /// Its `seq`.
    pub seq: u64,
    /// When it ends.
    pub exp: Wall,
    /// The envelope's canonical text.
    pub text: &'a str,
}

impl<'a> PresenceRow<'a> {
    /// The row.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(17 + self.text.len());
        row.push(V);
        row.extend_from_slice(&self.seq.to_be_bytes());
        row.extend_from_slice(&self.exp.0.to_be_bytes());
        row.extend_from_slice(self.text.as_bytes());
        row
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &'a [u8]) -> Option<Self> {
        let mut row = Cursor::new(row);
        row.version(V)?;
        let (seq, exp) = (row.u64()?, Wall(row.u64()?));
        Some(Self { seq, exp, text: std::str::from_utf8(row.rest()).ok()? })
    }
}

/// How far the deletion of a removed machine's envelopes has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepRow {
    /// Its team.
    pub team: RealmId,
    /// Its queue is gone, and its envelopes to every machine up to this one.
    pub done: MachineId,
}

impl SweepRow {
    /// The row.
    #[must_use]
    pub fn encode(&self) -> [u8; 65] {
        join(&[&[V], self.team.as_bytes(), self.done.as_bytes()])
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &[u8]) -> Option<Self> {
        let mut row = Cursor::new(row);
        row.version(V)?;
        let sweep = Self { team: Hash(row.array()?), done: MachineId(row.array()?) };
        row.end(sweep)
    }
}
