//! A backlog from one sender, drained by one recipient that reconnects: received, acked, then looked for again.

use crate::Fault;
use crate::link::Link;
use crate::relay::Relay;
use crate::team::Team;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

/// Sends under way at once while filling.
const UNDER_WAY: usize = 256;

pub(crate) fn run(program: &Path, folder: &Path, bytes: usize, backlog: usize) -> Result<Value, Fault> {
    let relay = Relay::start(program, folder)?;
    let team = Team::found(relay.port, 2)?;
    let prepared = team.prepare(0, &[1], backlog, bytes)?;
    let mut sender = Link::live(relay.port, &team.machines[0].key, &team.id)?;
    let filling = Instant::now();
    for batch in prepared.chunks(UNDER_WAY) {
        for envelope in batch {
            sender.say(envelope.frame.clone())?;
        }
        for envelope in batch {
            sender.acked(&envelope.id)?;
        }
    }
    let fill = filling.elapsed().as_secs_f64();

    let from = team.machines[0].key.machine();
    let start = Instant::now();
    let cpu = relay.cpu_micros()?;
    let mut recipient = Link::live(relay.port, &team.machines[1].key, &team.id)?;
    let mut got = BTreeSet::new();
    let mut copies = 0_usize;
    while got.len() < backlog {
        let text = recipient.text()?;
        if !text.contains("\"deliver\"") {
            continue;
        }
        // The id is read without parsing the rest: this side shares the cores with the relay.
        let at = text.find("\"id\":\"").ok_or("a delivery without an id")? + 6;
        let id = text.get(at..at + 26).ok_or("a short id")?.to_owned();
        recipient.say(format!("{{\"from\":\"{from}\",\"id\":\"{id}\",\"t\":\"recv.ack\"}}"))?;
        if !got.insert(id) {
            copies += 1;
        }
    }
    // Replies keep the order of a connection's frames: the pong follows the last ack's commit.
    recipient.say(r#"{"t":"ping","n":1}"#.to_owned())?;
    while recipient.value()?["t"] != "pong" {}
    let elapsed = start.elapsed().as_secs_f64();
    let cpu = relay.cpu_micros()? - cpu;
    drop(recipient);
    let mut again = Link::live(relay.port, &team.machines[1].key, &team.id)?;
    again.say(r#"{"t":"ping","n":2}"#.to_owned())?;
    let mut left = 0_usize;
    while again.value()?["t"] != "pong" {
        left += 1;
    }
    #[allow(clippy::cast_precision_loss)]
    let count = backlog as f64;
    #[allow(clippy::cast_precision_loss)]
    let cpu = cpu as f64;
    Ok(json!({
        "drain_msgs_s": count / elapsed,
        "fill_msgs_s": count / fill,
        "backlog": backlog,
        "got": got.len(),
        "copies": copies,
        "left_after_ack": left,
        "server_cpu_us_per_msg": cpu / count,
    }))
}
