//! A large world: hundreds of sessions on five machines that write to each other until thousands of rows are stored. Small worlds
//! hide an order that differs from run to run; here it would show in the hash over every effect and every row.

use crate::world::World;
use messaging_machines::daemon::io::{IpcId, Tier};
use messaging_machines::store::MemoryBase;
use messaging_proto::hash::{Hash, sha256};

/// The machines, each with its person.
const TEAM: [&str; 5] = ["alice/laptop", "bob/desk", "carol/tower", "dave/cabin", "erin/shed"];
/// Sessions of each.
const SESSIONS: usize = 50;
/// How often every session writes.
const ROUNDS: usize = 2;

/// What a large world came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Large {
    /// Its sessions.
    pub sessions: usize,
    /// Messages that were accepted.
    pub sends: usize,
    /// Rows in every store together.
    pub rows: usize,
    /// The hash over every effect, in order.
    pub effects: Hash,
    /// The hash over every row of every store.
    pub stores: Hash,
}

/// Lives through a large world.
///
/// # Panics
/// When a machine does what no machine of a working world does.
#[must_use]
pub fn large(seed: u64) -> Large {
    let mut world = World::team(seed, &TEAM);
    world.keep_log = false;
    let sessions: Vec<(usize, IpcId)> =
        (0..TEAM.len() * SESSIONS).map(|one| session(&mut world, one)).collect();
    for number in 0..TEAM.len() {
        for person in TEAM.iter().filter_map(|name| name.split('/').next()) {
            let params = format!(r#"{{"subject":{{"person":"{person}"}},"ask":"open"}}"#);
            // About itself it is refused.
            let _ = world.call(number, "grant.set", &params);
        }
    }
    let mut sends = 0;
    for round in 0..ROUNDS {
        for (one, (number, conn)) in sessions.iter().enumerate() {
            let other = (one + 1 + round * 7) % sessions.len();
            let (person, label) = TEAM[other % TEAM.len()].split_once('/').unwrap_or_default();
            let params = format!(
                r#"{{"key":"{}","to":"{person}/agent-{other}@{label}","parts":[{{"text":"{round} of {one}"}}],"idempotencyKey":"{round}-{one}"}}"#,
                key(one)
            );
            sends += usize::from(world.call_on(*number, *conn, "msg.send", &params).is_ok());
            for node in &mut world.nodes {
                node.lines.clear();
            }
            if one % 10 == 0 {
                // Budgets of the relay and of receivers fill again.
                world.pass(3_000);
            }
        }
    }
    world.pass(120_000);
    let bases = || world.nodes.iter().map(|node| &node.base).chain([&world.relay.base]);
    let stores = bases().fold(Hash([0; 32]), |hash, base| digest(&hash, base));
    let rows = bases().map(|base| base.iter().count()).sum();
    Large { sessions: sessions.len(), sends, rows, effects: world.effects, stores }
}

fn key(one: usize) -> String {
    format!("{one:0>24}")
}

fn session(world: &mut World, one: usize) -> (usize, IpcId) {
    let number = one % TEAM.len();
    let conn = world.connect(number, Tier::Agent);
    let params = format!(r#"{{"key":"{}","name":"agent-{one}","agent":"codex","tier":"push"}}"#, key(one));
    if let Err(error) = world.call_on(number, conn, "session.register", &params) {
        panic!("session {one}: {error:?}");
    }
    (number, conn)
}

fn digest(before: &Hash, base: &MemoryBase) -> Hash {
    let mut bytes = before.0.to_vec();
    for (table, key, value) in base.iter() {
        for part in [table.0.as_bytes(), key, value] {
            bytes.extend(part.len().to_be_bytes());
            bytes.extend(part);
        }
    }
    sha256(&bytes)
}
