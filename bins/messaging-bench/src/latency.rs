//! End to end: one sender at a fixed rate to an online recipient, from the send call to the receipt, in one clock.

use crate::link::Link;
use crate::relay::Relay;
use crate::team::Team;
use crate::{Fault, quantile_ms};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

const MESSAGES: usize = 600;

pub(crate) fn run(program: &Path, folder: &Path, bytes: usize, rate: u64) -> Result<Value, Fault> {
    let relay = Relay::start(program, folder)?;
    let team = Team::found(relay.port, 2)?;
    let prepared = team.prepare(0, &[1], MESSAGES, bytes)?;
    let mut recipient = Link::live(relay.port, &team.machines[1].key, &team.id)?;
    let mut sender = Link::live(relay.port, &team.machines[0].key, &team.id)?;
    let from = team.machines[0].key.machine();
    let (done, arrived) = mpsc::channel();
    let receiver = std::thread::spawn(move || -> Result<(), Fault> {
        for _ in 0..MESSAGES {
            loop {
                let text = recipient.text()?;
                let at = Instant::now();
                if !text.contains("\"deliver\"") {
                    continue;
                }
                let frame: Value = serde_json::from_str(&text)?;
                let id = frame["env"]["id"].as_str().unwrap_or_default().to_owned();
                recipient.say(format!("{{\"from\":\"{from}\",\"id\":\"{id}\",\"t\":\"recv.ack\"}}"))?;
                done.send((id, at))?;
                break;
            }
        }
        Ok(())
    });
    let gap = Duration::from_micros(1_000_000 / rate.max(1));
    let start = Instant::now();
    let cpu = relay.cpu_micros()?;
    let mut sent = BTreeMap::new();
    for (index, envelope) in prepared.into_iter().enumerate() {
        let due = start + gap * u32::try_from(index)?;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        sent.insert(envelope.id.clone(), Instant::now());
        sender.send_acked(envelope.frame, &envelope.id)?;
    }
    receiver.join().map_err(|_| "the recipient failed")??;
    let cpu = relay.cpu_micros()? - cpu;
    let mut times = Vec::new();
    for (id, at) in arrived.try_iter() {
        let begun = sent.get(&id).ok_or("something arrived that was not sent")?;
        times.push(u64::try_from(at.duration_since(*begun).as_micros())?);
    }
    times.sort_unstable();
    #[allow(clippy::cast_precision_loss)]
    let per_message = cpu as f64 / MESSAGES as f64;
    Ok(json!({
        "e2e_p50_ms": quantile_ms(&times, 0.5),
        "e2e_p99_ms": quantile_ms(&times, 0.99),
        "got": times.len(),
        "sent": MESSAGES,
        "server_cpu_us_per_msg": per_message,
    }))
}
