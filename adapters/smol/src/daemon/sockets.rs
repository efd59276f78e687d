//! The two Unix sockets: made private before anybody can see them, removed when the daemon stops
//! (`messaging/1 §8.2`, "Two sockets").

use crate::home::{Home, HomeError, private_directory};
use rustix::fs::{Gid, chown};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

/// The listening sockets.
#[derive(Debug)]
pub(super) struct Sockets {
    pub(super) agent: UnixListener,
    pub(super) admin: UnixListener,
    pub(super) files: SocketFiles,
}

/// The names of the sockets in the home.
#[derive(Clone, Debug)]
pub(super) struct SocketFiles([PathBuf; 2]);

impl SocketFiles {
    /// Removes them: clients see at once that no daemon is there.
    pub(super) fn remove(&self) {
        for path in &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Opens home and `run/` to the agent group, when there is one, and nothing else.
pub(super) fn share(home: &Home, group: Option<u32>) -> Result<(), HomeError> {
    let mode = if group.is_some() { 0o710 } else { 0o700 };
    for path in [home.path().to_owned(), home.run()] {
        if let Some(group) = group {
            give(&path, group)?;
        }
        private_directory(&path, mode)?;
    }
    Ok(())
}

fn give(path: &Path, group: u32) -> Result<(), HomeError> {
    chown(path, None, Some(Gid::from_raw(group))).map_err(|error| match error {
        rustix::io::Errno::PERM => HomeError::NotInGroup(group),
        error => HomeError::Io { path: path.to_owned(), error: error.into() },
    })
}

/// Listens on both sockets. The caller holds the home's lock, so a socket that is there is a dead daemon's.
pub(super) fn listen(home: &Home, group: Option<u32>) -> Result<Sockets, HomeError> {
    // Made in a folder that nobody else can search, and moved when their modes are right.
    let nursery = home.run().join(".new");
    let at = |error| HomeError::Io { path: nursery.clone(), error };
    match std::fs::remove_dir_all(&nursery) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(error)),
        _ => private_directory(&nursery, 0o700)?,
    }
    let agent = bind(&nursery.join("a"), &home.agent_socket(), group);
    let admin = bind(&nursery.join("a"), &home.admin_socket(), None);
    let _ = std::fs::remove_dir_all(&nursery);
    let files = SocketFiles([home.agent_socket(), home.admin_socket()]);
    Ok(Sockets { agent: agent?, admin: admin?, files })
}

fn bind(nursery: &Path, path: &Path, group: Option<u32>) -> Result<UnixListener, HomeError> {
    let at = |error| HomeError::Io { path: path.to_owned(), error };
    match path.symlink_metadata() {
        Ok(meta) if !meta.file_type().is_socket() => return Err(HomeError::NotSocket(path.to_owned())),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(error)),
        // What is there is replaced by the rename.
        _ => {}
    }
    // The place it is made in has a shorter name: nobody could connect to one that is too long where it ends up.
    SocketAddr::from_pathname(path).map_err(at)?;
    let listener = UnixListener::bind(nursery).map_err(at)?;
    let mode = match group {
        Some(group) => {
            give(nursery, group)?;
            0o660
        }
        None => 0o600,
    };
    std::fs::set_permissions(nursery, Permissions::from_mode(mode)).map_err(at)?;
    std::fs::rename(nursery, path).map_err(at)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixStream;

    fn home(dir: &Path) -> Home {
        let home = Home::new(&dir.join("home"));
        private_directory(&home.run(), 0o700).unwrap();
        home
    }

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().mode() & 0o7777
    }

    #[test]
    fn sockets_are_private_and_replace_a_dead_daemons() {
        let dir = tempfile::tempdir().unwrap();
        let home = home(dir.path());
        share(&home, None).unwrap();
        drop(listen(&home, None).unwrap());
        assert!(UnixStream::connect(home.admin_socket()).is_err(), "nobody listens behind what is left");
        let sockets = listen(&home, None).unwrap();
        assert_eq!((mode(&home.agent_socket()), mode(&home.admin_socket())), (0o600, 0o600));
        UnixStream::connect(home.agent_socket()).unwrap();
        UnixStream::connect(home.admin_socket()).unwrap();
        assert_eq!(std::fs::read_dir(home.run()).unwrap().count(), 2, "nothing else is left");
        sockets.files.remove();
        assert!(!home.admin_socket().exists() && !home.agent_socket().exists());
    }

    /// Each length a path may have, and the first it may not: whoever serves there can be connected to.
    #[test]
    fn a_home_whose_sockets_nobody_could_name_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (mut served, mut refused) = (0, 0);
        for length in 80..110_usize {
            let Some(rest) = length.checked_sub(dir.path().as_os_str().len() + 1).filter(|rest| *rest > 0)
            else {
                continue;
            };
            let home = Home::new(&dir.path().join("h".repeat(rest)));
            private_directory(&home.run(), 0o700).unwrap();
            match listen(&home, None) {
                Ok(_sockets) => {
                    UnixStream::connect(home.agent_socket()).unwrap();
                    UnixStream::connect(home.admin_socket()).unwrap();
                    served += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains("SUN_LEN"), "{length}: {error}");
                    assert!(!home.agent_socket().exists(), "{length}: nothing is left that looks like one");
                    refused += 1;
                }
            }
        }
        // A temporary folder with a long name of its own leaves only refusals.
        assert!(refused > 0 && (served > 0 || dir.path().as_os_str().len() > 80), "{served} {refused}");
    }

    #[test]
    fn what_is_no_socket_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let home = home(dir.path());
        std::fs::write(home.admin_socket(), "mine").unwrap();
        assert!(matches!(listen(&home, None), Err(HomeError::NotSocket(_))));
        assert_eq!(std::fs::read(home.admin_socket()).unwrap(), b"mine");
    }

    #[test]
    fn an_agent_group_reaches_the_agent_socket_alone() {
        let dir = tempfile::tempdir().unwrap();
        let home = home(dir.path());
        // Root may give to any group; anybody to their own.
        let group = rustix::process::getegid().as_raw();
        share(&home, Some(group)).unwrap();
        let _sockets = listen(&home, Some(group)).unwrap();
        assert_eq!((mode(home.path()), mode(&home.run())), (0o710, 0o710));
        assert_eq!((mode(&home.agent_socket()), mode(&home.admin_socket())), (0o660, 0o600));
        assert_eq!(home.agent_socket().metadata().unwrap().gid(), group);
    }
}
