//! What must hold after every step of every machine, one check a file. Each is a promise of `messaging/1`, seen from outside:
//! the checks read the rows that were committed and the effects that left, and none of the machines' own code.

mod authority;
mod consent;
mod durable;
mod evidence;
mod fate;
mod inbox;
mod keys;
mod links;
mod logs;
mod moves;
mod order;
mod plaintext;
mod proof;
mod queue;
mod removal;
mod rising;
mod roster;
mod stages;
mod stored;
mod tasks;
mod turns;
mod window;

use crate::coverage::Coverage;
use crate::world::{Commit, Watch, Who};
use messaging_machines::relay::schema::{self, EnvelopeRow};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The check's name.
    pub invariant: &'static str,
    /// When, in virtual milliseconds.
    pub mono: u64,
    /// What did not hold.
    pub what: String,
}

/// A check of every step.
trait Invariant {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Looks at a step.
    ///
    /// # Errors
    /// What did not hold.
    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String>;
}

/// An envelope the relay stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its sender's machine.
    pub from: String,
    /// Its recipient's machine.
    pub to: String,
    /// Its place in the relay's order.
    pub position: Vec<u8>,
    /// When its lifetime is over.
    pub exp: Option<u64>,
    /// Its type; a message to no agent is a `line`, and one between machines of one person an `own line`.
    pub kind: String,
}

/// What several checks need to know, kept up to date with every step before the checks look at it.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Every envelope the relay ever stored, by id.
    pub stored: BTreeMap<String, Stored>,
    /// The ids the relay acked as `relayed`.
    pub relayed: BTreeSet<String>,
    /// The ids each daemon dealt with, and the ids it held once.
    pub seen: BTreeMap<usize, BTreeSet<String>>,
    /// The ids each daemon ever had in its outbox.
    pub queued: BTreeMap<usize, BTreeSet<String>>,
    /// The ids each daemon ever had a delivery record of.
    pub recorded: BTreeMap<usize, BTreeSet<String>>,
    /// The person of each daemon.
    pub persons: BTreeMap<usize, String>,
    /// The proofs each daemon holds: the keys of its rows.
    pub evidence: BTreeMap<usize, BTreeSet<Vec<u8>>>,
    /// The ids each daemon held for its person at some time.
    pub held: BTreeMap<usize, BTreeSet<String>>,
    /// The machines each daemon's own roster said were removed before the step that is looked at.
    pub removed: BTreeMap<usize, BTreeSet<String>>,
    /// The daemons whose relay lied to them: it dropped, swapped or repeated frames.
    pub lied: BTreeSet<usize>,
    /// The daemons whom the relay showed another roster than the rest.
    pub forked: BTreeSet<usize>,
    /// The members whose connection another program said something on.
    pub garbled: BTreeSet<usize>,
    /// Texts that only the ends of a conversation may see all begin with this.
    pub secret: &'static str,
}

impl Facts {
    fn take(&mut self, commit: &Commit<'_>) {
        match commit.who {
            Who::Relay => {
                for (key, row) in puts(commit, schema::ENVELOPE.0) {
                    let Some(row) = EnvelopeRow::decode(row) else { continue };
                    let Ok(envelope) = serde_json::from_str::<Value>(row.text) else { continue };
                    let machine = |end: &str| word(&envelope, &[end, "device"]);
                    let (from, to) = (machine("from"), machine("to"));
                    let exp = envelope.get("exp").and_then(Value::as_u64);
                    let to_agent = envelope["to"].get("agent").is_some();
                    let kind = match word(&envelope, &["type"]) {
                        kind if kind == "message" && !to_agent => {
                            let own = word(&envelope, &["class"]) == "self";
                            if own { "own line" } else { "line" }.to_owned()
                        }
                        kind => kind,
                    };
                    let stored = Stored { from, to, position: key.to_vec(), exp, kind };
                    self.stored.insert(word(&envelope, &["id"]), stored);
                }
                for ack in said(commit, "Ack") {
                    self.relayed.insert(word(&ack, &["id"]));
                }
            }
            Who::Daemon(number) => {
                self.seen.entry(number).or_default().extend(seen_ids(commit));
                self.queued
                    .entry(number)
                    .or_default()
                    .extend(rows(commit, "outbox").map(|(_, row)| word(&row, &["id"])));
                self.recorded.entry(number).or_default().extend(
                    puts(commit, "sent")
                        .map(|(key, _)| String::from_utf8_lossy(key).trim_end_matches('\0').to_owned()),
                );
                let evidence = self.evidence.entry(number).or_default();
                evidence.extend(puts(commit, "evidence").map(|(key, _)| key.to_vec()));
                for key in deletes(commit, "evidence") {
                    evidence.remove(key);
                }
                for (_, ask) in rows(commit, "held") {
                    self.held.entry(number).or_default().insert(word(&ask, &["id"]));
                }
            }
        }
    }

    /// What is a fact for the steps after this one.
    fn after(&mut self, commit: &Commit<'_>) {
        if let Who::Daemon(number) = commit.who {
            for (_, entry) in rows(commit, "roster") {
                if word(&entry, &["op"]) == "member.remove" {
                    self.removed.entry(number).or_default().insert(word(&entry, &["machine"]));
                }
            }
        }
    }
}

/// Every check with what it knows. [`World::watch`](crate::World::watch) takes a [`Watcher`] of it.
pub struct Invariants {
    checks: Vec<Box<dyn Invariant>>,
    /// What the checks know.
    pub facts: Facts,
    /// What was broken, in order.
    pub broken: Vec<Broken>,
    /// What was reached.
    pub coverage: Coverage,
    /// A readable timeline, when one is kept.
    pub trace: Option<Vec<String>>,
}

impl Invariants {
    /// Every check, of a world whose private texts begin with `secret`.
    #[must_use]
    pub fn new(secret: &'static str) -> Self {
        let checks: Vec<Box<dyn Invariant>> = vec![
            Box::new(inbox::Once::default()),
            Box::new(stages::Forward::default()),
            Box::new(tasks::Terminal::default()),
            Box::new(roster::OneChain::default()),
            Box::new(removal::Out),
            Box::new(plaintext::Sealed),
            Box::new(logs::NoErrors),
            Box::new(order::PerSender::default()),
            Box::new(queue::Caps::default()),
            Box::new(links::AckedIsDurable),
            Box::new(stored::Once::default()),
            Box::new(window::Window::default()),
            Box::new(fate::Fate::default()),
            Box::new(durable::SaidIsDurable),
            Box::new(proof::Proved::default()),
            Box::new(moves::Moves::default()),
            Box::new(turns::Turns::default()),
            Box::new(keys::OldKeysOpen),
            Box::new(evidence::Kept),
            Box::new(authority::Authority::default()),
            Box::new(rising::Rising::default()),
            Box::new(consent::LetIn::default()),
        ];
        let facts = Facts { secret, ..Facts::default() };
        Self { checks, facts, broken: Vec::new(), coverage: Coverage::default(), trace: None }
    }

    /// The checks' names.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.checks.iter().map(|check| check.name()).collect()
    }

    /// Notes that something was broken which no single step shows.
    pub(crate) fn break_one(&mut self, invariant: &'static str, mono: u64, what: String) {
        self.broken.push(Broken { invariant, mono, what });
    }

    fn look(&mut self, commit: &Commit<'_>) {
        self.facts.take(commit);
        for check in &mut self.checks {
            if let Err(what) = check.commit(commit, &self.facts) {
                let what = format!("{:?}: {what}", commit.who);
                self.broken.push(Broken { invariant: check.name(), mono: commit.mono, what });
            }
        }
        self.facts.after(commit);
        self.coverage.take(commit);
        if let Some(trace) = &mut self.trace {
            trace.extend(crate::explain::lines(commit));
        }
    }
}

/// Shares [`Invariants`] between a world and who runs it.
pub struct Watcher(pub Rc<RefCell<Invariants>>);

impl Watch for Watcher {
    fn commit(&mut self, commit: &Commit<'_>) {
        self.0.borrow_mut().look(commit);
    }
}

/// The envelopes that a daemon dealt with in a step, by what it keeps against duplicates.
fn seen_ids(commit: &Commit<'_>) -> impl Iterator<Item = String> {
    puts(commit, "seen").map(|(key, _)| {
        let id = String::from_utf8_lossy(key).trim_end_matches('\0').to_owned();
        id.get(id.len().saturating_sub(26)..).unwrap_or_default().to_owned()
    })
}

/// The rows of a table that a step wrote.
pub(crate) fn puts<'a>(commit: &'a Commit<'_>, table: &'a str) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    let of = commit.writes.iter().filter(move |(other, ..)| other.0 == table);
    of.filter_map(|(_, key, value)| value.map(|value| (key, value)))
}

/// The keys of a table that a step deleted.
pub(crate) fn deletes<'a>(commit: &'a Commit<'_>, table: &'a str) -> impl Iterator<Item = &'a [u8]> {
    commit
        .writes
        .iter()
        .filter(move |(other, _, value)| other.0 == table && value.is_none())
        .map(|(_, key, _)| key)
}

/// The daemon's rows of a table that a step wrote: a version byte, then JSON.
pub(crate) fn rows<'a>(commit: &'a Commit<'_>, table: &'a str) -> impl Iterator<Item = (&'a [u8], Value)> {
    puts(commit, table).filter_map(|(key, row)| Some((key, serde_json::from_slice(row.get(1..)?).ok()?)))
}

/// The frames of a kind that the relay sent in a step.
pub(crate) fn said<'a>(commit: &'a Commit<'_>, kind: &'a str) -> impl Iterator<Item = Value> {
    let mark = format!(r#""frame":{{"{kind}":"#);
    let of = commit.effects.iter().filter(move |effect| effect.contains(&mark));
    of.filter_map(move |effect| {
        let effect: Value = serde_json::from_str(effect).ok()?;
        Some(effect.get("Send")?.get("frame")?.get(kind)?.clone())
    })
}

/// The text at a path of names, or nothing.
pub(crate) fn word(value: &Value, path: &[&str]) -> String {
    let found = path.iter().try_fold(value, |value, name| value.get(name));
    found.and_then(Value::as_str).unwrap_or_default().to_owned()
}
