//! The queue on its own: what a step may cost, and long queues.

use super::*;
use crate::relay::limits::Limits;
use crate::relay::schema::{SEAT, seat_key};
use crate::store::{MemoryBase, Writes};
use messaging_proto::hash::Hash;
use messaging_proto::key::MachineId;

const TEAM: Hash = Hash([7; 32]);

struct Bench {
    base: MemoryBase,
    queue: Queue,
    mono: u64,
    wall: u64,
    ids: u128,
}

impl Bench {
    fn new() -> Self {
        let base = MemoryBase::default();
        let mut writes = Writes::new();
        let queue = Queue::start(&step(0, 1), &Txn::new(&base, None, &mut writes)).unwrap();
        Self { base, queue, mono: 0, wall: 1_000_000, ids: 0 }
    }

    /// One step; how many rows it wrote.
    fn step<T>(
        &mut self,
        work: impl FnOnce(&mut Queue, &Step, &mut Txn<'_>) -> Result<T, StoreDown>,
    ) -> (T, usize) {
        let mut writes = Writes::new();
        let mut txn = Txn::new(&self.base, None, &mut writes);
        let done = work(&mut self.queue, &step(self.mono, self.wall), &mut txn).unwrap();
        self.base.apply(&writes);
        (done, writes.iter().count())
    }

    fn put(&mut self, to: u64, from: u64, exp: u64) {
        self.ids += 1;
        let id = IdKey(self.ids.to_be_bytes());
        let (to, from, exp) = (Seat(to), Seat(from), Wall(exp));
        let item = Item { to, from, id, exp, print: Print([0; 16]), text: "{}" };
        self.step(|queue, step, txn| Ok(queue.put(step, txn, &item)));
    }

    fn rows(&self, table: crate::store::Table) -> usize {
        self.base.iter().filter(|(one, ..)| *one == table).count()
    }

    /// Starts over from what is stored.
    fn restart(&mut self) {
        let mut writes = Writes::new();
        let txn = Txn::new(&self.base, None, &mut writes);
        self.queue = Queue::start(&step(self.mono, self.wall), &txn).unwrap();
    }
}

fn step(mono: u64, wall: u64) -> Step {
    Step::new(Mono(mono), Wall(wall), [0; 32])
}

/// A team of more machines than a step looks at, each with something of the removed one and of another.
#[test]
fn a_removal_goes_on_in_bounded_steps_over_a_large_team_and_over_restarts() {
    let mut bench = Bench::new();
    for number in 1..=700_u64 {
        let mut machine = [0; 32];
        machine[..8].copy_from_slice(&number.to_be_bytes());
        let key = seat_key(&TEAM, &MachineId(machine));
        bench.step(|_, _, txn| {
            txn.put(SEAT, &key, &number.to_be_bytes());
            Ok(())
        });
        bench.put(number, 900, 9_000_000);
        bench.put(number, 901, 9_000_000);
    }
    for number in 1..=300 {
        bench.put(900, number, 9_000_000);
    }
    let (_, first) = bench.step(|queue, step, txn| queue.remove(step, txn, &TEAM, Seat(900)));
    let mut costs = vec![first];
    let mut steps = 0;
    while bench.queue.sweep_at.is_some() {
        bench.mono += 1;
        let (_, cost) = bench.step(|queue, step, txn| queue.sweep(step, txn));
        costs.push(cost);
        steps += 1;
        assert!(steps < 20, "it comes to an end");
        if steps == 2 {
            bench.restart();
        }
    }
    assert!(costs.iter().all(|cost| *cost <= 2 * 256 + 3), "{costs:?}");
    assert_eq!((bench.rows(ORDER), bench.rows(ENVELOPE), bench.rows(SWEEP)), (700, 700, 0));
    assert_eq!((bench.queue.counts.rows, bench.queue.counts.bytes), (700, 1_400));
    for number in 1..=700 {
        let (senders, _) = bench.step(|queue, _, txn| queue.backlog(txn, Seat(number)));
        assert_eq!(senders, [Seat(901)]);
    }
}

#[test]
fn a_purge_of_many_goes_on_in_bounded_steps_and_over_restarts() {
    let mut bench = Bench::new();
    for number in 0..1_000 {
        bench.put(1 + number % 3, 50, 2_000_000 + number % 7);
        bench.put(1, 50, 5_000_000);
    }
    bench.wall = 2_000_006;
    bench.mono = 100_000;
    let (mut dropped, mut steps) = (0, 0);
    while dropped < 1_000 {
        let (purged, cost) = bench.step(|queue, step, txn| queue.purge(step, txn));
        assert!(cost <= 3 * 256 + 1, "{cost}");
        assert_eq!(purged.seen, 0);
        dropped += purged.dropped.len();
        bench.mono += 1;
        steps += 1;
        assert!(steps < 10, "{dropped} of 1000");
        if steps == 2 {
            bench.restart();
        }
    }
    assert_eq!((bench.rows(ORDER), bench.rows(SEEN), bench.rows(EXPIRY)), (1_000, 2_000, 2_000));
    let (again, _) = bench.step(|queue, step, txn| queue.purge(step, txn));
    assert_eq!(again, purge::Purged::default());
    // The ids go later; what has not ended stays.
    bench.wall += CLOCK_SKEW_MS;
    let mut seen = 0;
    for _ in 0..100 {
        bench.mono += 1_000;
        seen += bench.step(|queue, step, txn| queue.purge(step, txn)).0.seen;
    }
    assert_eq!(seen, 1_000);
    assert_eq!((bench.rows(ORDER), bench.rows(SEEN), bench.rows(EXPIRY)), (1_000, 1_000, 1_000));
}

#[test]
fn the_purge_looks_again_within_a_minute_and_never_more_than_once_a_second() {
    let mut bench = Bench::new();
    bench.step(|queue, step, txn| queue.purge(step, txn));
    assert_eq!(bench.queue.deadline(), None, "nothing can end");
    bench.put(1, 2, bench.wall + 10);
    assert_eq!(bench.queue.deadline().unwrap().0, Mono(1_000));
    bench.mono = 1_000;
    bench.step(|queue, step, txn| queue.purge(step, txn));
    assert_eq!(bench.queue.deadline().unwrap().0, Mono(2_000), "it has not ended by the wall clock");
    bench.wall += 10;
    bench.mono = 2_000;
    let (purged, _) = bench.step(|queue, step, txn| queue.purge(step, txn));
    assert_eq!(purged.dropped.len(), 1);
    assert_eq!(bench.queue.deadline().unwrap().0, Mono(62_000), "the id ends in five minutes");
}

/// What ended is no reason to refuse, however far behind the purge is.
#[test]
fn caps_of_a_recipient_are_exact_while_the_purge_is_behind() {
    let mut bench = Bench::new();
    let limits = Limits { queue_per_sender: 1_500, queue_per_machine: 2_500, ..Limits::default() };
    for number in 0..1_500_u64 {
        bench.put(1, 2, if number < 1_499 { 2_000_000 } else { 5_000_000 });
    }
    let full = |bench: &mut Bench, from| {
        bench.step(|queue, step, txn| queue.full(step, txn, &limits, Seat(1), Seat(from), 2)).0
    };
    assert_eq!(full(&mut bench, 2), Some(Full::Sender));
    assert_eq!(full(&mut bench, 3), None);
    (0..1_000).for_each(|_| bench.put(1, 3, 2_000_000));
    assert_eq!(full(&mut bench, 3), Some(Full::Machine));
    bench.wall = 2_000_000;
    assert_eq!(full(&mut bench, 2), None);
    assert_eq!(full(&mut bench, 3), None);
    bench.restart();
    assert_eq!(full(&mut bench, 3), None);
}

/// Each refusal of a full queue that holds something ended reads it whole: so often only, whoever asks.
#[test]
fn counting_a_full_queue_again_is_paid_for() {
    let mut bench = Bench::new();
    let limits = Limits { queue_per_sender: 10_000, ..Limits::default() };
    (0..10_000).for_each(|_| bench.put(1, 2, 5_000_000));
    // What is behind is another recipient's.
    bench.put(9, 2, 1_500_000);
    bench.wall = 1_500_000;
    let left = |bench: &mut Bench| {
        bench
            .step(|queue, step, txn| {
                let full = queue.full(step, txn, &limits, Seat(1), Seat(2), 2)?;
                assert_eq!(full, Some(Full::Sender));
                let rate = super::depth::RECOUNT;
                Ok(queue.recounts.map_or(rate.burst, |bucket| bucket.wait_ms(&rate, step.mono, rate.burst)))
            })
            .0
    };
    let waits: Vec<u64> = (0..25).map(|_| left(&mut bench)).collect();
    assert_eq!((waits[0], waits[19], waits[24]), (100, 2_000, 2_000), "twenty of them, and no more");
    bench.mono += 100;
    assert_eq!((left(&mut bench), left(&mut bench)), (2_000, 2_000), "one more in a tenth of a second");
}

#[test]
fn gauges_read_what_is_durable() {
    let mut bench = Bench::new();
    assert_eq!(gauges(&bench.base, Wall(5)), Ok(Gauges::default()));
    let start = bench.wall;
    bench.put(1, 2, start + 100_000);
    bench.wall += 700;
    bench.put(3, 4, start + 100_000);
    let expected = Gauges { rows: 2, bytes: 4, oldest_age_ms: 1_000 };
    assert_eq!(gauges(&bench.base, Wall(start + 1_000)), Ok(expected));
    bench.step(|queue, _, txn| {
        queue.delete(txn, Seat(1), Seat(2), Position(0), 2);
        Ok(())
    });
    let expected = Gauges { rows: 1, bytes: 2, oldest_age_ms: 300 };
    assert_eq!(gauges(&bench.base, Wall(start + 1_000)), Ok(expected));
}
