//! Acked sends a second: `count` senders, each with one envelope under way, to recipients that are offline.

use crate::raw::{Raws, frame, has};
use crate::relay::Relay;
use crate::team::Team;
use crate::{Fault, quantile_ms};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Recipients that never connect.
const RECIPIENTS: usize = 64;
/// Bytes made ahead of the clock.
const PREPARED: usize = 1 << 30;
/// More than any relay here takes in the time.
const RATE_MAX: usize = 40_000;

pub(crate) fn run(relay: &Relay, bytes: usize, count: usize, seconds: u64) -> Result<Value, Fault> {
    let team = Team::found(relay.port, count + RECIPIENTS)?;
    let recipients: Vec<usize> = (count..count + RECIPIENTS).collect();
    let each = (RATE_MAX / count * usize::try_from(seconds)?)
        .clamp(200, 12_000)
        .min((PREPARED / bytes.max(1) / count).max(50));
    let mut waiting = Vec::new();
    for sender in 0..count {
        let prepared = team.prepare(sender, &recipients, each, bytes)?;
        let frames = prepared.into_iter().map(|envelope| (envelope.id, frame(&envelope.frame)));
        waiting.push(frames.collect::<Vec<_>>().into_iter());
    }
    let keys: Vec<_> = team.machines[..count].iter().map(|machine| &machine.key).collect();
    let mut raws = Raws::connect(relay.port, &team.id, &keys)?;
    let cpu = relay.cpu_micros()?;
    let start = Instant::now();
    let end = start + Duration::from_secs(seconds);
    let mut under_way = Vec::new();
    for (sender, frames) in waiting.iter_mut().enumerate() {
        let (id, bytes) = frames.next().ok_or("nothing to send")?;
        under_way.push((id, Instant::now()));
        raws.send(sender, &bytes)?;
    }
    let (mut left, mut times, mut messages) = (count, Vec::new(), Vec::new());
    while left > 0 {
        raws.wait(&mut messages)?;
        for (sender, message) in messages.drain(..) {
            let (id, at) = &under_way[sender];
            if !has(&message, b"\"ack\"") || !has(&message, id.as_bytes()) {
                return Err(format!("not an ack: {}", String::from_utf8_lossy(&message)).into());
            }
            let now = Instant::now();
            times.push(u64::try_from(now.duration_since(*at).as_micros())?);
            match waiting[sender].next().filter(|_| now < end) {
                Some((id, bytes)) => {
                    under_way[sender] = (id, now);
                    raws.send(sender, &bytes)?;
                }
                None => left -= 1,
            }
        }
    }
    let elapsed = start.elapsed().as_secs_f64();
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
