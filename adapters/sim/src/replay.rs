//! Plays a capture of a real service: the same machine is built, handed every event again, and must say the same, byte for
//! byte, and write the same rows. `messaging_machines::capture` is the form of the file.

use messaging_machines::capture::{Damage, NoCapture, Origin, Reader, Record, digest};
use messaging_machines::daemon::config::Settings;
use messaging_machines::daemon::{self, Daemon};
use messaging_machines::machine::{Machine, Out, Step};
use messaging_machines::relay::{self, Relay};
use messaging_machines::store::{MemoryBase, Table, Txn, Writes};
use messaging_proto::identity::IdentityFile;
use std::collections::VecDeque;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many events before a difference are shown with it.
const BEFORE: usize = 5;
/// How much of a text is shown on either side of a difference.
const AROUND: usize = 60;
/// How much of an event or an effect is shown.
const SHOWN: usize = 200;

/// What was played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// How many machines began.
    pub machines: usize,
    /// How many events were handed to them.
    pub events: u64,
    /// How many effects were compared.
    pub effects: u64,
    /// How many batches of rows were compared.
    pub batches: u64,
    /// How many rows the last machine's store held at the end.
    pub rows: usize,
    /// The releases that wrote the capture.
    pub releases: Vec<String>,
    /// What is not whole about the capture, in words.
    pub remarks: Vec<String>,
}

/// Why a capture was not played to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It is none.
    #[error(transparent)]
    NoCapture(#[from] NoCapture),
    /// It asks for what this build does not know.
    #[error("event {event}, at byte {at}: {what}")]
    Unknown {
        /// The number of the event, from 1.
        event: u64,
        /// The place in the file.
        at: usize,
        /// What.
        what: String,
    },
    /// The machine did otherwise.
    #[error("event {event}, at byte {at}: {what}")]
    Differs {
        /// The number of the event, from 1.
        event: u64,
        /// The place in the file.
        at: usize,
        /// What differs, with the events before it.
        what: String,
    },
}

/// How far to play, and what to tell meanwhile.
#[derive(Default)]
pub struct Options<'a> {
    /// The last event to play, from 1.
    pub until: Option<u64>,
    /// Told of every event and every effect, a line each.
    pub dump: Option<&'a mut dyn FnMut(&str)>,
}

/// A machine of either role.
enum Any {
    Relay(Box<Relay>),
    Daemon(Box<Daemon>),
}

/// What a machine made of an event.
struct Made {
    answered: bool,
    effects: Vec<String>,
}

fn made<M: Machine>(
    machine: &mut M,
    step: &Step,
    event: &[u8],
    base: &MemoryBase,
    writes: &mut Writes,
) -> Result<Made, String> {
    let event = serde_json::from_slice(event)
        .map_err(|error| format!("this build cannot read the event: {error}"))?;
    let mut out = Out::new();
    let handled = machine.handle(step, event, &mut Txn::new(base, None, writes), &mut out);
    let text = |effect: &M::Effect| serde_json::to_string(effect).unwrap_or_default();
    Ok(Made { answered: handled.is_ok(), effects: out.take().iter().map(text).collect() })
}

impl Any {
    fn build(origin: Origin) -> Result<Self, String> {
        Ok(match origin {
            Origin::Relay(config) => Self::Relay(Box::new(Relay::new(*config))),
            Origin::Daemon(origin) => {
                let settings = Settings::parse(origin.settings.as_bytes())
                    .map_err(|error| format!("this build refuses the configuration: {error}"))?;
                let read = |file: Option<IdentityFile>| {
                    file.map(|file| file.read().map_err(|error| format!("a key file: {error}"))).transpose()
                };
                let config =
                    daemon::Config { settings: settings.settings, version: origin.version, pid: origin.pid };
                Self::Daemon(Box::new(Daemon::new(config, read(origin.identity)?, read(origin.pairing)?)))
            }
        })
    }

    fn handle(
        &mut self,
        step: &Step,
        event: &[u8],
        base: &MemoryBase,
        writes: &mut Writes,
    ) -> Result<Made, String> {
        match self {
            Self::Relay(machine) => made(&mut **machine, step, event, base, writes),
            Self::Daemon(machine) => made(&mut **machine, step, event, base, writes),
        }
    }

    fn table(&self, name: &str) -> Option<Table> {
        let all: &[Table] = match self {
            Self::Relay(_) => &relay::schema::TABLES,
            Self::Daemon(_) => daemon::schema::TABLES,
        };
        all.iter().copied().find(|table| table.0 == name)
    }
}

/// A machine over the rows it has made so far.
struct Machined {
    machine: Any,
    base: MemoryBase,
    /// Rows since the last batch.
    open: Writes,
    /// What it made of the last event, until that is compared.
    made: Option<Made>,
}

struct Player<'a> {
    played: Played,
    now: Option<Machined>,
    last: VecDeque<String>,
    options: Options<'a>,
}

/// Plays the capture in `bytes`.
///
/// # Errors
/// The first event of which this build made something else, or that it cannot read. A torn end and damage in the
/// middle are no failures: they are remarks, and what follows damage is played from the next machine's beginning.
pub fn replay(bytes: &[u8], options: Options<'_>) -> Result<Played, Failure> {
    let mut player = Player { played: Played::default(), now: None, last: VecDeque::new(), options };
    let mut ended = true;
    for (at, record) in Reader::new(bytes)? {
        match record {
            Ok(record) => {
                if player.options.until.is_some_and(|until| player.played.events >= until)
                    && matches!(record, Record::Event { .. })
                {
                    ended = true;
                    break;
                }
                ended = matches!(record, Record::End | Record::Lost);
                player.record(at, record)?;
            }
            Err(damage) => {
                ended = damage.last;
                player.damaged(damage);
            }
        }
    }
    if !ended {
        player
            .played
            .remarks
            .push("the capture ends without a stop: its process was killed, or still runs".to_owned());
    }
    if let Some(now) = &player.now {
        player.played.rows = now.base.iter().count();
        if now.made.is_some() {
            player.played.remarks.push("what came of the last event is not in the capture".to_owned());
        }
    }
    Ok(player.played)
}

impl Player<'_> {
    fn tell(&mut self, line: &str) {
        if let Some(dump) = &mut self.options.dump {
            dump(line);
        }
    }

    fn unknown(&self, at: usize, what: impl Into<String>) -> Failure {
        Failure::Unknown { event: self.played.events, at, what: what.into() }
    }

    fn differs(&self, at: usize, mut what: String) -> Failure {
        what.push_str("\nthe events before and this one:");
        for line in &self.last {
            let _ = write!(what, "\n  {line}");
        }
        Failure::Differs { event: self.played.events, at, what }
    }

    fn damaged(&mut self, damage: Damage) {
        let Damage { at, bytes, last } = damage;
        let what = if last {
            format!(
                "the last {bytes} bytes, at byte {at}, are no whole record: its process was killed while it wrote"
            )
        } else if self.now.is_none() {
            format!("{bytes} bytes at byte {at} are no record")
        } else {
            format!(
                "{bytes} bytes at byte {at} are no record: what follows is played from the next machine's beginning"
            )
        };
        self.played.remarks.push(what);
        if !last {
            self.now = None;
        }
    }

    fn record(&mut self, at: usize, record: Record) -> Result<(), Failure> {
        match record {
            Record::Begin { release, origin } => self.begin(at, release, origin),
            Record::Rows { table, rows } => self.rows(at, &table, rows),
            Record::Event { mono, wall, entropy, event } => {
                self.event(at, &Step::new(mono, wall, entropy), &event)
            }
            Record::Effects { answered, effects } => self.effects(at, answered, &effects),
            Record::Batch { rows, digest } => self.batch(at, rows, digest),
            Record::Done { durable } => {
                self.tell(if durable { "    durable" } else { "    not known to be durable" });
                Ok(())
            }
            Record::Lost | Record::End => {
                self.tell("the machine ends");
                self.finish();
                Ok(())
            }
        }
    }

    /// The machine is no more; what it held is counted.
    fn finish(&mut self) {
        if let Some(now) = self.now.take() {
            self.played.rows = now.base.iter().count();
        }
    }

    fn begin(&mut self, at: usize, release: String, origin: Origin) -> Result<(), Failure> {
        if self.now.is_some() {
            let what = format!(
                "a machine begins at byte {at} although the one before did not end: its process was killed"
            );
            self.played.remarks.push(what);
        }
        self.finish();
        let machine = Any::build(origin).map_err(|what| self.unknown(at, what))?;
        self.now = Some(Machined { machine, base: MemoryBase::default(), open: Writes::new(), made: None });
        self.played.machines += 1;
        self.tell(&format!("a machine of release {release} begins"));
        if !self.played.releases.contains(&release) {
            self.played.releases.push(release);
        }
        Ok(())
    }

    fn rows(&mut self, at: usize, table: &str, rows: Vec<(Vec<u8>, Vec<u8>)>) -> Result<(), Failure> {
        let Some(now) = &mut self.now else { return Ok(()) };
        let Some(table) = now.machine.table(table) else {
            return Err(self.unknown(at, format!("this build has no table {table}")));
        };
        let mut writes = Writes::new();
        for (key, value) in rows {
            writes.write(table, key, Some(value));
        }
        now.base.apply(&writes);
        Ok(())
    }

    fn event(&mut self, at: usize, step: &Step, event: &[u8]) -> Result<(), Failure> {
        let Some(now) = &mut self.now else { return Ok(()) };
        self.played.events += 1;
        let line = format!(
            "{} at {} ms, {}: {}",
            self.played.events,
            step.mono.0,
            step.wall.0,
            cut(&readable(&String::from_utf8_lossy(event)))
        );
        if self.last.len() > BEFORE {
            self.last.pop_front();
        }
        self.last.push_back(line.clone());
        let mut writes = Writes::new();
        let made = catch_unwind(AssertUnwindSafe(|| now.machine.handle(step, event, &now.base, &mut writes)));
        let made = match made {
            Ok(Ok(made)) => made,
            Ok(Err(what)) => return Err(self.unknown(at, what)),
            Err(_) => return Err(self.differs(at, "the machine panics".to_owned())),
        };
        now.base.apply(&writes);
        now.open.absorb(writes);
        now.made = Some(made);
        self.tell(&line);
        Ok(())
    }

    fn effects(&mut self, at: usize, answered: bool, effects: &[String]) -> Result<(), Failure> {
        let made = self.now.as_mut().and_then(|now| now.made.take());
        let Some(made) = made else { return Ok(()) };
        if !answered {
            // The store failed then and does not now; what was made of it was said to nobody.
            self.tell("    the store did not answer");
            return Ok(());
        }
        if !made.answered {
            return Err(self.differs(at, "the machine says that its store did not answer".to_owned()));
        }
        for effect in &made.effects {
            self.tell(&format!("    {}", cut(&readable(effect))));
        }
        if let Some(place) =
            (0..effects.len().max(made.effects.len())).find(|n| effects.get(*n) != made.effects.get(*n))
        {
            let what = told(place, effects.get(place), made.effects.get(place));
            return Err(self.differs(at, what));
        }
        self.played.effects += effects.len() as u64;
        Ok(())
    }

    fn batch(&mut self, at: usize, rows: u64, captured: messaging_proto::hash::Hash) -> Result<(), Failure> {
        let Some(now) = &mut self.now else { return Ok(()) };
        let open = std::mem::take(&mut now.open);
        let (count, made) = digest(&open);
        if (count, made) != (rows, captured) {
            let mut what = format!(
                "the rows written since the batch before differ: the capture has {rows} rows of hash {captured}, replay {count} of {made}:"
            );
            for (table, key, value) in open.iter() {
                let value =
                    value.map_or_else(|| "deleted".to_owned(), |value| format!("{} bytes", value.len()));
                let _ = write!(what, "\n  {} {}: {value}", table.0, key.escape_ascii());
            }
            return Err(self.differs(at, what));
        }
        self.played.batches += 1;
        self.tell(&format!("    {rows} rows go to the disk"));
        Ok(())
    }
}

/// Words about two effects that should be one.
fn told(place: usize, captured: Option<&String>, made: Option<&String>) -> String {
    match (captured, made) {
        (Some(captured), Some(made)) => {
            let same = captured.bytes().zip(made.bytes()).take_while(|(one, other)| one == other).count();
            let around = |text: &str| {
                let from = (0..=same.saturating_sub(AROUND))
                    .rev()
                    .find(|at| text.is_char_boundary(*at))
                    .unwrap_or(0);
                let to =
                    (same + AROUND..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
                text[from..to].to_owned()
            };
            format!(
                "effect {} differs from byte {same} on\n  capture: …{}…\n  replay:  …{}…",
                place + 1,
                around(captured),
                around(made)
            )
        }
        (Some(captured), None) => {
            format!("effect {} is missing: the capture has {}", place + 1, cut(captured))
        }
        (None, made) => {
            format!(
                "effect {} is one too many: replay has {}",
                place + 1,
                cut(made.map_or("", String::as_str))
            )
        }
    }
}

/// A line of a client is an array of numbers in JSON; people read text.
fn readable(text: &str) -> String {
    let Some((before, rest)) = text.split_once(r#""line":["#) else { return text.to_owned() };
    let Some((numbers, after)) = rest.split_once(']') else { return text.to_owned() };
    let bytes: Option<Vec<u8>> = numbers.split(',').map(|number| number.parse().ok()).collect();
    match bytes {
        Some(bytes) => format!("{before}\"line\":{}{after}", String::from_utf8_lossy(&bytes)),
        None => text.to_owned(),
    }
}

/// The beginning of a text, on one line of a terminal.
fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
