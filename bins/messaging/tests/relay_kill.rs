//! Two relays under load, killed 50 times: nothing acked is lost, and nothing is applied twice.

#![allow(clippy::unwrap_used)]

mod world;

use messaging_bench::Fault;
use messaging_bench::link::Link;
use messaging_bench::team::Team;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use world::{PATIENCE, World};

/// Kills, both relays together.
const KILLS: usize = 50;
/// Machines of each team: half of them send, half receive.
const SENDERS: usize = 3;
const RECEIVERS: usize = 3;
/// Envelopes under way from one sender.
const UNDER_WAY: u64 = 8;
/// Limits that this load would meet.
const RAISED: [&str; 6] =
    ["--frames-per-minute", "1000000", "--bytes-per-minute", "1000000000", "--redeliver-min-ms", "300"];

/// What the clients of one relay know.
struct Load {
    port: u16,
    team: Team,
    stop: AtomicBool,
    /// Senders that may still have something under way.
    sending: AtomicUsize,
    /// Ids that were acked `relayed`.
    acked: Mutex<BTreeSet<String>>,
    /// Everything that was sent.
    sent: AtomicU64,
    /// What receivers applied, and as which text.
    applied: Mutex<BTreeMap<String, String>>,
    /// Acks of theirs that the relay is known to have made durable.
    settled: Mutex<BTreeSet<String>>,
}

impl Load {
    fn begin(port: u16) -> (Arc<Self>, Vec<JoinHandle<()>>) {
        let load = Arc::new(Self {
            port,
            team: Team::found(port, SENDERS + RECEIVERS).unwrap(),
            stop: AtomicBool::new(false),
            sending: AtomicUsize::new(SENDERS),
            acked: Mutex::default(),
            sent: AtomicU64::new(0),
            applied: Mutex::default(),
            settled: Mutex::default(),
        });
        let senders = (0..SENDERS).map(|machine| {
            let load = Arc::clone(&load);
            std::thread::spawn(move || load.send(machine))
        });
        let receivers = (SENDERS..SENDERS + RECEIVERS).map(|machine| {
            let load = Arc::clone(&load);
            std::thread::spawn(move || load.receive(machine))
        });
        let threads = senders.chain(receivers).collect();
        (load, threads)
    }

    /// A link, however long the relay is away.
    fn link(&self, machine: usize) -> Link {
        let end = Instant::now() + PATIENCE;
        loop {
            match Link::live(self.port, &self.team.machines[machine].key, &self.team.id) {
                Ok(link) => {
                    link.patience(Duration::from_millis(100)).unwrap();
                    return link;
                }
                Err(error) => assert!(Instant::now() < end, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sends until told to stop, and then until everything is acked. What was not acked is sent again, unchanged, on
    /// the next link.
    fn send(&self, machine: usize) {
        let mut pending: BTreeMap<String, String> = BTreeMap::new();
        let mut index = 0;
        while !(self.stopping() && pending.is_empty()) {
            let mut link = self.link(machine);
            // The link ends with its relay.
            let _ = self.send_on(&mut link, machine, &mut pending, &mut index);
        }
        self.sending.fetch_sub(1, Ordering::SeqCst);
    }

    fn send_on(
        &self,
        link: &mut Link,
        machine: usize,
        pending: &mut BTreeMap<String, String>,
        index: &mut u64,
    ) -> Result<(), Fault> {
        for frame in pending.values() {
            link.say(frame.clone())?;
        }
        let mut waited = Instant::now();
        while !(self.stopping() && pending.is_empty()) {
            while !self.stopping() && (pending.len() as u64) < UNDER_WAY {
                *index += 1;
                let to = SENDERS + usize::try_from(*index)? % RECEIVERS;
                let envelope = self.team.one(machine, to, *index, 300)?;
                pending.insert(envelope.id, envelope.frame.clone());
                self.sent.fetch_add(1, Ordering::Relaxed);
                link.say(envelope.frame)?;
            }
            let Some(text) = link.poll()? else {
                assert!(waited.elapsed() < PATIENCE, "no ack");
                continue;
            };
            waited = Instant::now();
            let frame: serde_json::Value = serde_json::from_str(&text)?;
            match frame["t"].as_str() {
                Some("ack") => {
                    let id = frame["id"].as_str().unwrap();
                    if pending.remove(id).is_some() {
                        self.acked.lock().unwrap().insert(id.to_owned());
                    }
                }
                Some("nack" | "error") => panic!("{text}"),
                _ => {}
            }
        }
        Ok(())
    }

    fn receive(&self, machine: usize) {
        while !self.stopping() || !self.is_drained() {
            let mut link = self.link(machine);
            let _ = self.receive_on(&mut link);
        }
    }

    /// Applies what comes and acks it. A pong that answers a ping behind acks says that those are durable.
    fn receive_on(&self, link: &mut Link) -> Result<(), Fault> {
        let (mut number, mut unsettled) = (0_u64, Vec::new());
        let mut asked: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        while !self.stopping() || !self.is_drained() {
            let Some(text) = link.poll()? else { continue };
            let frame: serde_json::Value = serde_json::from_str(&text)?;
            match frame["t"].as_str() {
                Some("deliver") => {
                    let id = frame["env"]["id"].as_str().unwrap().to_owned();
                    let from = frame["env"]["from"]["device"].as_str().unwrap().to_owned();
                    assert!(
                        !self.settled.lock().unwrap().contains(&id),
                        "applied, acked, and delivered again"
                    );
                    let before = self.applied.lock().unwrap().insert(id.clone(), text.clone());
                    assert!(before.is_none_or(|before| before == text), "one id, two texts");
                    link.say(format!("{{\"from\":\"{from}\",\"id\":\"{id}\",\"t\":\"recv.ack\"}}"))?;
                    unsettled.push(id);
                    if unsettled.len() >= 8 {
                        number += 1;
                        asked.insert(number, std::mem::take(&mut unsettled));
                        link.say(format!("{{\"t\":\"ping\",\"n\":{number}}}"))?;
                    }
                }
                Some("pong") => {
                    let ids = asked.remove(&frame["n"].as_u64().unwrap()).unwrap();
                    self.settled.lock().unwrap().extend(ids);
                }
                Some("nack" | "error") => panic!("{text}"),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether nothing more is acked `relayed`, and everything that was is applied. A receiver that left between two
    /// acks would leave the others waiting for what comes to it.
    fn is_drained(&self) -> bool {
        if self.sending.load(Ordering::SeqCst) > 0 {
            return false;
        }
        let applied = self.applied.lock().unwrap();
        self.acked.lock().unwrap().iter().all(|id| applied.contains_key(id))
    }

    /// Nothing more comes to anybody, and the queue is empty.
    fn check(&self) {
        let (acked, applied) = (self.acked.lock().unwrap(), self.applied.lock().unwrap());
        assert_eq!(acked.len() as u64, self.sent.load(Ordering::Relaxed), "everything was acked in the end");
        assert!(acked.iter().all(|id| applied.contains_key(id)), "nothing acked is lost");
        assert!(applied.keys().all(|id| acked.contains(id)), "nothing came that nobody sent");
        assert!(acked.len() > KILLS * 2, "a load: {}", acked.len());
        for machine in SENDERS..SENDERS + RECEIVERS {
            // Acks that no pong answered may have been lost with a relay; the second time there are none.
            for round in 0..2 {
                let mut link = self.link(machine);
                link.say(r#"{"t":"ping","n":1}"#.to_owned()).unwrap();
                loop {
                    let Some(text) = link.poll().unwrap() else { continue };
                    let frame: serde_json::Value = serde_json::from_str(&text).unwrap();
                    if frame["t"] == "deliver" {
                        let (id, from) = (&frame["env"]["id"], &frame["env"]["from"]["device"]);
                        assert!(round == 0 && applied[id.as_str().unwrap()] == text);
                        link.say(format!("{{\"from\":{from},\"id\":{id},\"t\":\"recv.ack\"}}")).unwrap();
                        link.say(r#"{"t":"ping","n":2}"#.to_owned()).unwrap();
                    } else if frame["t"] == "pong" {
                        break;
                    }
                }
                // Whatever was acked behind the pong is durable once the next one came.
                link.say(r#"{"t":"ping","n":9}"#.to_owned()).unwrap();
                while !link.poll().unwrap().is_some_and(|text| text.contains("\"n\":9")) {}
            }
        }
    }
}

#[test]
fn two_relays_killed_50_times_lose_nothing_and_double_nothing() {
    let mut worlds = [World::with_relay_flags(&RAISED), World::with_relay_flags(&RAISED)];
    let (loads, threads): (Vec<_>, Vec<_>) = worlds.iter().map(|world| Load::begin(world.port)).unzip();
    for kill in 0..KILLS {
        // Now and then the second death comes while the relay starts, or while everybody connects again.
        let pause = [150, 40, 90, 5, 220][kill % 5];
        std::thread::sleep(Duration::from_millis(pause));
        let world = &mut worlds[kill % 2];
        world.kill_relay();
        world.start_relay();
    }
    std::thread::sleep(Duration::from_millis(300));
    for load in &loads {
        load.stop.store(true, Ordering::Relaxed);
    }
    for thread in threads.into_iter().flatten() {
        thread.join().unwrap();
    }
    for load in &loads {
        load.check();
    }
}
