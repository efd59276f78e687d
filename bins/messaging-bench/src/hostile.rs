//! What honest clients notice of hostile ones: end-to-end latency in a quiet relay, and in the same relay while slow heads,
//! oversized messages, silent sockets, recipients that never ack or never read, floods and hoarding of places before
//! `hello` all happen at once, or only those kinds that are named.
//!
//! The attackers would have machines of their own. Here they share two cores with the relay, so their threads have the
//! lowest priority: what is measured is what they cost the relay, not what it costs to be hostile. `acts` counts what
//! each did, so that an attack that starved shows.

use crate::link::{Link, delivered};
use crate::relay::Relay;
use crate::team::Team;
use crate::{Fault, quantile_ms};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Honest pairs, and what each sends: within the default budget of a machine.
const PAIRS: usize = 20;
const GAP: Duration = Duration::from_millis(125);
/// Hostile machines that are members: never acks, never reads, floods (two), oversized, sends to the first two.
const HOSTILE: usize = 6;
const NEVER_ACKS: usize = 2 * PAIRS;
const NEVER_READS: usize = NEVER_ACKS + 1;
const FLOODS: usize = NEVER_ACKS + 2;
const FLOODS_BLINDLY: usize = NEVER_ACKS + 3;
const OVERSIZED: usize = NEVER_ACKS + 4;
const FEEDS: usize = NEVER_ACKS + 5;

/// One way to be hostile, until it is thrown out.
type Act = fn(&Attack) -> Result<(), Fault>;

const ACTS: [(&str, Act); 9] = [
    ("slow_heads", Attack::slow_heads),
    ("silent", Attack::silent),
    ("hoard", Attack::hoard),
    ("oversized", Attack::oversized),
    ("never_ack", Attack::never_ack),
    ("never_read", Attack::never_read),
    ("flood", Attack::flood),
    ("flood_blindly", Attack::flood_blindly),
    ("feed", Attack::feed),
];

struct Attack {
    port: u16,
    team: Arc<Team>,
    stop: Arc<AtomicBool>,
    did: Arc<AtomicU64>,
}

/// Runs it.
pub(crate) fn run(
    program: &Path,
    folder: &Path,
    bytes: usize,
    seconds: u64,
    only: &[String],
) -> Result<Value, Fault> {
    let relay = Relay::start_with(program, folder, &[("--trusted-proxy", "127.0.0.1")])?;
    let team = Arc::new(Team::found(relay.port, 2 * PAIRS + HOSTILE)?);
    let idle = relay.cpu_micros()?;
    let quiet = honest(&relay, &team, bytes, seconds, 0)?;
    let idle = relay.cpu_micros()? - idle;
    let stop = Arc::new(AtomicBool::new(false));
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    let mut counts = Vec::new();
    for (name, act) in ACTS.iter().filter(|(name, _)| only.is_empty() || only.iter().any(|only| only == name))
    {
        let did = Arc::new(AtomicU64::new(0));
        counts.push((*name, Arc::clone(&did)));
        let attack = Attack { port: relay.port, team: Arc::clone(&team), stop: Arc::clone(&stop), did };
        threads.push(std::thread::spawn(move || {
            // Of this thread alone, on Linux.
            let _ = rustix::process::setpriority_process(None, 19);
            while !attack.stop.load(Ordering::Relaxed) {
                // Being thrown out is what it is for.
                let _ = act(&attack);
                std::thread::sleep(Duration::from_millis(2));
            }
        }));
    }
    if threads.is_empty() {
        return Err("no such kind".into());
    }
    std::thread::sleep(Duration::from_secs(2));
    let before: Vec<u64> = counts.iter().map(|(_, did)| did.load(Ordering::Relaxed)).collect();
    let cpu = relay.cpu_micros()?;
    let under = honest(&relay, &team, bytes, seconds, 1_000_000)?;
    let cpu = relay.cpu_micros()? - cpu;
    let acts: Map<String, Value> = counts
        .iter()
        .zip(before)
        .map(|((name, did), before)| ((*name).to_owned(), json!(did.load(Ordering::Relaxed) - before)))
        .collect();
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().map_err(|_| "an attacker failed")?;
    }
    let after = honest(&relay, &team, bytes, seconds.min(10), 2_000_000)?;
    let ratio = quantile_ms(&under, 0.99) / quantile_ms(&quiet, 0.99).max(0.001);
    let share = |cpu: u64| cpu / (seconds * 10_000);
    Ok(json!({
        "pairs": PAIRS,
        "quiet_p50_ms": quantile_ms(&quiet, 0.5),
        "quiet_p99_ms": quantile_ms(&quiet, 0.99),
        "hostile_p50_ms": quantile_ms(&under, 0.5),
        "hostile_p99_ms": quantile_ms(&under, 0.99),
        "hostile_worst_ms": quantile_ms(&under, 1.0),
        "after_p99_ms": quantile_ms(&after, 0.99),
        "p99_ratio": ratio,
        "acts": acts,
        "delivered": [quiet.len(), under.len(), after.len()],
        "server_cpu_share": [share(idle), share(cpu)],
        "rss_kib": relay.resident()? / 1024,
    }))
}

/// Honest pairs for some seconds: sorted microseconds from send to delivery. Everything must arrive.
fn honest(
    relay: &Relay,
    team: &Arc<Team>,
    bytes: usize,
    seconds: u64,
    first: u64,
) -> Result<Vec<u64>, Fault> {
    let begun: Arc<Mutex<BTreeMap<String, Instant>>> = Arc::default();
    let mut threads = Vec::new();
    for pair in 0..PAIRS {
        let (team, begun, port) = (Arc::clone(team), Arc::clone(&begun), relay.port);
        let count = seconds * 1_000_000 / u64::try_from(GAP.as_micros())?;
        let (from, to) = (2 * pair, 2 * pair + 1);
        let mut recipient = Link::live(port, &team.machines[to].key, &team.id)?;
        let mut sender = Link::live(port, &team.machines[from].key, &team.id)?;
        let sent = Arc::clone(&begun);
        let receiving = std::thread::spawn(move || -> Result<Vec<u64>, Fault> {
            let mut times = Vec::new();
            while (times.len() as u64) < count {
                let text = recipient.text()?;
                let at = Instant::now();
                let Some((id, from)) = delivered(&text) else { continue };
                recipient.say(format!("{{\"from\":\"{from}\",\"id\":\"{id}\",\"t\":\"recv.ack\"}}"))?;
                // A copy of the last phase, perhaps.
                if let Some(start) = begun.lock().map_err(|_| "poisoned")?.remove(id) {
                    times.push(u64::try_from(at.duration_since(start).as_micros())?);
                }
            }
            Ok(times)
        });
        let sending = std::thread::spawn(move || -> Result<(), Fault> {
            let start = Instant::now() + GAP.mul_f64(pair as f64 / PAIRS as f64);
            for index in 0..count {
                let envelope = team.one(from, to, first + index, bytes / 2)?;
                let due = start + GAP * u32::try_from(index)?;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                sent.lock().map_err(|_| "poisoned")?.insert(envelope.id.clone(), Instant::now());
                sender.send_acked(envelope.frame, &envelope.id)?;
            }
            Ok(())
        });
        threads.push((sending, receiving));
    }
    let mut times = Vec::new();
    for (sending, receiving) in threads {
        sending.join().map_err(|_| "a sender failed")??;
        times.extend(receiving.join().map_err(|_| "a recipient failed")??);
    }
    times.sort_unstable();
    Ok(times)
}

impl Attack {
    fn going(&self) -> bool {
        self.did.fetch_add(1, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }

    fn live(&self, machine: usize) -> Result<Link, Fault> {
        Link::live_from(self.port, Some("10.6.6.6"), &self.team.machines[machine].key, &self.team.id)
    }

    /// Two hundred request heads, a byte of each a second.
    fn slow_heads(&self) -> Result<(), Fault> {
        let dial = || TcpStream::connect(("127.0.0.1", self.port));
        let mut sockets = (0..200).map(|_| dial()).collect::<Result<Vec<_>, _>>()?;
        while self.going() {
            for socket in &mut sockets {
                if socket.write_all(b"X").is_err() {
                    *socket = dial()?;
                    socket.write_all(b"GET /v1/connect HTTP/1.1\r\nX-Slow: ")?;
                }
                std::thread::sleep(Duration::from_millis(5));
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Two hundred sockets that say nothing at all.
    fn silent(&self) -> Result<(), Fault> {
        let _sockets =
            (0..200).map(|_| TcpStream::connect(("127.0.0.1", self.port))).collect::<Result<Vec<_>, _>>()?;
        let end = Instant::now() + Duration::from_secs(11);
        while self.going() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// As many connections before `hello` as one address gets, from a few addresses, kept to the end of their patience.
    fn hoard(&self) -> Result<(), Fault> {
        let mut held = Vec::new();
        for address in ["10.1.1.1", "10.1.1.2", "10.1.1.3"] {
            while self.going() {
                match Link::open_from(self.port, Some(address)) {
                    Ok(link) => held.push(link),
                    Err(_) => break,
                }
            }
        }
        std::thread::sleep(Duration::from_secs(1));
        Ok(())
    }

    /// Messages over the limit, before and after `hello`.
    fn oversized(&self) -> Result<(), Fault> {
        while self.going() {
            let mut stranger = Link::open_from(self.port, Some("10.2.2.2"))?;
            let _ = stranger.say("x".repeat(40_000));
            let _ = stranger.text();
            let mut member = self.live(OVERSIZED)?;
            let _ = member.say("x".repeat(2 << 20));
            let _ = member.text();
        }
        Ok(())
    }

    /// Takes deliveries, and acks none.
    fn never_ack(&self) -> Result<(), Fault> {
        let mut link = self.live(NEVER_ACKS)?;
        link.patience(Duration::from_millis(200))?;
        while self.going() {
            link.poll()?;
        }
        Ok(())
    }

    /// Takes nothing at all.
    fn never_read(&self) -> Result<(), Fault> {
        let _link = self.live(NEVER_READS)?;
        let end = Instant::now() + Duration::from_secs(30);
        while self.going() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// As many frames as the socket takes, valid and signed, whose refusals it reads.
    fn flood(&self) -> Result<(), Fault> {
        self.pour(FLOODS, true)
    }

    /// The same without reading any.
    fn flood_blindly(&self) -> Result<(), Fault> {
        self.pour(FLOODS_BLINDLY, false)
    }

    fn pour(&self, machine: usize, reads: bool) -> Result<(), Fault> {
        let mut link = self.live(machine)?;
        let frames: Vec<String> = (0..64)
            .map(|index| Ok(self.team.one(machine, NEVER_ACKS, index, 700)?.frame))
            .collect::<Result<_, Fault>>()?;
        while self.going() {
            for frame in &frames {
                link.say(frame.clone())?;
            }
            if reads {
                for _ in &frames {
                    link.text()?;
                }
            }
        }
        Ok(())
    }

    /// Fills the queues of those that never ack and never read, as fast as its budget lets it.
    fn feed(&self) -> Result<(), Fault> {
        let mut link = self.live(FEEDS)?;
        let mut index = 0;
        while self.going() {
            index += 1;
            let to = if index % 2 == 0 { NEVER_ACKS } else { NEVER_READS };
            link.say(self.team.one(FEEDS, to, index, 100_000)?.frame)?;
            link.text()?;
        }
        Ok(())
    }
}
