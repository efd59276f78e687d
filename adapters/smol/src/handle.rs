//! How an agent's hooks find the session of the server beside them.
//!
//! An agent runs two programs of ours: a server that holds its session, and short hooks that tell it about mail. Both are
//! its children. The server publishes its session in a private file of this user, locked for as long as it lives; a hook
//! takes the one whose server has an ancestor of the hook as its parent. Where the parents of a process cannot be read, it
//! takes the one that runs in the same folder. No file is trusted that its server does not hold.
//!
//! The key in the file is the session's (`messaging/1 §8.2`: a bearer credential of it), of no use without the daemon's
//! socket, and dead with the server.

use crate::home::{Home, Owner, check_directory, private_directory};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Longest file that is read.
const FILE_BYTES: u64 = 16_384;
/// Most ancestors that are followed.
const ANCESTORS: usize = 64;

/// A session and the server that holds it.
#[derive(Clone, Serialize, Deserialize)]
pub struct Handle {
    /// The home of its daemon.
    pub home: PathBuf,
    /// The name it asked for.
    pub name: String,
    /// The kind of agent it registered as.
    pub agent: String,
    /// Its key.
    pub key: String,
    /// The server's process.
    pub pid: u32,
    /// The server's parent: the agent.
    pub parent: u32,
    /// The folder the server runs in.
    pub folder: PathBuf,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("name", &self.name).field("pid", &self.pid).finish_non_exhaustive()
    }
}

/// A published handle; its file goes with it.
#[derive(Debug)]
pub struct Published {
    path: PathBuf,
    _lock: File,
}

impl Drop for Published {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// `$XDG_STATE_HOME/messaging`, else `~/.local/state/messaging`: what clients of this user keep between runs.
#[must_use]
pub fn state_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_STATE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| set("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("messaging"))
}

/// Makes a private folder inside [`state_folder`], and the state folder itself.
///
/// # Errors
/// What the file system says, or that somebody else could write there.
pub fn private_state(name: &str) -> io::Result<PathBuf> {
    let state = state_folder().ok_or_else(|| io::Error::other("there is no state folder"))?;
    if let Some(parent) = state.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let folder = state.join(name);
    for path in [&state, &folder] {
        private_directory(path, 0o700).map_err(io::Error::other)?;
        check_directory(path, Owner::me()).map_err(io::Error::other)?;
    }
    Ok(folder)
}

/// Publishes a handle for as long as the result lives.
///
/// # Errors
/// What the file system says.
pub fn publish(handle: &Handle) -> io::Result<Published> {
    let folder = private_state("agents")?;
    // Locked before it has its name: a hook removes what nobody holds.
    let unnamed = folder.join(format!("{}.new", handle.pid));
    let _ = std::fs::remove_file(&unnamed);
    let mut lock = File::options().write(true).create_new(true).mode(0o600).open(&unnamed)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    lock.write_all(&serde_json::to_vec(handle)?)?;
    let path = folder.join(format!("{}.json", handle.pid));
    std::fs::rename(&unnamed, &path)?;
    Ok(Published { path, _lock: lock })
}

/// The handle of the server that belongs to the calling hook: of `home`, of the session `name` if given, held by a living
/// server of the same agent.
#[must_use]
pub fn find(home: &Home, name: Option<&str>) -> Option<Handle> {
    let folder = state_folder()?.join("agents");
    check_directory(&folder, Owner::me()).ok()?;
    let home = std::path::absolute(home.path()).ok()?;
    let ancestors = ancestors();
    let here = std::env::current_dir().ok();
    let mut found: Vec<Handle> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| read(&entry.ok()?.path()))
        .filter(|handle| handle.home == home && name.is_none_or(|name| handle.name == name))
        .filter(|handle| match &ancestors {
            Some(ancestors) => ancestors.contains(&handle.parent),
            None => Some(&handle.folder) == here.as_ref(),
        })
        .collect();
    // Two servers of one agent for one home: nobody can say which session is meant.
    (found.len() == 1).then(|| found.pop()).flatten()
}

/// A file's handle, when its server still holds it. One that nobody holds is removed.
fn read(path: &Path) -> Option<Handle> {
    if path.extension().is_none_or(|extension| extension != "json") {
        return None;
    }
    let file = File::open(path).ok()?;
    if !file.metadata().ok().is_some_and(|meta| meta.is_file() && meta.len() <= FILE_BYTES) {
        return None;
    }
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        let _ = std::fs::remove_file(path);
        return None;
    }
    serde_json::from_reader(file).ok()
}

/// The pids above this process, nearest first; nothing where the system does not show them.
fn ancestors() -> Option<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    let mut pid = u32::try_from(rustix::process::getppid()?.as_raw_pid()).ok()?;
    while pid > 1 && found.len() < ANCESTORS && found.insert(pid) {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may hold anything, so fields are counted from its closing bracket: state, then parent.
        pid = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
    }
    // A hook or server whose agent is the first process of a container.
    found.insert(pid);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parents_of_this_process_are_known() {
        if Path::new("/proc/self/stat").exists() {
            let parent = u32::try_from(rustix::process::getppid().unwrap().as_raw_pid()).unwrap();
            assert!(ancestors().unwrap().contains(&parent));
        }
    }

    #[test]
    fn a_key_is_not_printed() {
        let handle = Handle {
            home: PathBuf::new(),
            name: "mcp".into(),
            agent: "mcp".into(),
            key: "secret-key".into(),
            pid: 1,
            parent: 1,
            folder: PathBuf::new(),
        };
        assert!(!format!("{handle:?}").contains("secret-key"));
    }
}
