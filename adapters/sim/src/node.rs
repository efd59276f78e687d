//! One daemon with its store, its files and its clients.

use messaging_machines::daemon::config::Settings;
use messaging_machines::daemon::io::{Effect, Event, File, IpcId, SaveId};
use messaging_machines::daemon::{Config, Daemon};
use messaging_machines::machine::{Machine, Out, Step};
use messaging_machines::store::{MemoryBase, Txn, Writes};
use messaging_proto::identity::IdentityFile;
use messaging_proto::json::{FromValue, Value};
use std::collections::VecDeque;
use zeroize::Zeroizing;

/// When a daemon crashes: at its n-th coming event (1 is the next).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// How many events from now, counted from 1.
    pub at: usize,
    /// Whether the event's commit is there afterwards.
    pub committed: bool,
    /// How many of its effects left before the crash.
    pub effects: usize,
}

/// One daemon: its machine, what survives a crash, and what its clients saw.
pub struct Node {
    /// The machine.
    pub machine: Daemon,
    /// Its store; a crash keeps it.
    pub base: MemoryBase,
    /// The text of `identity.json`.
    pub identity: Option<String>,
    /// The text of `pairing.json`.
    pub pairing: Option<String>,
    /// The text of `config.json`.
    pub config: String,
    /// Whether it reaches the relay.
    pub reaches: bool,
    /// Whether its connection looks open while nothing passes, in either direction: half-open.
    pub silent: bool,
    /// How long everything takes on its way between it and the relay, in milliseconds.
    pub latency: u64,
    /// How long its socket takes to read what the relay sent before it can take more, in milliseconds.
    pub slow: u64,
    /// Frames of the relay to it that get lost on an otherwise sound connection: a relay that drops.
    pub drop_frames: usize,
    /// Whether the next frame to it arrives after the one that follows it: a relay that reorders.
    pub swap: bool,
    /// What its clock is ahead by, in milliseconds.
    pub skew: i64,
    /// The connection of the admin tier that a start opens.
    pub admin: IpcId,
    /// Every line it sent to a client.
    pub lines: Vec<(IpcId, Value)>,
    /// The connections it closed.
    pub closed: Vec<IpcId>,
    /// Whether it said that it stopped.
    pub stopped: bool,
    /// Which of the coming file writes fail.
    pub fail_saves: VecDeque<bool>,
    /// The crash that is planned.
    pub crash: Option<Crash>,
    /// Whether it crashed and was not started since.
    pub crashed: bool,
    /// The disk is full: how many of the coming events that write are lost, each with its machine.
    pub fail_writes: usize,
    /// Answers of file writes that are on their way.
    pub saved: VecDeque<(SaveId, bool)>,
    /// Whether the store is kept as it is after every commit.
    pub keep: bool,
    /// The kept stores, oldest first.
    pub kept: Vec<MemoryBase>,
    conns: u64,
    calls: u64,
}

impl Node {
    pub(crate) fn new() -> Self {
        Self {
            machine: build(None, None, "{}"),
            base: MemoryBase::default(),
            identity: None,
            pairing: None,
            config: "{}".to_owned(),
            reaches: true,
            silent: false,
            latency: 0,
            slow: 0,
            drop_frames: 0,
            swap: false,
            skew: 0,
            admin: IpcId(0),
            lines: Vec::new(),
            closed: Vec::new(),
            stopped: false,
            fail_saves: VecDeque::new(),
            crash: None,
            crashed: false,
            fail_writes: 0,
            saved: VecDeque::new(),
            keep: false,
            kept: Vec::new(),
            conns: 0,
            calls: 0,
        }
    }

    pub(crate) fn rebuild(&mut self) {
        self.machine = build(self.identity.as_deref(), self.pairing.as_deref(), &self.config);
        self.saved.clear();
        self.crashed = false;
        self.stopped = false;
    }

    pub(crate) fn next_conn(&mut self) -> IpcId {
        self.conns += 1;
        IpcId(self.conns)
    }

    pub(crate) fn next_call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    /// Handles an event: the effects that leave. A planned crash happens here.
    pub(crate) fn handle(&mut self, step: &Step, event: Event) -> (Vec<Effect>, Writes) {
        let starts = matches!(event, Event::Start);
        let mut writes = Writes::new();
        let mut out = Out::new();
        let mut txn = Txn::new(&self.base, None, &mut writes);
        self.machine.handle(step, event, &mut txn, &mut out).expect("the store answers");
        let mut effects = out.take();
        let crash = self.crash.as_mut().and_then(|crash| {
            crash.at -= 1;
            (crash.at == 0).then_some(*crash)
        });
        // A start finds the little room it needs.
        let full = self.fail_writes > 0 && !starts && !writes.is_empty();
        self.fail_writes -= usize::from(full);
        let crash = crash.or_else(|| full.then_some(Crash { at: 0, committed: false, effects: 0 }));
        match crash {
            None => self.base.apply(&writes),
            Some(crash) => {
                self.crash = self.crash.filter(|planned| planned.at > 0);
                self.crashed = true;
                if crash.committed {
                    self.base.apply(&writes);
                } else {
                    writes = Writes::new();
                }
                effects.truncate(if crash.committed { crash.effects } else { 0 });
            }
        }
        if self.keep {
            self.kept.push(self.base.clone());
        }
        (effects, writes)
    }

    /// Writes a file.
    pub(crate) fn save(&mut self, save: SaveId, file: File) {
        let ok = !self.fail_saves.pop_front().unwrap_or(false);
        let text = |file: Option<IdentityFile>| file.map(|file| file.text().to_owned());
        match file {
            _ if !ok => {}
            File::Identity(file) => self.identity = text(file),
            File::Pairing(file) => self.pairing = text(file),
            File::Config(config) => self.config = config,
        }
        self.saved.push_back((save, ok));
    }

    /// The reply to a request on a connection.
    pub(crate) fn reply(&self, conn: IpcId, id: u64) -> Option<&Value> {
        self.lines
            .iter()
            .filter(|(other, _)| *other == conn)
            .map(|(_, line)| line)
            .find(|line| line.get("id").is_some_and(|value| u64::from_value(value).ok() == Some(id)))
    }

    /// The events of a type on a connection.
    pub fn events(&self, conn: IpcId, of: &str) -> Vec<&Value> {
        let on = self.lines.iter().filter(|(other, _)| *other == conn);
        on.filter_map(|(_, line)| line.get("params"))
            .filter(|event| event.get("type").and_then(Value::as_str) == Some(of))
            .collect()
    }
}

fn build(identity: Option<&str>, pairing: Option<&str>, config: &str) -> Daemon {
    let read = |text: Option<&str>| {
        text.map(|text| IdentityFile::new(Zeroizing::new(text.to_owned())).read().expect("a file it wrote"))
    };
    let settings = Settings::parse(config.as_bytes()).expect("a file it wrote").settings;
    let config = Config { settings, version: "1.0.0".to_owned(), pid: 7 };
    Daemon::new(config, read(identity), read(pairing))
}
