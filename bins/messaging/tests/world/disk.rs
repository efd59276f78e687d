//! A filesystem that is full before long.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small filesystem, unmounted at the end. Mounting needs root, or a user namespace: a machine that has neither cannot
/// run such a test, and it says so instead of passing.
pub(crate) struct SmallDisk {
    at: tempfile::TempDir,
}

impl SmallDisk {
    pub(crate) fn mount(mebibytes: u32) -> Self {
        let at = tempfile::tempdir().unwrap();
        let options = format!("size={mebibytes}m,mode=700");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "messaging-test"])
            .arg(at.path())
            .output()
            .unwrap();
        assert!(
            mounted.status.success(),
            "this test mounts a tmpfs and has to run as root, or inside `unshare --map-root-user --mount`: {}",
            String::from_utf8_lossy(&mounted.stderr)
        );
        Self { at }
    }

    /// The disk gets larger: 32 MiB.
    pub(crate) fn grow(&self) {
        let at = self.at.path();
        let grown = Command::new("mount").args(["-o", "remount,size=32m"]).arg(at).status().unwrap();
        assert!(grown.success(), "the tmpfs could not be enlarged");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.at.path().join(name)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.at.path()).status();
    }
}

/// Leaves no room on the disk.
pub(crate) fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    for size in [65_536, 4_096, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
}
