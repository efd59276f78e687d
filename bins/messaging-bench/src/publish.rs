//! Acked sends a second: `count` senders, each with one envelope under way, to recipients that are offline.

use crate::link::Link;
use crate::relay::Relay;
use crate::team::Team;
use crate::{Fault, quantile_ms};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// Recipients that never connect.
const RECIPIENTS: usize = 64;
/// More than any relay here takes from one sender in the time.
const RATE_MAX: usize = 40_000;

pub(crate) fn run(
    program: &Path,
    folder: &Path,
    bytes: usize,
    count: usize,
    seconds: u64,
) -> Result<Value, Fault> {
    let relay = Relay::start(program, folder)?;
    let team = Team::found(relay.port, count + RECIPIENTS)?;
    let recipients: Vec<usize> = (count..count + RECIPIENTS).collect();
    let each = (RATE_MAX / count * usize::try_from(seconds)?).clamp(200, 12_000);
    let barrier = Arc::new(Barrier::new(count + 1));
    let mut threads = Vec::new();
    for sender in 0..count {
        let prepared = team.prepare(sender, &recipients, each, bytes)?;
        let mut link = Link::live(relay.port, &team.machines[sender].key, &team.id)?;
        let barrier = Arc::clone(&barrier);
        threads.push(std::thread::spawn(move || -> Result<Vec<u64>, Fault> {
            barrier.wait();
            let end = Instant::now() + Duration::from_secs(seconds);
            let mut times = Vec::with_capacity(prepared.len());
            for envelope in prepared {
                let start = Instant::now();
                if start >= end {
                    break;
                }
                link.send_acked(envelope.frame, &envelope.id)?;
                times.push(u64::try_from(start.elapsed().as_micros())?);
            }
            Ok(times)
        }));
    }
    barrier.wait();
    let start = Instant::now();
    let cpu = relay.cpu_micros()?;
    let mut times = Vec::new();
    for thread in threads {
        times.extend(thread.join().map_err(|_| "a sender failed")??);
    }
    let elapsed = start.elapsed().as_secs_f64().min(f64::from(u32::try_from(seconds)?) + 1.0);
    let cpu = relay.cpu_micros()? - cpu;
    times.sort_unstable();
    #[allow(clippy::cast_precision_loss)]
    let sent = times.len() as f64;
    #[allow(clippy::cast_precision_loss)]
    let cpu = cpu as f64;
    Ok(json!({
        "msgs_s": sent / elapsed,
        "ack_p50_ms": quantile_ms(&times, 0.5),
        "ack_p99_ms": quantile_ms(&times, 0.99),
        "server_cpu_us_per_msg": cpu / sent,
    }))
}
