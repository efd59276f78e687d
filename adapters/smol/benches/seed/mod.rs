//! A simulated machine's store in a real file, and its daemon over it.

use messaging_machines::daemon::config::Settings;
use messaging_machines::daemon::{Config, Daemon};
use messaging_machines::store::{Txn, Writes};
use messaging_proto::identity::Identity;
use messaging_sim::Node;
use messaging_smol::store::{Location, Options, RedbStore, Schema};
use std::path::Path;
use std::sync::Arc;

/// Page cache in bytes: as the daemon's own.
const CACHE: usize = 32 << 20;

/// A store at `path` with the rows of `node`.
pub(crate) fn store(node: &Node, path: &Path) -> Arc<RedbStore> {
    let options = Options { cache_bytes: CACHE, quick_repair: false, journal: None };
    let store = Arc::new(RedbStore::open(&Location::new(path), Schema::CURRENT, options).unwrap());
    let mut writes = Writes::new();
    let reader = store.reader();
    let mut txn = Txn::new(&reader, None, &mut writes);
    for (table, key, value) in node.base.iter() {
        txn.put(table, key, value);
    }
    store.commit(&writes).unwrap();
    store
}

/// A daemon with these keys and the text of this `config.json`.
pub(crate) fn daemon(identity: Identity, config: &str) -> Daemon {
    let settings = Settings::parse(config.as_bytes()).unwrap().settings;
    Daemon::new(Config { settings, version: "1.0.0".to_owned(), pid: 7 }, Some(identity), None)
}
