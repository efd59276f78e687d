//! What the disk and redb take for one commit of one envelope's size: the yardstick for the ack of a lone sender.

use crate::{Fault, quantile_ms};
use redb::{Database, TableDefinition};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");
const COMMITS: u64 = 400;

pub(crate) fn run(folder: &Path, bytes: usize) -> Result<Value, Fault> {
    let folder = tempfile::tempdir_in(folder)?;
    let database = Database::create(folder.path().join("commit.db"))?;
    let value = vec![7; bytes];
    let mut times = Vec::new();
    for index in 0..COMMITS {
        let start = Instant::now();
        let transaction = database.begin_write()?;
        transaction.open_table(TABLE)?.insert(index, value.as_slice())?;
        transaction.commit()?;
        times.push(u64::try_from(start.elapsed().as_micros())?);
    }
    times.sort_unstable();
    Ok(json!({ "commit_p50_ms": quantile_ms(&times, 0.5), "commit_p99_ms": quantile_ms(&times, 0.99) }))
}
