//! The values of the relay's tables. Reading one that is damaged, or not of its form, gives nothing.

use super::codec::{Cursor, seal, seal_text};
use super::{IdKey, Position, Print, Seat};
use messaging_proto::hash::{Hash, RealmId};
use messaging_proto::key::MachineId;
use messaging_proto::realm::Head;
use messaging_proto::time::Wall;

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
    pub fn encode(&self) -> [u8; 21] {
        seal(&[&self.teams.to_be_bytes(), &self.next_seat.to_be_bytes()])
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &[u8]) -> Option<Self> {
        let mut row = Cursor::value(row)?;
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
    pub fn encode(&self) -> [u8; 37] {
        seal(&[
            &self.rows.to_be_bytes(),
            &self.bytes.to_be_bytes(),
            &self.next.to_be_bytes(),
            &self.purged.0.to_be_bytes(),
        ])
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &[u8]) -> Option<Self> {
        let mut row = Cursor::value(row)?;
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
    pub fn encode(&self) -> [u8; 45] {
        seal(&[&self.head.seq.to_be_bytes(), self.head.hash.as_bytes()])
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &[u8]) -> Option<Self> {
        let mut row = Cursor::value(row)?;
        let team = Self { head: Head { seq: row.u64()?, hash: Hash(row.array()?) } };
        row.end(team)
    }
}

impl Seat {
    /// The row of a member.
    #[must_use]
    pub fn encode(&self) -> [u8; 13] {
        seal(&[&self.0.to_be_bytes()])
    }

    /// Reads a row. Its first form was the number alone.
    #[must_use]
    pub fn decode(row: &[u8]) -> Option<Self> {
        if let Ok(number) = row.try_into() {
            return Some(Self(u64::from_be_bytes(number)));
        }
        let mut row = Cursor::value(row)?;
        let seat = Self(row.u64()?);
        row.end(seat)
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
        seal_text(&[&self.at.0.to_be_bytes()], self.text)
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &'a [u8]) -> Option<Self> {
        let mut row = Cursor::value(row)?;
        Some(Self { at: Wall(row.u64()?), text: row.text()? })
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
    pub fn encode(&self) -> [u8; 33] {
        seal(&[&self.exp.0.to_be_bytes(), &self.id.0, &self.size.to_be_bytes()])
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &[u8]) -> Option<Self> {
        let mut row = Cursor::value(row)?;
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
    pub fn encode(&self) -> [u8; 45] {
        seal(&[
            &self.exp.0.to_be_bytes(),
            &self.to.0.to_be_bytes(),
            &self.position.0.to_be_bytes(),
            &self.print.0,
        ])
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &[u8]) -> Option<Self> {
        let mut row = Cursor::value(row)?;
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
    pub fn encode(&self) -> [u8; 21] {
        seal(&[&self.to.0.to_be_bytes(), &self.position.0.to_be_bytes()])
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &[u8]) -> Option<Self> {
        let mut row = Cursor::value(row)?;
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
        seal_text(&[&self.seq.to_be_bytes(), &self.exp.0.to_be_bytes()], self.text)
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &'a [u8]) -> Option<Self> {
        let mut row = Cursor::value(row)?;
        let (seq, exp) = (row.u64()?, Wall(row.u64()?));
        Some(Self { seq, exp, text: row.text()? })
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
    pub fn encode(&self) -> [u8; 69] {
        seal(&[self.team.as_bytes(), self.done.as_bytes()])
    }

    /// Reads a row.
    #[must_use]
    pub fn decode(row: &[u8]) -> Option<Self> {
        let mut row = Cursor::value(row)?;
        let sweep = Self { team: Hash(row.array()?), done: MachineId(row.array()?) };
        row.end(sweep)
    }
}
