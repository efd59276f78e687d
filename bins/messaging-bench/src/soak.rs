//! A long run: many connections that send to each other at a steady rate, leave and come back. What the relay's memory and
//! its file do meanwhile, and that everything arrives.

use crate::Fault;
use crate::link::{Link, delivered};
use crate::relay::Relay;
use crate::team::Team;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a connection is away.
const AWAY: Duration = Duration::from_secs(5);
/// How long envelopes may wait. The relay remembers their ids for that and five minutes, so that within ten minutes as many
/// are forgotten as come.
const TTL_MS: u64 = 30_000;
/// One connection leaves in this time.
const LEAVES: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Counts {
    stop: AtomicBool,
    acked: AtomicU64,
    /// Ids that were acked and did not arrive yet, or arrived and were not acked yet.
    open: Mutex<BTreeSet<String>>,
}

/// Runs it.
pub(crate) fn run(
    program: &Path,
    folder: &Path,
    bytes: usize,
    connections: usize,
    rate: u64,
    seconds: u64,
) -> Result<Value, Fault> {
    let raised = [("--preauth-per-address", "4096"), ("--preauth-connections", "4096")];
    let relay = Relay::start_with(program, folder, &raised)?;
    let mut team = Team::found(relay.port, connections)?;
    team.ttl_ms = TTL_MS;
    let team = Arc::new(team);
    let counts = Arc::new(Counts::default());
    let start = Instant::now();
    let mut threads = Vec::new();
    for machine in 0..connections {
        let (team, counts, port) = (Arc::clone(&team), Arc::clone(&counts), relay.port);
        let gap = Duration::from_micros(1_000_000 * connections as u64 / rate.max(1));
        let peer = Peer { machine, port, gap, pad: bytes / 2, start };
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        threads.push(thread.spawn(move || peer.run(&team, &counts))?);
    }
    let (mut samples, mut journals) = (Vec::new(), 0);
    let cpu = relay.cpu_micros()?;
    while start.elapsed() < Duration::from_secs(seconds) {
        std::thread::sleep(Duration::from_secs(1));
        samples.push((relay.resident()?, relay.store_bytes()?));
        journals = journals.max(relay.journal_bytes()?);
        if samples.len() % 60 == 0 {
            let (resident, store) = samples[samples.len() - 1];
            eprintln!("{} s: {} KiB resident, {} KiB store", samples.len(), resident / 1024, store / 1024);
        }
    }
    let cpu = relay.cpu_micros()? - cpu;
    counts.stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().map_err(|_| "a connection failed")??;
    }
    let minute = |range: std::ops::Range<usize>| {
        let minute = samples.get(range).unwrap_or_default();
        minute.iter().map(|(resident, _)| resident / 1024).sum::<u64>() / (minute.len() as u64).max(1)
    };
    let last = samples.len().saturating_sub(60)..samples.len();
    let acked = counts.acked.load(Ordering::Relaxed);
    Ok(json!({
        "connections": connections,
        "seconds": seconds,
        "acked": acked,
        "lost": counts.open.lock().map_err(|_| "poisoned")?.len(),
        "rss_kib_first_minute": minute(0..60),
        "rss_kib_second_minute": minute(60..120),
        "rss_kib_last_minute": minute(last),
        "store_kib_after_a_minute": samples.get(59).map(|(_, store)| store / 1024),
        "store_kib_largest": samples.iter().map(|(_, store)| store / 1024).max(),
        "journals_kib_largest": journals / 1024,
        "store_kib_last": samples.last().map(|(_, store)| store / 1024),
        "server_cpu_us_per_msg": cpu / acked.max(1),
    }))
}

/// One connection.
struct Peer {
    machine: usize,
    port: u16,
    gap: Duration,
    pad: usize,
    start: Instant,
}

impl Peer {
    fn run(&self, team: &Team, counts: &Counts) -> Result<(), Fault> {
        let count = team.machines.len();
        let live = || Link::live(self.port, &team.machines[self.machine].key, &team.id);
        let spread =
            self.gap.mul_f64(f64::from(u32::try_from(self.machine)?) / f64::from(u32::try_from(count)?));
        let mut due = self.start + spread;
        let mut leave = self.start + Duration::from_secs(60) + LEAVES * u32::try_from(self.machine)?;
        let mut link = live()?;
        let mut index = 0_u64;
        let mut unacked = 0_u64;
        let mut quiet = Instant::now();
        loop {
            let now = Instant::now();
            let stop = counts.stop.load(Ordering::Relaxed);
            // What is still under way arrives within a redelivery.
            if stop && quiet.elapsed() > Duration::from_secs(12) {
                return Ok(());
            }
            if now >= leave && unacked == 0 && !stop {
                leave = now + LEAVES * u32::try_from(count)?;
                drop(link);
                std::thread::sleep(AWAY);
                link = live()?;
                due = Instant::now() + spread;
                continue;
            }
            if now >= due && !stop {
                due += self.gap;
                index += 1;
                let hop = 1 + usize::try_from(index)? * 7 % (count - 1);
                let envelope = team.one(self.machine, (self.machine + hop) % count, index, self.pad)?;
                link.say(envelope.frame)?;
                unacked += 1;
                continue;
            }
            let wait = if stop { Duration::from_millis(500) } else { due - now };
            link.patience(wait.min(Duration::from_millis(500)))?;
            let Some(text) = link.poll()? else { continue };
            if let Some((id, from)) = delivered(&text) {
                quiet = Instant::now();
                link.say(format!("{{\"from\":\"{from}\",\"id\":\"{id}\",\"t\":\"recv.ack\"}}"))?;
                counts.meet(id)?;
            } else if text.contains("\"t\":\"ack\"") {
                quiet = Instant::now();
                unacked -= 1;
                counts.acked.fetch_add(1, Ordering::Relaxed);
                let at = text.find("\"id\":\"").ok_or("an ack without an id")? + 6;
                counts.meet(text.get(at..at + 26).ok_or("a short id")?)?;
            } else if text.contains("\"t\":\"nack\"") || text.contains("\"t\":\"error\"") {
                return Err(format!("refused: {text}").into());
            }
        }
    }
}

impl Counts {
    /// An ack and an arrival cancel out, whichever comes first.
    fn meet(&self, id: &str) -> Result<(), Fault> {
        let mut open = self.open.lock().map_err(|_| "poisoned")?;
        if !open.remove(id) {
            open.insert(id.to_owned());
        }
        Ok(())
    }
}
