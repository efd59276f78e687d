//! Resident memory per idle authenticated connection.

use crate::Fault;
use crate::link::Link;
use crate::relay::Relay;
use crate::team::Team;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Machines of a team: all of one are told of each that comes.
const TEAM: usize = 1_000;

pub(crate) fn run(program: &Path, folder: &Path, connections: usize) -> Result<Value, Fault> {
    let relay = Relay::start(program, folder)?;
    let teams = (0..connections.div_ceil(TEAM))
        .map(|team| Team::found(relay.port, TEAM.min(connections - team * TEAM)))
        .collect::<Result<Vec<_>, _>>()?;
    let before = relay.resident()?;
    let mut links = Vec::with_capacity(connections);
    for team in &teams {
        for machine in &team.machines {
            links.push(Link::live(relay.port, &machine.key, &team.id)?);
        }
    }
    std::thread::sleep(Duration::from_secs(2));
    let after = relay.resident()?;
    #[allow(clippy::cast_precision_loss)]
    let per_connection = (after.saturating_sub(before)) as f64 / 1024.0 / connections as f64;
    Ok(json!({
        "kib_per_conn": per_connection,
        "rss_before_kib": before / 1024,
        "rss_after_kib": after / 1024,
        "connections": links.len(),
    }))
}
