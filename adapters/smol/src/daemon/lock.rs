//! One daemon for a home (`messaging/1 §8.1`): an advisory lock held for life, and a file that says who holds it.
//!
//! The kernel releases the lock when its process ends, however it ends; a pid proves nothing, so no decision
//! depends on it.

use crate::files::write_private;
use crate::home::Home;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The lock, while this lives.
#[derive(Debug)]
pub(super) struct Lock {
    home: Home,
    _file: File,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum LockError {
    /// Another daemon owns the home.
    #[error("another messagingd runs in this home{}", .0.map_or_else(String::new, |pid| format!(" (pid {pid})")))]
    Held(Option<u32>),
    /// The file system refused.
    #[error("the lock: {0}")]
    Io(#[from] io::Error),
}

impl Lock {
    /// Takes the lock and writes the pid.
    pub(super) fn take(home: &Home) -> Result<Self, LockError> {
        let path = home.lock_file();
        let file = loop {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let file =
                File::from(rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(io::Error::from)?);
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(LockError::Held(home.locked_by())),
                Err(error) => return Err(io::Error::from(error).into()),
            }
            // Somebody may have replaced the file between opening and locking: the lock must be on what is there.
            if same_file(&file, &path) {
                break file;
            }
        };
        write_private(&home.pid_file(), format!("{}\n", std::process::id()).as_bytes())?;
        Ok(Self { home: home.clone(), _file: file })
    }
}

fn same_file(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(ours), Ok(there)) => ours.dev() == there.dev() && ours.ino() == there.ino(),
        _ => false,
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Only the owner writes it, and only while it is the owner.
        if self.home.locked_by() == Some(std::process::id()) {
            let _ = std::fs::remove_file(self.home.pid_file());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::private_directory;

    #[test]
    fn one_owner_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(&dir.path().join("home"));
        private_directory(&home.run(), 0o700).unwrap();
        // What a crash left, naming a process that is somebody else's by now.
        std::fs::write(home.lock_file(), "").unwrap();
        std::fs::write(home.pid_file(), "1\n").unwrap();
        let lock = Lock::take(&home).unwrap();
        assert_eq!(home.locked_by(), Some(std::process::id()));
        assert!(matches!(Lock::take(&home), Err(LockError::Held(Some(_)))));
        drop(lock);
        assert_eq!(home.locked_by(), None);
        std::fs::remove_file(home.lock_file()).unwrap();
        Lock::take(&home).unwrap();
    }
}
