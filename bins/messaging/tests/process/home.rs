//! Homes of every privacy (user report 51).

use crate::daemon::{cli_error, refused, start, start_with_umask};
use messaging_smol::client::{Client, Options};
use messaging_smol::home::Home;
use serde_json::json;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

fn set(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// The daemon does not start there and no client goes there, with `forbidden` and a hint of what to do.
fn both_refuse(home: &Path, hint: &str) {
    let (status, text) = refused(home);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.starts_with("messagingd: forbidden: ") && text.contains(hint), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    let error = cli_error(home, &["status"]);
    assert_eq!(error["code"], "forbidden", "{error}");
    assert!(error["message"].as_str().unwrap().contains(hint), "{error}");
}

#[test]
fn report_51_a_home_is_private_under_every_umask() {
    for umask in ["000", "002", "022", "077"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/home");
        let home = Home::new(&path);
        for _ in 0..2 {
            let mut daemon = start_with_umask(umask, &path);
            let client = Client::connect(&Options::admin(home.clone())).unwrap();
            // Writes pairing.json.
            client.call("team.prepare", json!({})).unwrap();
            for directory in [home.path().to_owned(), home.run(), home.logs()] {
                assert_eq!(mode(&directory), 0o700, "umask {umask}: {}", directory.display());
            }
            let mut files = 0;
            for folder in [home.path().to_owned(), home.run(), home.logs()] {
                for entry in std::fs::read_dir(folder).unwrap() {
                    let path = entry.unwrap().path();
                    if !path.is_dir() {
                        assert_eq!(mode(&path), 0o600, "umask {umask}: {}", path.display());
                        files += 1;
                    }
                }
            }
            assert!(files >= 7, "store, keys, log, sockets, lock and its file: {files}");
            assert_eq!(daemon.terminate(), Some(0));
        }
    }
}

#[test]
fn report_51_only_what_somebody_else_left_open_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("home");
    let home = Home::new(&path);
    assert_eq!(start(&path).terminate(), Some(0));

    for lax in [0o770, 0o707, 0o777, 0o1777] {
        set(&path, lax);
        both_refuse(&path, "chmod go-w");
        assert_eq!(mode(&path), lax, "never repaired: what lies in it may not be ours");
    }
    set(&path, 0o700);
    set(&home.run(), 0o720);
    both_refuse(&path, "chmod go-w");
    set(&home.run(), 0o700);

    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    both_refuse(&link, "symbolic link");
    both_refuse(&dir.path().join("link/"), "symbolic link");
    // A link above the home is not the home.
    let above = dir.path().join("above");
    std::os::unix::fs::symlink(dir.path(), &above).unwrap();
    assert_eq!(start(&above.join("home")).terminate(), Some(0));

    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    both_refuse(&file, "not a directory");

    // What others may only read is tightened, and a parent that others can write is the parent's affair.
    set(&path, 0o755);
    set(dir.path(), 0o770);
    assert_eq!(start(&path).terminate(), Some(0));
    assert_eq!(mode(&path), 0o700);
}

#[test]
fn report_51_another_users_home_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("home");
    std::fs::create_dir(&path).unwrap();
    set(&path, 0o700);
    // Root can make one for somebody else; anybody else finds one of root's.
    let foreign = if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(64_001), None).unwrap();
        path.as_path()
    } else {
        Path::new("/usr")
    };
    both_refuse(foreign, "belongs to user");
    if rustix::process::geteuid().is_root() {
        assert_eq!(path.metadata().unwrap().uid(), 64_001);
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0, "nothing was made in it");
    }
}
