//! A message's whole life: taken, stored, acked, delivered, acked by its recipient, deleted. Pairs of a sender, with
//! some envelopes under way, and a recipient that is online and acks each delivery.

use crate::Fault;
use crate::raw::{Raws, frame, has, id};
use crate::relay::Relay;
use crate::team::Team;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

/// Messages of all pairs together.
const MESSAGES: usize = 24_000;

pub(crate) fn run(
    program: &Path,
    folder: &Path,
    bytes: usize,
    pairs: usize,
    window: usize,
) -> Result<Value, Fault> {
    let relay = Relay::start(program, folder)?;
    let team = Team::found(relay.port, pairs * 2)?;
    let mut waiting = Vec::new();
    for sender in 0..pairs {
        let prepared = team.prepare(sender, &[pairs + sender], MESSAGES / pairs, bytes)?;
        waiting.push(prepared.iter().map(|one| frame(&one.frame)).collect::<Vec<_>>().into_iter());
    }
    let keys: Vec<_> = team.machines.iter().map(|machine| &machine.key).collect();
    let mut raws = Raws::connect(relay.port, &team.id, &keys)?;
    let total: usize = waiting.iter().map(ExactSizeIterator::len).sum();
    let cpu = relay.cpu_micros()?;
    let start = Instant::now();
    for (sender, frames) in waiting.iter_mut().enumerate() {
        for bytes in frames.by_ref().take(window) {
            raws.send(sender, &bytes)?;
        }
    }
    let (mut acked, mut delivered, mut messages) = (0, 0, Vec::new());
    while acked < total || delivered < total {
        raws.wait(&mut messages)?;
        for (index, message) in messages.drain(..) {
            if index < pairs {
                if !has(&message, b"\"ack\"") {
                    return Err(format!("not an ack: {}", String::from_utf8_lossy(&message)).into());
                }
                acked += 1;
                if let Some(bytes) = waiting[index].next() {
                    raws.send(index, &bytes)?;
                }
            } else {
                let id = std::str::from_utf8(id(&message).ok_or("no delivery")?)?;
                let from = team.machines[index - pairs].key.machine();
                let ack = format!("{{\"from\":\"{from}\",\"id\":\"{id}\",\"t\":\"recv.ack\"}}");
                raws.send(index, &frame(&ack))?;
                delivered += 1;
            }
        }
    }
    let elapsed = start.elapsed().as_secs_f64();
    // The last acks are taken and committed when their pong comes.
    for recipient in pairs..pairs * 2 {
        raws.send(recipient, &frame(r#"{"n":2,"t":"ping"}"#))?;
    }
    let mut pongs = 0;
    while pongs < pairs {
        raws.wait(&mut messages)?;
        pongs += messages.drain(..).filter(|(_, message)| has(message, b"\"pong\"")).count();
    }
    let cpu = relay.cpu_micros()? - cpu;
    #[allow(clippy::cast_precision_loss)]
    let (count, cpu) = (total as f64, cpu as f64);
    Ok(json!({
        "msgs_s": count / elapsed,
        "window": window,
        "delivered": delivered,
        "server_cpu_us_per_msg": cpu / count,
    }))
}
