//! The driver with a toy machine over real redb files.

use super::*;
use crate::store::fault::{Failure, Faults};
use crate::store::{Location, Options, Schema, StoreFault};
use messaging_machines::{Label, Out, Step, StoreDown, Table, Txn};
use messaging_proto::time::Mono;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const T: Table = Table("t");

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Event {
    Start,
    /// Appends a row; says `Put` with how many there are.
    Put(u64),
    /// Says `Seen` with the row and how many events this machine saw.
    Get(u64),
    /// Sets a deadline this many milliseconds from now.
    Alarm(u64),
    /// Likewise, and the timer writes before it rings.
    WritingAlarm(u64),
    Timer,
    /// The store does not answer.
    Broken,
    Stop,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
enum Effect {
    Started { rows: usize },
    Put { n: u64, rows: usize, nonce: [u8; 4] },
    Seen { n: u64, found: bool },
    Rang,
    Stopped,
}

#[derive(Default)]
struct Toy {
    alarm: Option<Mono>,
    writes: bool,
}

impl Machine for Toy {
    type Event = Event;
    type Effect = Effect;
    type Timer = ();

    fn handle(
        &mut self,
        step: &Step,
        event: Event,
        store: &mut Txn<'_>,
        out: &mut Out<Effect>,
    ) -> Result<(), StoreDown> {
        match event {
            Event::Start => out.push(Effect::Started { rows: store.prefix(T, b"", 1_000_000)?.len() }),
            Event::Put(n) => {
                store.put(T, &n.to_be_bytes(), b"row");
                let rows = store.prefix(T, b"", 1_000_000)?.len();
                out.push(Effect::Put { n, rows, nonce: step.draw(Label::Nonce) });
            }
            Event::Get(n) => {
                out.push(Effect::Seen { n, found: store.get(T, &n.to_be_bytes())?.is_some() });
            }
            Event::Alarm(ms) => self.alarm = Some(step.mono.plus(ms)),
            Event::WritingAlarm(ms) => {
                (self.alarm, self.writes) = (Some(step.mono.plus(ms)), true);
            }
            Event::Timer => {
                if self.alarm.take_if(|at| *at <= step.mono).is_some() {
                    if std::mem::take(&mut self.writes) {
                        store.put(T, b"rang", b"row");
                    }
                    out.push(Effect::Rang);
                }
            }
            Event::Broken => return Err(StoreDown),
            Event::Stop => out.push(Effect::Stopped),
        }
        Ok(())
    }

    fn deadline(&self) -> Option<(Mono, ())> {
        self.alarm.map(|at| (at, ()))
    }

    fn timer_event() -> Event {
        Event::Timer
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Said {
    /// An effect, and how many syncs the file had seen then.
    Effect(Effect, u64),
    Reset {
        lost: Vec<Event>,
        unsaid: Vec<Effect>,
    },
    Refused(Event),
}

#[derive(Clone)]
struct Recorder {
    said: Arc<Mutex<Vec<Said>>>,
    faults: Faults,
}

impl Recorder {
    fn all(&self) -> Vec<Said> {
        self.said.lock().unwrap().clone()
    }

    fn wait(&self, wanted: impl Fn(&Said) -> bool) -> Said {
        let start = Instant::now();
        loop {
            if let Some(said) = self.all().into_iter().find(&wanted) {
                return said;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "never said: {:?}", self.all());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn wait_put(&self, n: u64) -> Said {
        self.wait(|said| matches!(said, Said::Effect(Effect::Put { n: put, .. }, _) if *put == n))
    }
}

impl Perform<Toy> for Recorder {
    type Receipt = Event;

    fn receipt(&mut self, event: &Event) -> Option<Event> {
        Some(event.clone())
    }

    fn perform(&mut self, effect: Effect) -> Flow {
        let stop = effect == Effect::Stopped;
        self.said.lock().unwrap().push(Said::Effect(effect, self.faults.syncs()));
        if stop { Flow::Stop } else { Flow::Continue }
    }

    fn reset(&mut self, lost: Vec<Event>, unsaid: Vec<Effect>) {
        self.said.lock().unwrap().push(Said::Reset { lost, unsaid });
    }

    fn refuse(&mut self, event: Event) {
        self.said.lock().unwrap().push(Said::Refused(event));
    }

    fn resume(&mut self) -> Vec<Event> {
        vec![Event::Start]
    }
}

struct World {
    driver: Driver<Event>,
    recorder: Recorder,
    log: Log,
    location: Location,
    _dir: tempfile::TempDir,
}

const JOURNAL: Option<&[Table]> = Some(&[crate::store::META, T]);

fn world() -> World {
    world_with(JOURNAL)
}

fn world_with(journal: Option<&'static [Table]>) -> World {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let location = Location::with_faults(&dir.path().join("x.db"), faults.clone());
    let recorder = Recorder { said: Arc::default(), faults };
    let log = Log::kept();
    let (driver, location) = start(location, &recorder, &log, journal);
    World { driver, recorder, log, location, _dir: dir }
}

fn start(
    location: Location,
    recorder: &Recorder,
    log: &Log,
    journal: Option<&'static [Table]>,
) -> (Driver<Event>, Location) {
    let open = move |location: &Location| {
        RedbStore::open(
            location,
            Schema::CURRENT,
            Options { cache_bytes: 1 << 20, quick_repair: false, journal },
        )
    };
    let again = location.clone();
    let driver = Driver::spawn(Setup::<Toy, _> {
        name: "toy",
        store: Ok(open(&location).unwrap()),
        reopen: Box::new(move || open(&again)),
        build: Box::new(Toy::default),
        perform: recorder.clone(),
        bounds: Bounds { retry_ms: 40, retry_max_ms: 80, settle_ms: 30, ..Bounds::default() },
        log: log.clone(),
        capture: None,
        ended: Box::new(|| {}),
    })
    .unwrap();
    (driver, location)
}

impl World {
    fn send(&self, event: Event) {
        assert!(self.driver.events.send_blocking(event));
    }

    fn finish(self) -> Vec<Said> {
        self.send(Event::Stop);
        self.driver.join().unwrap();
        self.recorder.all()
    }
}

fn effects(said: &[Said]) -> Vec<Effect> {
    said.iter()
        .filter_map(|said| match said {
            Said::Effect(effect, _) => Some(effect.clone()),
            _ => None,
        })
        .collect()
}

#[test]
fn nothing_is_said_before_it_is_durable_and_everything_in_order() {
    let world = world();
    for n in 0..600 {
        world.send(Event::Put(n));
        world.send(Event::Get(n));
        if n % 100 == 0 {
            // Lets batches end, so that some of them start from nothing.
            world.recorder.wait_put(n);
        }
    }
    let health = Arc::clone(&world.driver.health);
    let said = effects(&world.finish());
    let mut expected = 0;
    for pair in said[1..said.len() - 1].chunks(2) {
        assert!(
            matches!(&pair[0], Effect::Put { n, rows, .. } if *n == expected && *rows as u64 == expected + 1),
            "{pair:?}"
        );
        assert_eq!(pair[1], Effect::Seen { n: expected, found: true }, "reads see the open batch");
        expected += 1;
    }
    assert_eq!(expected, 600);
    let commits = health.commits.count();
    assert!(commits < 300, "events share commits: {commits}");
    assert_eq!(health.writes(), 600);
}

#[test]
fn an_effect_waits_for_its_sync() {
    let world = world();
    world.recorder.wait(|said| matches!(said, Said::Effect(Effect::Started { .. }, _)));
    for n in 0..20 {
        let before = world.recorder.faults.syncs();
        world.send(Event::Put(n));
        let Said::Effect(_, after) = world.recorder.wait_put(n) else { unreachable!() };
        assert!(after > before, "said after the sync");
        while world.driver.health.read(|reader| reader.unsettled()) == Some(true) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let before = world.recorder.faults.syncs();
        world.send(Event::Get(n));
        world
            .recorder
            .wait(|said| matches!(said, Said::Effect(Effect::Seen { n: seen, .. }, _) if *seen == n));
        assert_eq!(world.recorder.faults.syncs(), before, "a read costs no sync");
    }
    world.finish();
}

#[test]
fn entropy_differs_from_step_to_step() {
    let world = world();
    for n in 0..100 {
        world.send(Event::Put(n));
    }
    let nonces: std::collections::BTreeSet<_> = effects(&world.finish())
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Put { nonce, .. } => Some(nonce),
            _ => None,
        })
        .collect();
    assert_eq!(nonces.len(), 100);
}

#[test]
fn a_failed_sync_tells_nobody_and_loses_nothing_that_was_said() {
    for (journal, failure) in [
        (JOURNAL, Failure::Phantom),
        (JOURNAL, Failure::Lost),
        (None, Failure::Phantom),
        (None, Failure::Lost),
    ] {
        let world = world_with(journal);
        world.send(Event::Put(1));
        world.recorder.wait_put(1);
        world.recorder.faults.fail_sync(1, failure);
        world.send(Event::Put(2));
        world.send(Event::Get(2));
        let reset = world.recorder.wait(|said| matches!(said, Said::Reset { .. }));
        let Said::Reset { lost, unsaid } = reset else { unreachable!() };
        assert_eq!(lost[0], Event::Put(2), "the adapter can answer it");
        assert!(!unsaid.is_empty());
        assert!(
            !effects(&world.recorder.all()).iter().any(|effect| matches!(effect, Effect::Put { n: 2, .. }))
        );
        // A new machine over the reopened file.
        let rows = |rows| move |said: &Said| matches!(said, Said::Effect(Effect::Started { rows: r }, _) if *r == rows);
        world.recorder.wait(rows(if failure == Failure::Phantom { 2 } else { 1 }));
        let recovered =
            world.log.lines().into_iter().find(|line| line["event"] == "store.recovered").unwrap();
        assert_eq!(recovered["lastBatchDurable"], failure == Failure::Phantom);
        // The resend has one effect either way.
        world.send(Event::Put(2));
        let Said::Effect(Effect::Put { rows, .. }, _) = world.recorder.wait_put(2) else { unreachable!() };
        assert_eq!(rows, 2, "{failure:?}");
        assert!(!world.driver.health.store_failing());
        world.finish();
    }
}

#[test]
fn a_full_disk_refuses_until_it_heals() {
    a_full_disk_refuses(JOURNAL);
    a_full_disk_refuses(None);
}

fn a_full_disk_refuses(journal: Option<&'static [Table]>) {
    let world = world_with(journal);
    world.send(Event::Put(1));
    world.recorder.wait_put(1);
    world.recorder.faults.set_full(true);
    world.send(Event::Put(2));
    world.recorder.wait(|said| matches!(said, Said::Reset { .. }));
    world.send(Event::Put(3));
    world.recorder.wait(|said| *said == Said::Refused(Event::Put(3)));
    assert!(world.driver.health.store_failing());
    std::thread::sleep(Duration::from_millis(200));
    assert!(world.log.names().iter().filter(|name| *name == "store.failing").count() > 1, "probes go on");
    let failing = world.log.lines().into_iter().find(|line| line["event"] == "store.failing").unwrap();
    assert_eq!((failing["error"].as_str(), failing["retryMs"].as_u64()), (Some("disk_full"), Some(40)));
    world.recorder.faults.set_full(false);
    world.recorder.wait(|said| matches!(said, Said::Effect(Effect::Started { rows: 1 }, _)));
    world.send(Event::Put(3));
    world.recorder.wait_put(3);
    assert!(!world.driver.health.store_failing() && !world.driver.health.store_closed());
    let said = effects(&world.finish());
    assert!(!said.iter().any(|effect| matches!(effect, Effect::Put { n: 2, .. })));
}

#[test]
fn a_store_that_does_not_answer_a_read_is_reopened() {
    let world = world();
    world.send(Event::Put(1));
    world.send(Event::Broken);
    let reset = world.recorder.wait(|said| matches!(said, Said::Reset { .. }));
    let Said::Reset { lost, .. } = reset else { unreachable!() };
    assert_eq!(lost.last(), Some(&Event::Broken));
    let start = Instant::now();
    while world.driver.health.store_failing() {
        assert!(start.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(2));
    }
    world.send(Event::Put(2));
    world.recorder.wait_put(2);
    world.finish();
}

#[test]
fn a_store_that_goes_away_is_closed_and_stopping_does_not_wait_for_it() {
    let world = world();
    world.send(Event::Put(1));
    world.recorder.wait_put(1);
    std::fs::write(world.location.path(), "").unwrap();
    std::fs::remove_file(world.location.path()).unwrap();
    std::fs::create_dir(world.location.path()).unwrap();
    world.recorder.faults.fail_sync(1, Failure::Phantom);
    world.send(Event::Put(2));
    world.recorder.wait(|said| matches!(said, Said::Reset { .. }));
    let start = Instant::now();
    while !world.driver.health.store_closed() {
        assert!(start.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(2));
    }
    world.driver.health.stop();
    world.driver.join().unwrap();
}

#[test]
fn timers_ring_once_and_the_loop_sleeps_between() {
    let world = world();
    world.send(Event::Alarm(30));
    let start = Instant::now();
    world.recorder.wait(|said| matches!(said, Said::Effect(Effect::Rang, _)));
    assert!(start.elapsed() >= Duration::from_millis(25));
    std::thread::sleep(Duration::from_millis(60));
    let rang = effects(&world.finish()).iter().filter(|effect| **effect == Effect::Rang).count();
    assert_eq!(rang, 1);
}

/// What a timer writes is made durable and said at once, not with the next event: a presence, an expiry or a retry would
/// come when the driver looks at its clock again, five seconds later.
#[test]
fn what_a_timer_writes_is_committed_at_once() {
    let world = world();
    // A slow machine may be late once, but hardly three times by that much.
    let on_time = (1..=3).any(|round| {
        let rang = || effects(&world.recorder.all()).iter().filter(|said| **said == Effect::Rang).count();
        let start = Instant::now();
        world.send(Event::WritingAlarm(20));
        while rang() < round {
            assert!(start.elapsed() < Duration::from_secs(20), "it never rang");
            std::thread::sleep(Duration::from_millis(2));
        }
        start.elapsed() < Duration::from_secs(4)
    });
    assert!(on_time, "the commit waited for the driver to look at its clock");
    world.finish();
}

#[test]
fn stopping_commits_and_closes_the_file_cleanly() {
    let world = world();
    for n in 0..10 {
        world.send(Event::Put(n));
    }
    let location = world.location.clone();
    let recorder = world.recorder.clone();
    world.send(Event::Stop);
    let World { driver, _dir, .. } = world;
    driver.join().unwrap();
    let (driver, _) = start(location, &recorder, &Log::kept(), JOURNAL);
    recorder.wait(|said| matches!(said, Said::Effect(Effect::Started { rows: 10 }, _)));
    driver.events.send_blocking(Event::Stop);
    driver.join().unwrap();
}

#[test]
fn a_driver_ends_when_nobody_sends_any_more() {
    let world = world();
    for n in 0..10 {
        world.send(Event::Put(n));
    }
    world.driver.join().unwrap();
    assert_eq!(effects(&world.recorder.all()).len(), 11, "everything taken is said");
}

#[test]
fn fault_names_are_fixed_words() {
    let full: StoreFault = redb::StorageError::Io(std::io::ErrorKind::StorageFull.into()).into();
    assert_eq!(full, StoreFault("disk_full"));
}
