//! Small private files, replaced as a whole.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Replaces the file at `path` by `content`, 0600, durable when this returns: the content is synced before its name
/// is, so a crash leaves the old file or the new one.
///
/// # Errors
/// When it could not be written; the old file is then still there.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = temporary(path);
    let result = write_new(&temporary, content).and_then(|()| std::fs::rename(&temporary, path));
    if result.is_err() {
        // What is left of it may hold keys.
        let _ = std::fs::remove_file(&temporary);
    }
    result.and_then(|()| sync_folder(path))
}

/// Deletes the file at `path`, durably. One that is not there is fine.
///
/// # Errors
/// When it is still there.
pub fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => sync_folder(path),
    }
}

/// Reads a private file of at most `max` bytes; nothing when there is none. Its mode is tightened to 0600; one that
/// others can write, or that is no plain file of this user, is refused.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] for a file that is not private, and whatever the system says.
pub fn read_private(path: &Path, max: usize) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let Some(file) = open_trusted(path)? else { return Ok(None) };
    if file.metadata()?.mode() & 0o077 != 0 {
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    read_whole(file, max).map(Some)
}

/// Reads a file that another program of this user wrote, of at most `max` bytes; nothing when there is none. It is
/// left as it is; one that others can write, or that is no plain file of this user, is refused.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] for a file that is not to be trusted, and whatever the system says.
pub fn read_trusted(path: &Path, max: usize) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    open_trusted(path)?.map(|file| read_whole(file, max)).transpose()
}

fn open_trusted(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let meta = file.metadata()?;
    let ours = meta.is_file() && meta.uid() == rustix::process::geteuid().as_raw();
    if !ours || meta.mode() & 0o022 != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(Some(file))
}

fn read_whole(file: File, max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    // Grown in one piece, so that no copy of a key is left behind.
    let mut content = Zeroizing::new(Vec::with_capacity(max + 1));
    file.take(max as u64 + 1).read_to_end(&mut content)?;
    if content.len() > max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(content)
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let private = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = match rustix::fs::open(path, flags, private) {
        // An earlier process of this pid crashed over it.
        Err(rustix::io::Errno::EXIST) => {
            std::fs::remove_file(path)?;
            rustix::fs::open(path, flags, private)?
        }
        file => file?,
    };
    rustix::fs::fchmod(&file, private)?;
    let mut file = File::from(file);
    file.write_all(content)?;
    file.sync_all()
}

/// Makes the name of `path` durable.
///
/// # Errors
/// When the folder cannot be synced.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn replaced_as_a_whole_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        assert!(read_private(&path, 10).unwrap().is_none());
        write_private(&path, b"one").unwrap();
        write_private(&path, b"three").unwrap();
        assert_eq!(
            (read_private(&path, 5).unwrap().unwrap().as_slice(), mode(&path)),
            (b"three".as_slice(), 0o600)
        );
        assert_eq!(read_private(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_crashed_attempt_is_in_nobodys_way() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        std::fs::write(temporary(&path), "half").unwrap();
        write_private(&path, b"whole").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn only_private_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        std::fs::write(&path, "x").unwrap();
        let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o644);
        assert!(read_private(&path, 5).unwrap().is_some());
        assert_eq!(mode(&path), 0o600, "readable by others is tightened");
        set(0o620);
        assert_eq!(read_private(&path, 5).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        set(0o600);
        assert!(read_private(&link, 5).is_err());
        assert_eq!(read_private(dir.path(), 5).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
