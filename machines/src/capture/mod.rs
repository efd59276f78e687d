//! The form of a capture: everything a machine was given, and everything it said, as records in a file. Bytes and values
//! alone; `messaging_smol::capture` writes it, `messaging_sim::replay` plays it.
//!
//! A capture begins with [`TITLE`], a line for whoever opens it. Each record is a marker, its length, the beginning of its
//! SHA-256 and a body, so that a torn end is noticed and what follows damage is found again:
//!
//! ```text
//! Begin    what a machine is built from; its memory is empty
//! Rows     rows of a table the machine finds in its store; as many as it takes
//! Event    both clocks, the entropy, the event
//! Effects  what the machine made of it, in order, or that its store did not answer
//! Batch    the rows of every event since the last batch go to the disk: how many, and their hash
//! Done     that disk write ended, or failed
//! Lost     the machine was dropped; another begins over whatever the store holds
//! End      the service stopped
//! ```

#[cfg(test)]
mod tests;

use crate::machine::Step;
use crate::relay;
use crate::store::{Row, Writes};
use messaging_proto::hash::{Hash, sha256};
use messaging_proto::identity::IdentityFile;
use messaging_proto::time::{Mono, Wall};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The first line of every capture.
pub const TITLE: &str =
    "messaging capture 1: SECRET, it holds private keys and what people wrote; do not share it\n";

const MARKER: [u8; 4] = [0xc5, b'm', b'c', b'\n'];
/// Marker, length, the first bytes of the hash.
const HEAD: usize = 4 + 4 + 8;
/// The longest body that is believed: a batch of rows is far below.
const BODY_MAX: usize = 1 << 28;

/// What a machine is built from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Origin {
    /// The relay's configuration.
    Relay(Box<relay::Config>),
    /// A daemon's, with its files.
    Daemon(Box<DaemonOrigin>),
}

/// What a daemon is built from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DaemonOrigin {
    /// The text of its configuration.
    pub settings: String,
    /// The release it reports.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Its identity file: private keys.
    pub identity: Option<IdentityFile>,
    /// Its pairing file, likewise.
    pub pairing: Option<IdentityFile>,
}

/// One record.
#[derive(Clone, Debug)]
pub enum Record {
    /// A machine begins.
    Begin {
        /// The release that wrote the capture.
        release: String,
        /// What the machine is built from.
        origin: Origin,
    },
    /// Rows of a table that it finds.
    Rows {
        /// The table's name.
        table: String,
        /// Its rows, in order.
        rows: Vec<Row>,
    },
    /// It is handed an event.
    Event {
        /// The monotonic clock.
        mono: Mono,
        /// The wall clock.
        wall: Wall,
        /// The step's entropy.
        entropy: [u8; 32],
        /// The event as JSON.
        event: Vec<u8>,
    },
    /// What it said.
    Effects {
        /// Whether the store answered; the machine is dropped otherwise.
        answered: bool,
        /// Its effects, as JSON each, in order.
        effects: Vec<String>,
    },
    /// The rows of every event since the last batch are on their way to the disk.
    Batch {
        /// How many rows.
        rows: u64,
        /// [`digest`] of them.
        digest: Hash,
    },
    /// The oldest batch on its way ended.
    Done {
        /// Whether it is durable.
        durable: bool,
    },
    /// The machine is gone.
    Lost,
    /// The service stopped.
    End,
}

/// The hash over the rows of a batch.
#[must_use]
pub fn digest(writes: &Writes) -> (u64, Hash) {
    let mut bytes = Vec::new();
    let mut count = 0;
    for (table, key, value) in writes.iter() {
        count += 1;
        for part in [table.0.as_bytes(), key] {
            put(&mut bytes, part);
        }
        match value {
            Some(value) => {
                bytes.push(1);
                put(&mut bytes, value);
            }
            None => bytes.push(0),
        }
    }
    (count, sha256(&bytes))
}

fn put(out: &mut Vec<u8>, part: &[u8]) {
    // Longer parts than this do not exist; a cut one would only fail its check.
    out.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(part);
}

/// Adds a record's bytes to `out`.
pub fn write(record: &Record, out: &mut Zeroizing<Vec<u8>>) {
    let start = out.len();
    out.extend(MARKER);
    out.extend([0; HEAD - MARKER.len()]);
    let body = out.len();
    match record {
        Record::Begin { release, origin } => {
            out.push(b'b');
            put(out, release.as_bytes());
            let origin = Zeroizing::new(serde_json::to_vec(origin).unwrap_or_default());
            put(out, &origin);
        }
        Record::Rows { table, rows } => {
            out.push(b'r');
            put(out, table.as_bytes());
            for (key, value) in rows {
                put(out, key);
                put(out, value);
            }
        }
        Record::Event { mono, wall, entropy, event } => {
            out.push(b'e');
            out.extend(mono.0.to_be_bytes());
            out.extend(wall.0.to_be_bytes());
            out.extend(entropy);
            put(out, event);
        }
        Record::Effects { answered, effects } => {
            out.push(b's');
            out.push(u8::from(*answered));
            for effect in effects {
                put(out, effect.as_bytes());
            }
        }
        Record::Batch { rows, digest } => {
            out.push(b'w');
            out.extend(rows.to_be_bytes());
            out.extend(digest.0);
        }
        Record::Done { durable } => out.extend([b'd', u8::from(*durable)]),
        Record::Lost => out.push(b'l'),
        Record::End => out.push(b'z'),
    }
    let check = sha256(&out[body..]).0;
    let length = u32::try_from(out.len() - body).unwrap_or(u32::MAX);
    out[start + 4..start + 8].copy_from_slice(&length.to_be_bytes());
    out[start + 8..body].copy_from_slice(&check[..8]);
}

/// The record of a step before the machine takes it.
#[must_use]
pub fn event(step: &Step, event: &impl Serialize) -> Record {
    Record::Event {
        mono: step.mono,
        wall: step.wall,
        entropy: *step.entropy(),
        event: serde_json::to_vec(event).unwrap_or_default(),
    }
}

/// The record of what a machine said.
#[must_use]
pub fn effects<E: Serialize>(answered: bool, effects: &[E]) -> Record {
    let text = |effect| serde_json::to_string(effect).unwrap_or_default();
    Record::Effects { answered, effects: effects.iter().map(text).collect() }
}

/// Bytes of a capture that are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where they begin.
    pub at: usize,
    /// How many they are.
    pub bytes: usize,
    /// Whether nothing follows: the process died over its last record, most likely.
    pub last: bool,
}

/// Reads records.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Why a file is no capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no capture of messaging, or one of another format")]
pub struct NoCapture;

impl<'a> Reader<'a> {
    /// Reads the records of a whole file.
    ///
    /// # Errors
    /// [`NoCapture`] when it does not begin like one.
    pub fn new(bytes: &'a [u8]) -> Result<Self, NoCapture> {
        if bytes.starts_with(TITLE.as_bytes()) { Ok(Self { bytes, at: TITLE.len() }) } else { Err(NoCapture) }
    }

    /// The body of a whole record at `at`, and where the next begins.
    fn body(&self, at: usize) -> Option<(&'a [u8], usize)> {
        let head = self.bytes.get(at..at + HEAD)?;
        let (marker, rest) = head.split_at(MARKER.len());
        let (length, check) = rest.split_at(4);
        let length = usize::try_from(u32::from_be_bytes(length.try_into().ok()?)).ok()?;
        if marker != MARKER || length > BODY_MAX {
            return None;
        }
        let body = self.bytes.get(at + HEAD..at + HEAD + length)?;
        (sha256(body).0[..8] == *check).then_some((body, at + HEAD + length))
    }
}

impl Iterator for Reader<'_> {
    type Item = (usize, Result<Record, Damage>);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        if at >= self.bytes.len() {
            return None;
        }
        if let Some((body, next)) = self.body(at)
            && let Some(record) = read(body)
        {
            self.at = next;
            return Some((at, Ok(record)));
        }
        let next = (at + 1..self.bytes.len()).find(|place| {
            self.bytes[*place..].starts_with(&MARKER)
                && self.body(*place).is_some_and(|(body, _)| read(body).is_some())
        });
        self.at = next.unwrap_or(self.bytes.len());
        Some((at, Err(Damage { at, bytes: self.at - at, last: next.is_none() })))
    }
}

/// What is left of a body.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (part, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(part)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn part(&mut self) -> Option<&'a [u8]> {
        let length = u32::from_be_bytes(self.array()?);
        self.bytes(usize::try_from(length).ok()?)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.part()?.to_vec()).ok()
    }

    const fn ended(&self) -> bool {
        self.0.is_empty()
    }
}

fn read(body: &[u8]) -> Option<Record> {
    let (kind, rest) = body.split_first()?;
    let mut parts = Parts(rest);
    let record = match kind {
        b'b' => {
            let release = parts.text()?;
            Record::Begin { release, origin: serde_json::from_slice(parts.part()?).ok()? }
        }
        b'r' => {
            let table = parts.text()?;
            let mut rows = Vec::new();
            while !parts.ended() {
                rows.push((parts.part()?.to_vec(), parts.part()?.to_vec()));
            }
            Record::Rows { table, rows }
        }
        b'e' => {
            let (mono, wall) = (Mono(parts.number()?), Wall(parts.number()?));
            Record::Event { mono, wall, entropy: parts.array()?, event: parts.part()?.to_vec() }
        }
        b's' => {
            let answered = parts.array::<1>()? == [1];
            let mut effects = Vec::new();
            while !parts.ended() {
                effects.push(parts.text()?);
            }
            Record::Effects { answered, effects }
        }
        b'w' => Record::Batch { rows: parts.number()?, digest: Hash(parts.array()?) },
        b'd' => Record::Done { durable: parts.array::<1>()? == [1] },
        b'l' => Record::Lost,
        b'z' => Record::End,
        _ => return None,
    };
    parts.ended().then_some(record)
}
