//! A daemon started every way a shell can start one.

use crate::world::{Process, program, wait};
use messaging_smol::home::Home;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) const READY: &str = "messagingd: ready ";

/// Starts `daemon run` in `home` under a umask, such as `002`, and waits until it serves.
pub(crate) fn start_with_umask(umask: &str, home: &Path) -> Process {
    Process::start_command(&mut shell(umask, home), READY, &log(home))
}

pub(crate) fn start(home: &Path) -> Process {
    start_with_umask("077", home)
}

/// Runs `daemon run` where it does not start. What it wrote, and its exit status.
pub(crate) fn refused(home: &Path) -> (Option<i32>, String) {
    let output = shell("022", home).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "it never was ready");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn shell(umask: &str, home: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "umask $0; exec \"$@\"", umask]).arg(program()).arg("--home").arg(home);
    command.args(["daemon", "run"]).stdin(Stdio::null());
    command
}

/// Where the daemon of `home` writes its stderr in these tests: in the nearest folder around it that is there.
fn log(home: &Path) -> PathBuf {
    let folder = home.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap();
    folder.join(home.with_extension("log").file_name().unwrap())
}

/// Runs the command line on `home`.
pub(crate) fn cli(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.arg("--home").arg(home).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// The code of a command that fails with `--json`.
pub(crate) fn cli_error(home: &Path, arguments: &[&str]) -> Value {
    let mut all = vec!["--json"];
    all.extend(arguments);
    let output = cli(home, &all);
    assert!(!output.status.success(), "{arguments:?} did not fail");
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    let line = text.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{text}"));
    let error: Value = serde_json::from_str(line).unwrap();
    error["error"].clone()
}

/// A process that is nobody's business here, killed when dropped.
pub(crate) struct Bystander(std::process::Child);

impl Bystander {
    pub(crate) fn new() -> Self {
        Self(Command::new("sleep").arg("600").spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Nobody sent it a signal that ends it.
    pub(crate) fn is_well(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ends whatever daemon owns a home when dropped: for daemons that the command line started.
pub(crate) struct Reaper(pub(crate) Home);

impl Drop for Reaper {
    fn drop(&mut self) {
        let Some(pid) = self.0.locked_by() else { return };
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let home = self.0.path().to_str().unwrap().as_bytes();
        if arguments.windows(home.len()).any(|window| window == home) {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}

/// Waits for the end of a process, and gives its exit status.
pub(crate) fn ended(process: &mut Process) -> Option<i32> {
    wait("the daemon to end", || process.status())
}
