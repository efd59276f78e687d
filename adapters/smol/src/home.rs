//! The daemon's home: who may own it, and how private it must be (`messaging/1 §8.1`).
//!
//! A home is a real directory of the user that nobody else can write. The daemon makes one 0700 whatever the
//! umask; a directory that somebody left open is refused with the command that closes it, never repaired.

use messaging_proto::Code;
use std::ffi::OsString;
use std::fs::{DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// Bits that let a group or anyone else write.
const FOREIGN_WRITE: u32 = 0o022;

/// Why a home cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// There is no such directory or socket.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    /// A symbolic link where a directory must be.
    #[error("{} is a symbolic link; name the directory it points to", .0.display())]
    Symlink(PathBuf),
    /// Not a directory.
    #[error("{} is not a directory", .0.display())]
    NotDirectory(PathBuf),
    /// Not a socket.
    #[error("{} is not a socket", .0.display())]
    NotSocket(PathBuf),
    /// Another user's.
    #[error("{} belongs to user {owner}, not to user {me}; use a directory of your own", .path.display())]
    ForeignOwner {
        /// What.
        path: PathBuf,
        /// Its owner's uid.
        owner: u32,
        /// The uid that was expected.
        me: u32,
    },
    /// Others can write it.
    #[error("others can write {} (mode {mode:04o}); run: chmod go-w '{}'", .path.display(), .path.display())]
    Writable {
        /// What.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// This process is not in the group of the agent socket.
    #[error("ipc.agentGroup is {0}, and this user is not in that group")]
    NotInGroup(u32),
    /// The file system refused.
    #[error("{}: {error}", .path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl HomeError {
    /// The code of a refusal.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Missing(_) => Code::DaemonUnavailable,
            Self::Io { .. } => Code::Internal,
            _ => Code::Forbidden,
        }
    }
}

/// The paths inside a home.
#[derive(Clone, Debug)]
pub struct Home(PathBuf);

impl Home {
    /// The home at `path`, without trailing slashes or dots (they would follow a symbolic link).
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self(path.components().filter(|part| *part != Component::CurDir).collect())
    }

    /// `$MESSAGING_HOME`, else `~/.messaging`; nothing when neither is known.
    #[must_use]
    pub fn from_env() -> Option<Self> {
        let set = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
        set("MESSAGING_HOME")
            .map(PathBuf::from)
            .or_else(|| set("HOME").map(|home| Path::new(&home).join(".messaging")))
            .map(|path| Self::new(&path))
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// `run/`: sockets and lock.
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.0.join("run")
    }

    /// `run/agent.sock`.
    #[must_use]
    pub fn agent_socket(&self) -> PathBuf {
        self.run().join("agent.sock")
    }

    /// `run/admin.sock`.
    #[must_use]
    pub fn admin_socket(&self) -> PathBuf {
        self.run().join("admin.sock")
    }

    /// `run/messagingd.lock`: the owner's pid, for people and the CLI.
    #[must_use]
    pub fn pid_file(&self) -> PathBuf {
        self.run().join("messagingd.lock")
    }

    /// `run/messagingd.lock.db`: locked while a daemon lives.
    #[must_use]
    pub fn lock_file(&self) -> PathBuf {
        self.run().join("messagingd.lock.db")
    }

    /// `messaging.db`: the store.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.0.join("messaging.db")
    }

    /// `logs/`.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    /// `logs/messagingd.log`.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.logs().join("messagingd.log")
    }

    /// The pid in [`Home::pid_file`], when it holds one.
    #[must_use]
    pub fn locked_by(&self) -> Option<u32> {
        std::fs::read_to_string(self.pid_file()).ok()?.strip_suffix('\n')?.parse().ok()
    }
}

/// Whose files are trusted.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// This process's user.
    pub me: u32,
    /// The daemon's user, when it runs as its own (`MESSAGING_DAEMON_UID`).
    pub daemon: Option<u32>,
}

impl Owner {
    /// This process's user alone.
    #[must_use]
    pub fn me() -> Self {
        Self { me: rustix::process::geteuid().as_raw(), daemon: None }
    }

    /// This process's user, and the uid in `MESSAGING_DAEMON_UID`: for clients.
    #[must_use]
    pub fn from_env() -> Self {
        let daemon = std::env::var("MESSAGING_DAEMON_UID").ok().and_then(|uid| uid.parse().ok());
        Self { daemon, ..Self::me() }
    }

    fn check(self, path: &Path, meta: &Metadata) -> Result<(), HomeError> {
        if meta.uid() == self.me || Some(meta.uid()) == self.daemon {
            return Ok(());
        }
        Err(HomeError::ForeignOwner { path: path.to_owned(), owner: meta.uid(), me: self.me })
    }
}

fn lstat(path: &Path) -> Result<Metadata, HomeError> {
    path.symlink_metadata().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => HomeError::Missing(path.to_owned()),
        _ => HomeError::Io { path: path.to_owned(), error },
    })
}

/// Checks that `path` is a real directory of `owner` that nobody else can write (`§8.1`).
///
/// # Errors
/// Why it is not; [`Code::DaemonUnavailable`] when it is not there.
pub fn check_directory(path: &Path, owner: Owner) -> Result<(), HomeError> {
    let meta = lstat(path)?;
    if meta.is_symlink() {
        return Err(HomeError::Symlink(path.to_owned()));
    }
    if !meta.is_dir() {
        return Err(HomeError::NotDirectory(path.to_owned()));
    }
    owner.check(path, &meta)?;
    if meta.mode() & FOREIGN_WRITE != 0 {
        return Err(HomeError::Writable { path: path.to_owned(), mode: meta.mode() & 0o7777 });
    }
    Ok(())
}

/// Checks that `path` is a socket of `owner` (`§8.2`, "Two sockets").
///
/// # Errors
/// Why it is not; [`Code::DaemonUnavailable`] when it is not there.
pub fn check_socket(path: &Path, owner: Owner) -> Result<(), HomeError> {
    let meta = lstat(path)?;
    if meta.is_symlink() || !meta.file_type().is_socket() {
        return Err(HomeError::NotSocket(path.to_owned()));
    }
    owner.check(path, &meta)
}

/// Makes `path` a private directory: creates it when it is missing, else checks it, then sets `mode`.
///
/// A new directory gets its mode whatever the umask. An existing one that others can write is refused: what lies
/// in it may not be ours.
///
/// # Errors
/// [`HomeError`] when it is not private or cannot be made.
pub fn private_directory(path: &Path, mode: u32) -> Result<(), HomeError> {
    let io = |error| HomeError::Io { path: path.to_owned(), error };
    match check_directory(path, Owner::me()) {
        Ok(()) => {}
        Err(HomeError::Missing(_)) => {
            // The mode of every new parent too; the umask can only take bits away.
            DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
            std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(io)?;
            check_directory(path, Owner::me())?;
        }
        Err(error) => return Err(error),
    }
    let now = lstat(path)?.mode() & 0o7777;
    if now != mode {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(io)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().mode() & 0o7777
    }

    #[test]
    fn a_new_directory_is_private_and_a_lax_one_is_refused_with_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("a/b");
        private_directory(&home, 0o700).unwrap();
        assert_eq!(mode(&home), 0o700);

        std::fs::set_permissions(&home, Permissions::from_mode(0o755)).unwrap();
        private_directory(&home, 0o700).unwrap();
        assert_eq!(mode(&home), 0o700, "readable by others is tightened");

        std::fs::set_permissions(&home, Permissions::from_mode(0o770)).unwrap();
        let error = private_directory(&home, 0o700).unwrap_err();
        assert_eq!(error.code(), Code::Forbidden);
        assert!(error.to_string().contains("chmod go-w"), "{error}");
        assert_eq!(mode(&home), 0o770, "left as it was found");
    }

    #[test]
    fn a_link_is_refused_however_it_is_spelled() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        private_directory(&real, 0o700).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        for spelled in ["link", "link/", "link/."] {
            let home = Home::new(&dir.path().join(spelled));
            assert!(matches!(private_directory(home.path(), 0o700), Err(HomeError::Symlink(_))), "{spelled}");
        }
    }

    #[test]
    fn another_users_directory_is_refused_unless_it_is_the_daemons() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        private_directory(&real, 0o700).unwrap();
        let me = Owner::me().me;
        let other = Owner { me: me + 1, daemon: None };
        assert!(matches!(check_directory(&real, other), Err(HomeError::ForeignOwner { .. })));
        check_directory(&real, Owner { me: me + 1, daemon: Some(me) }).unwrap();
    }
}
