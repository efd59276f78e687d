//! The copy of the home in `run/snapshot` (`messaging/1 §8.2`, "Backups"), made and deleted by a thread of its own, in
//! the order the machine says.

use crate::driver::{Events, Health};
use crate::files;
use crate::home::{Home, private_directory};
use crate::log::Log;
use crate::store::Schema;
use messaging_machines::daemon::config::CONFIG_BYTES;
use messaging_machines::daemon::io::{CopiedFile, Event, SaveId};
use messaging_proto::time::Wall;
use ring::digest::{Context, SHA256};
use serde_json::json;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

enum Job {
    Make { copy: SaveId, at: Wall, epoch: u64 },
    Drop,
}

/// Where copies are asked for.
#[derive(Clone)]
pub(super) struct Snapshots {
    jobs: async_channel::Sender<Job>,
    /// Counts the machines: a copy for one that is gone is given up.
    epoch: Arc<AtomicU64>,
}

impl Snapshots {
    /// Queues a copy. It is reported with [`Event::Snapshot`].
    pub(super) fn make(&self, copy: SaveId, at: Wall) {
        // Closed only when the daemon ends.
        let _ = self.jobs.try_send(Job::Make { copy, at, epoch: self.epoch.load(Ordering::Relaxed) });
    }

    /// Queues the end of the copy that is there.
    pub(super) fn let_go(&self) {
        let _ = self.jobs.try_send(Job::Drop);
    }

    /// Gives up the copy under way: the store must be closed, or the daemon ends.
    pub(super) fn cancel(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }
}

/// The thread.
pub(super) struct Copier {
    snapshots: Snapshots,
    thread: std::thread::JoinHandle<()>,
}

impl Copier {
    pub(super) fn spawn(
        home: &Home,
        health: &Arc<Health>,
        events: Events<Event>,
        log: &Log,
    ) -> io::Result<Self> {
        let (jobs, queue) = async_channel::unbounded();
        let snapshots = Snapshots { jobs, epoch: Arc::new(AtomicU64::new(0)) };
        let (home, health, log, epochs) =
            (home.clone(), Arc::clone(health), log.clone(), Arc::clone(&snapshots.epoch));
        let thread = std::thread::Builder::new().name("snapshot".to_owned()).spawn(move || {
            let folder = home.run().join("snapshot");
            while let Ok(job) = queue.recv_blocking() {
                let result = match job {
                    Job::Drop => remove(&folder),
                    Job::Make { copy, at, epoch } => {
                        let go_on = || epochs.load(Ordering::Relaxed) == epoch;
                        let made = make(&home, &folder, &health, at, &go_on);
                        let (files, result) = match made {
                            Ok(files) => (Some(files), Ok(())),
                            Err(error) => (None, Err(error)),
                        };
                        let text = folder.to_string_lossy().into_owned();
                        events.send_blocking(Event::Snapshot { copy, folder: text, files });
                        result
                    }
                };
                if let Err(error) = result {
                    log.error("snapshot.failed", &[("error", error.to_string().into())]);
                }
            }
        })?;
        Ok(Self { snapshots, thread })
    }

    pub(super) fn snapshots(&self) -> Snapshots {
        self.snapshots.clone()
    }

    /// Does what is queued and ends; a copy under way is given up.
    pub(super) fn finish(self) {
        self.snapshots.cancel();
        self.snapshots.jobs.close();
        // A thread that panicked has ended the process.
        let _ = self.thread.join();
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Makes the copy. No private key is in it: those are in files that are not copied.
fn make(
    home: &Home,
    folder: &Path,
    health: &Health,
    at: Wall,
    go_on: &dyn Fn() -> bool,
) -> io::Result<Vec<CopiedFile>> {
    remove(folder)?;
    private_directory(folder, 0o700).map_err(|error| io::Error::other(error.to_string()))?;
    let store = health.handle().ok_or_else(|| io::Error::other("the store is closed"))?;
    let db = folder.join("messaging.db");
    store.copy_to(&db, go_on).map_err(|fault| io::Error::other(fault.0))?;
    // Whoever opens the store again needs every handle gone.
    drop(store);
    let mut copied = vec![described(&db, "messaging.db")?];
    if let Some(config) = files::read_private(&home.path().join("config.json"), CONFIG_BYTES)? {
        let path = folder.join("config.json");
        files::write_private(&path, &config)?;
        copied.push(described(&path, "config.json")?);
    }
    let list: Vec<_> = copied
        .iter()
        .map(|file| json!({"name": file.name, "bytes": file.bytes, "sha256": file.sha256}))
        .collect();
    let manifest = json!({"storeSchema": Schema::CURRENT.schema, "at": at.0, "files": list});
    files::write_private(&folder.join("manifest.json"), format!("{manifest}\n").as_bytes())?;
    Ok(copied)
}

fn described(path: &Path, name: &str) -> io::Result<CopiedFile> {
    let mut file = File::open(path)?;
    let (mut context, mut bytes) = (Context::new(&SHA256), 0);
    let mut piece = vec![0; 65_536];
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            break;
        }
        context.update(&piece[..count]);
        bytes += count as u64;
    }
    let sha256 = context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(CopiedFile { name: name.to_owned(), bytes, sha256 })
}
