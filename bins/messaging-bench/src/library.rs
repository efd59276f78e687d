//! What redb's own choices cost: a commit of 64 envelopes, and opening the file again after `kill -9`.

use crate::{Fault, quantile_ms};
use redb::{Builder, Database, TableDefinition};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");
const COMMITS: u64 = 200;
const ROWS: u64 = 64;
/// Rows of one commit while filling.
const FILL_ROWS: u64 = 4_096;

/// How commits are made.
#[derive(Clone, Copy)]
enum How {
    OnePhase,
    TwoPhase,
    QuickRepair,
}

/// A file of `mib` MiB, then each choice on a copy of it.
pub(crate) fn run(folder: &Path, bytes: usize, mib: usize) -> Result<Vec<Value>, Fault> {
    let folder = tempfile::tempdir_in(folder)?;
    let (full, used, killed) =
        (folder.path().join("full"), folder.path().join("used"), folder.path().join("killed"));
    let value = vec![7; bytes];
    let mut next = 0;
    let database = Database::create(&full)?;
    while std::fs::metadata(&full)?.len() < (mib as u64) << 20 {
        commit(&database, How::OnePhase, &mut next, FILL_ROWS, &value)?;
    }
    drop(database);
    let mut lines = Vec::new();
    let choices = [
        (16, How::OnePhase),
        (16, How::TwoPhase),
        (16, How::QuickRepair),
        (1, How::OnePhase),
        (256, How::OnePhase),
    ];
    for (cache_mib, how) in choices {
        std::fs::copy(&full, &used)?;
        let open = |path: &Path| Builder::new().set_cache_size(cache_mib << 20).create(path);
        let database = open(&used)?;
        let (mut at, mut times) = (next, Vec::new());
        for _ in 0..COMMITS {
            let begun = Instant::now();
            commit(&database, how, &mut at, ROWS, &value)?;
            times.push(u64::try_from(begun.elapsed().as_micros())?);
        }
        times.sort_unstable();
        // What a killed process leaves: the kernel has every page that was written, and nobody closed the file.
        std::fs::copy(&used, &killed)?;
        drop(database);
        let begun = Instant::now();
        let database = open(&killed)?;
        let reopen = begun.elapsed().as_secs_f64() * 1000.0;
        drop(database);
        let name = match how {
            How::OnePhase => "one-phase",
            How::TwoPhase => "two-phase",
            How::QuickRepair => "quick repair",
        };
        lines.push(json!({
            "how": name,
            "cache_mib": cache_mib,
            "commit_p50_ms": quantile_ms(&times, 0.5),
            "commit_p99_ms": quantile_ms(&times, 0.99),
            "reopen_ms": reopen,
        }));
    }
    Ok(lines)
}

fn commit(database: &Database, how: How, next: &mut u64, rows: u64, value: &[u8]) -> Result<(), Fault> {
    let mut transaction = database.begin_write()?;
    match how {
        How::OnePhase => {}
        How::TwoPhase => transaction.set_two_phase_commit(true),
        How::QuickRepair => transaction.set_quick_repair(true),
    }
    let mut table = transaction.open_table(TABLE)?;
    for _ in 0..rows {
        table.insert(*next, value)?;
        *next += 1;
    }
    drop(table);
    Ok(transaction.commit()?)
}
